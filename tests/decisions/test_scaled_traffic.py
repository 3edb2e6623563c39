"""Traffic at other rates: the same requests, faster or slower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.decisions.traffic import is_steady, scaled_traffic
from simqueue.scenario.load import from_mapping
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.scenario.traffic import make_traffic

LENGTHS = {
    "prompt_tokens": {"distribution": "geometric", "mean": 50},
    "output_tokens": {"distribution": "geometric", "mean": 5},
}
STEADY = {
    "poisson": {"process": "poisson", "rate_rps": 4},
    "gamma": {"process": "gamma", "rate_rps": 4, "cv": 2},
    "weibull": {"process": "weibull", "rate_rps": 4, "cv": 2},
    "constant": {"process": "constant", "rate_rps": 4},
    "batches": {"process": "batches", "rate_rps": 4, "batch_size": {"distribution": "constant", "value": 3}},
}


def resolved(base_dir: Path = Path(), **keys: Any) -> ResolvedScenario:
    """Return a scenario with this traffic."""
    base = {
        "step_time": {"kind": "constant", "seconds": 0.01},
        "kv_cache": {"blocks": 1000},
        "policies": {"one": {"scheduler": "continuous", "max_num_seqs": 8}},
    }
    return from_mapping({**base, **keys}, base_dir=base_dir).resolve()


def columns(scenario: ResolvedScenario) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Return arrivals in seconds, and the lengths of all requests."""
    requests = list(make_traffic(scenario).requests)
    return np.array([one.arrival_s for one in requests]), [(one.prompt_tokens, one.output_tokens) for one in requests]


@pytest.mark.parametrize("arrivals", STEADY.values(), ids=STEADY)
def test_gaps_scale_with_the_rate(arrivals: dict[str, Any]) -> None:
    """At three times the rate, the same requests come three times as fast; a fifth of the run is warm-up."""
    traffic = scaled_traffic(resolved(workload={"arrivals": arrivals, "num_requests": 10, **LENGTHS}))
    assert (traffic.steady, traffic.rate_rps, traffic.unit) == (True, 4, "requests/s")
    slow, fast = traffic.at(2, 200), traffic.at(6, 200)
    (slow_s, of_slow), (fast_s, of_fast) = columns(slow), columns(fast)
    assert of_slow == of_fast
    assert len(slow_s) == 200
    np.testing.assert_allclose(slow_s, 3 * fast_s, rtol=1e-12)
    assert slow.warmup_s == pytest.approx(0.2 * 200 / 2)
    assert (fast.horizon_s, fast.values["workload"]["num_requests"]) == (None, 200)


def test_a_long_warm_up_makes_runs_longer() -> None:
    """A warm-up of 100 s at 10 requests/s is a fifth of 5000 requests."""
    workload = {"arrivals": STEADY["poisson"], "num_requests": 10, **LENGTHS}
    scenario = scaled_traffic(resolved(workload=workload, warmup_s=100)).at(10, 200)
    assert (scenario.warmup_s, scenario.values["workload"]["num_requests"]) == (100, 5000)


def test_a_trace_is_played_faster(tmp_path: Path) -> None:
    """The rate of a trace is that of its gaps; all of its requests stay."""
    rows = "".join(f"{0.5 * i},{10 + i},3\n" for i in range(40))
    (tmp_path / "t.csv").write_text("arrival_s,prompt_tokens,output_tokens\n" + rows)
    scenario = resolved(tmp_path, workload={"trace": {"format": "csv", "path": "t.csv"}})
    traffic = scaled_traffic(scenario)
    assert (traffic.steady, traffic.random, traffic.rate_rps) == (False, False, pytest.approx(2))
    (own_s, own), (fast_s, fast) = columns(scenario), columns(traffic.at(6, 999))
    assert own == fast
    np.testing.assert_allclose(own_s, 3 * fast_s)


def test_a_day_keeps_its_course() -> None:
    """A curve is scaled by its rate: the same time, more requests."""
    pieces = {"process": "piecewise", "pieces": [{"for_s": 100, "rate_rps": 1}, {"for_s": 100, "rate_rps": 3}]}
    traffic = scaled_traffic(resolved(workload={"arrivals": pieces, "arrivals_for_s": 200, **LENGTHS}))
    assert (traffic.steady, traffic.rate_rps) == (False, 2)
    arrival_s, _ = columns(traffic.at(20, 999))
    assert np.sum(arrival_s < 100) == pytest.approx(1000, rel=0.15)
    assert np.sum(arrival_s >= 100) == pytest.approx(3000, rel=0.15)


def test_workloads_keep_their_shares() -> None:
    """Two steady workloads are steady together, and end together."""
    two = {
        "chat": {"arrivals": {"process": "poisson", "rate_rps": 3}, "num_requests": 10, **LENGTHS},
        "batch": {"arrivals": {"process": "poisson", "rate_rps": 1}, "num_requests": 10, **LENGTHS},
    }
    traffic = scaled_traffic(resolved(workloads=two))
    assert (traffic.steady, traffic.rate_rps) == (True, 4)
    requests = list(make_traffic(traffic.at(8, 2000)).requests)
    assert len(requests) == pytest.approx(2000, rel=0.1)
    assert sum(one.request_class == "chat" for one in requests) == pytest.approx(1500, rel=0.1)


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (
            {"users": {"count": 3}},
            "users wait for their answers",
        ),
        ({"requests": [{"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 1}]}, "listed requests have fixed times"),
        ({"arrivals": {"process": "all_at_once"}}, "all_at_once have no rate"),
    ],
)
def test_traffic_without_a_rate(workload: dict[str, Any], said: str) -> None:
    """There must be a rate that can be changed."""
    more = {} if "requests" in workload else {"num_requests": 10, **LENGTHS}
    with pytest.raises(sq.InputError, match=said):
        scaled_traffic(resolved(workload={**workload, **more}))


def test_one_uneven_workload_makes_all_uneven() -> None:
    """Limits are about a steady state only if each workload has one, and sessions come evenly too."""
    pieces = {"process": "piecewise", "pieces": [{"for_s": 10, "rate_rps": 1}, {"for_s": 100, "rate_rps": 0.01}]}
    kept = {"turns": {"distribution": "constant", "value": 2}, "think_s": {"distribution": "constant", "value_s": 1}}
    even = {"arrivals": STEADY["poisson"], "num_requests": 10, **LENGTHS}
    uneven = {**even, "arrivals": pieces}
    talks = [
        {"sessions": {"arrivals": one["arrivals"], "num_sessions": 5, **kept}, **LENGTHS} for one in (even, uneven)
    ]
    users = {"users": {"count": 3}, "num_requests": 10, **LENGTHS}
    found = [is_steady(resolved(workload=one)) for one in (even, uneven, *talks, users)]
    assert found == [True, False, True, False, True]
    assert is_steady(resolved(workloads={"a": even, "b": even}))
    assert not is_steady(resolved(workloads={"a": even, "b": uneven}))
    assert not scaled_traffic(resolved(workload=talks[0])).steady
