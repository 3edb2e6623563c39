"""Judgements: met, not met or not known, and why."""

from __future__ import annotations

from typing import Any

import pytest

import simqueue as sq
from simqueue.decisions.conditions import parse_conditions
from simqueue.decisions.judgement import OVERLOADED, Judgement, Verdict, judge
from simqueue.experiment.runner import as_resolved

BASE: dict[str, Any] = {
    "step_time": {"kind": "constant", "seconds": 0.1},
    "kv_cache": {"blocks": 1000},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 5},
        "num_requests": 400,
        "prompt_tokens": {"distribution": "constant", "value": 10},
        "output_tokens": {"distribution": "constant", "value": 1},
    },
    "warmup_s": 5,
    "replications": 4,
    "policies": {"one": {"scheduler": "continuous", "max_num_seqs": 1}},
}


def judged(*texts: str, steady: bool = True, **changes: Any) -> Judgement:
    """Return the judgement of a server that takes 0.1 s for each request, one after another."""
    rate = changes.pop("rate_rps", 5)
    number = changes.pop("num_requests", 400)
    arrivals = {"process": "poisson", "rate_rps": rate}
    workload = {**BASE["workload"], "arrivals": arrivals, "num_requests": number}
    conditions = parse_conditions(texts)
    asked = conditions.asked_of(as_resolved({**BASE, "workload": workload, **changes}, (), None))
    return judge(sq.run(asked, workers=1), "one", conditions, steady=steady)


def test_far_limits_are_met_or_not() -> None:
    """A request takes 100 ms at least; a mean wait of M/D/1 at a load of one half is 50 ms."""
    assert judged("mean_ttft_ms<=300", "ttft_ms<=5000").verdict is Verdict.MET
    found = judged("mean_ttft_ms<=300", "p99_ttft_ms<=90")
    assert found.verdict is Verdict.NOT_MET
    assert found.reason.startswith("p99_ttft_ms<=90 is not met: ")


def test_near_limits_are_not_known() -> None:
    """A limit inside the interval of four runs is neither met nor not; the interval holds the limit."""
    value = judged("mean_ttft_ms<=150").each[0].value
    assert value == pytest.approx(150, rel=0.1)
    found = judged(f"mean_ttft_ms<={value}")
    (one, lost) = found.each
    assert one.low is not None
    assert one.high is not None
    assert one.low < float(value or 0) < one.high
    assert found.verdict is one.verdict is Verdict.NOT_KNOWN
    assert (lost.value, lost.verdict) == (0.0, Verdict.MET)


def test_a_single_run_decides_by_its_value() -> None:
    """It has no interval."""
    found = judged("mean_ttft_ms<=300", replications=1).each[0]
    assert (found.low, found.high, found.verdict) == (None, None, Verdict.MET)


def test_overload_meets_nothing() -> None:
    """Twice the rate that can be served has no steady state, whatever the limit; but the run as it was has values."""
    found = judged("mean_tpot_ms<=1e6", "mean_ttft_ms<=1e9", rate_rps=20)
    assert found.overloaded
    assert (found.verdict, found.reason) == (Verdict.NOT_MET, OVERLOADED)
    assert judged("mean_ttft_ms<=1e9", rate_rps=20, warmup_s=0, steady=False).verdict is Verdict.MET


def test_too_few_for_a_percentile_is_never_met() -> None:
    """Runs of fewer than 100 values have no P99."""
    found = judged("p99_ttft_ms<=1e9", num_requests=90)
    assert found.verdict is Verdict.NOT_KNOWN
    assert "ask for more requests" in found.reason


def test_what_no_request_has_is_undefined() -> None:
    """A request of one token has no time per token after it."""
    found = judged("mean_tpot_ms<=1e9")
    assert found.each[0].undefined
    assert found.reason == "mean_tpot_ms is undefined: no request has a value"


def test_lost_requests_are_counted() -> None:
    """A full queue refuses about half of the requests at twice the rate that can be served."""
    found = judged("mean_ttft_ms<=1000", rate_rps=20, max_queued_requests=1)
    lost = found.each[1]
    assert lost.condition.column == "lost_share"
    assert lost.value == pytest.approx(0.5, abs=0.1)
    assert found.verdict is Verdict.NOT_MET


def test_unknown_policies_are_named() -> None:
    """The error names the known ones."""
    conditions = parse_conditions(["mean_ttft_ms<=1"])
    with pytest.raises(sq.InputError, match=r"unknown policy 'two'.*known: one"):
        judge(sq.run(BASE, workers=1), "two", conditions)
