"""Overload of whole runs: seen where it is worst, not in short stable runs, and unknown where it cannot be told."""

from __future__ import annotations

import json
from typing import Any

import pytest

import simqueue as sq
from simqueue.report.comparison import comparison
from simqueue.schedulers import SCHEDULERS, Chunked


def constant(value: int) -> dict[str, Any]:
    """Return a distribution with one value."""
    return {"distribution": "constant", "value": value}


def scenario(rate: float, number: int, policy: dict[str, Any], process: str = "poisson", **more: Any) -> dict[str, Any]:
    """Return a scenario with steps of 10 ms, prompts of 32 and outputs of 8 tokens."""
    lengths = {"prompt_tokens": constant(32), "output_tokens": constant(8)}
    workload = {"arrivals": {"process": process, "rate_rps": rate}, "num_requests": number, **lengths}
    return {
        "step_time": {"kind": "constant", "seconds": 0.01},
        "kv_cache": {"blocks": 1_000_000},
        "workload": workload | more.pop("workload", {}),
        "policies": {"p": policy},
        **more,
    }


SLOTS = {"scheduler": "llamacpp", "n_parallel": 4}
"""No capacity law; with outputs of 50 tokens, a token a step, four slots serve at most 8 requests a second."""
ANSWERS = {"prompt_tokens": constant(100), "output_tokens": constant(50)}


@pytest.mark.parametrize("number", [200, 240])
@pytest.mark.parametrize(
    "policy",
    [{"scheduler": "chunked", "max_num_seqs": 64, "max_num_batched_tokens": 128}, {**SLOTS, "n_parallel": 64}],
)
def test_evenly_spaced_requests_of_a_short_run_are_no_overload(number: int, policy: dict[str, Any]) -> None:
    """Case 60 a: 50 requests a second that take 8 or 9 steps of 10 ms each, with and without a capacity law."""
    row = sq.run(scenario(50, number, policy, process="constant")).summary_rows[0]
    assert row["overloaded"] is False


@pytest.mark.parametrize("policy", [{"scheduler": "chunked"}, {"scheduler": "llamacpp", "n_parallel": 256}])
def test_a_short_run_with_long_answers_is_no_overload(policy: dict[str, Any]) -> None:
    """Case 60 b: 44 s of traffic at a load of 0.44, in which answers take some 2 s; also without a capacity law."""
    prompts = {"distribution": "lognormal", "median": 700, "sigma": 0.9, "min": 64, "max": 4096}
    outputs = {"distribution": "geometric", "mean": 200, "max": 2000}
    made = scenario(16, 700, policy, workload={"prompt_tokens": prompts, "output_tokens": outputs})
    del made["step_time"], made["kv_cache"]
    made |= {"model": "llama-3.1-8b", "gpu": "h100-sxm", "warmup_s": 3}
    for seed in (1, 2):
        result = sq.run(made, seed=seed, check=False)
        row = result.summary_rows[0]
        assert row["overloaded"] is False
        assert row["mean_ttft_ms"] is not None


def test_where_no_request_waits_there_is_no_overload() -> None:
    """Case 60 c: 1,500 requests of 100 steps on average, with seats for all, without a capacity law."""
    geometric = {"prompt_tokens": constant(10), "output_tokens": {"distribution": "geometric", "mean": 100}}
    made = scenario(50, 1500, {**SLOTS, "n_parallel": 128}, workload=geometric, replications=3)
    result = sq.run(made, check=False, workers=1)
    assert [row["overloaded"] for row in result.replication_rows] == [False] * 3
    assert result.summary_rows[0]["overloaded"] is False


@pytest.mark.parametrize("rate", [10, 20, 40, 100])
def test_the_worse_the_overload_the_more_it_is_seen(rate: float) -> None:
    """Case 61: at 1.25 to 12.5 times the capacity, without a law, the run is flagged and the warning is there."""
    result = sq.run(scenario(rate, 2000, SLOTS, workload=ANSWERS), check=False)
    assert (result.summary_rows[0]["load"], result.summary_rows[0]["overloaded"]) == (None, True)
    assert any("overloaded (the queue grew during the whole run)" in line for line in result.warnings)


def test_a_warm_up_does_not_make_it_steady() -> None:
    """At five times the capacity, neither a given warm-up nor an automatic one shows latencies."""
    for warmup in (5.0, "auto"):
        result = sq.run(scenario(40, 500, SLOTS, workload=ANSWERS, warmup_s=warmup), check=False)
        row = result.summary_rows[0]
        assert row["overloaded"] is True
        assert row["window"] == "whole run" or row["mean_ttft_ms"] is None
        assert "warm-up auto: every policy is overloaded" in " ".join(result.warnings) or warmup != "auto"


class OneSeat(Chunked):
    """Seats one request at a time, whatever the number of seats is."""

    summary = "one seat only"

    def may_admit(self, job: Any, step: Any) -> bool:
        """Admit a request only if none runs."""
        return not self.running


def test_an_own_policy_is_judged_by_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """One seat serves at most 11 requests of 9 steps a second: at 60 it is overloaded, though the seats would do."""
    monkeypatch.setitem(SCHEDULERS, "one_seat", OneSeat)
    made = scenario(60, 300, {"scheduler": "one_seat", "max_num_seqs": 64, "max_num_batched_tokens": 512})
    result = sq.run(made, check=False)
    row = result.summary_rows[0]
    assert row["request_throughput"] < 13  # type: ignore[operator] # known
    assert (row["load"], row["overloaded"]) == (None, True)


def test_a_queue_at_the_client_counts_too() -> None:
    """With a concurrency limit, the server's own queue is short at any load; requests wait to be sent."""
    made = scenario(40, 500, SLOTS, workload={**ANSWERS, "max_concurrency": 6})
    assert sq.run(made, check=False).summary_rows[0]["overloaded"] is True


def test_what_cannot_be_told_is_unknown_everywhere() -> None:
    """Sixty requests without a capacity law: `unknown` in the table and the page, null in JSON, and a warning."""
    made = scenario(5, 60, SLOTS, workload=ANSWERS, warmup_s=1.0)
    result = sq.run(made)
    assert result.summary_rows[0]["overloaded"] is None
    assert json.loads(result.to_json(requests=False))["summary"][0]["overloaded"] is None
    shown = {cells.line.label: cells.texts for cells in comparison(result).sections["Load and run"]}
    assert shown["overloaded"] == ("unknown",)
    assert any("cannot be told whether it is overloaded" in line for line in result.warnings)
    assert not any("overloaded" in line for line in sq.run({**made, "warmup_s": 0}).warnings)


def test_users_of_a_closed_loop_are_not_warned_about() -> None:
    """Their number is bounded, so there is a steady state: overload is undefined, and no warning."""
    made = scenario(5, 60, SLOTS, workload=ANSWERS, warmup_s=1.0)
    del made["workload"]["arrivals"]
    made["workload"]["users"] = {"count": 3}
    result = sq.run(made)
    assert result.summary_rows[0]["overloaded"] is None
    assert not any("overloaded" in line for line in result.warnings)


def test_sessions_that_pile_up_are_seen() -> None:
    """Twenty sessions of two turns start a second where 8 turns are served: their first turns pile up."""
    made = scenario(20, 1, SLOTS)
    arrivals = {"process": "poisson", "rate_rps": 20}
    made["workload"] = {"sessions": {"arrivals": arrivals, "num_sessions": 300, "turns": constant(2)}, **ANSWERS}
    assert sq.run(made, check=False).summary_rows[0]["overloaded"] is True
    made["workload"]["sessions"]["arrivals"] = {**arrivals, "rate_rps": 2}
    assert sq.run(made, check=False).summary_rows[0]["overloaded"] is None
