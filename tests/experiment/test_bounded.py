"""Queues that timeouts or a limit keep from growing: overloaded at a load above 1, and steady all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.report.comparison import comparison

STEP_S = 0.1


def one_slot(rate_rps: float, number: int, **more: Any) -> dict[str, Any]:
    """Return Poisson arrivals to a single slot, with steps of 0.1 s and answers of one token: M/D/1."""
    lengths = {name: {"distribution": "constant", "value": 1} for name in ("prompt_tokens", "output_tokens")}
    workload = {"arrivals": {"process": "poisson", "rate_rps": rate_rps}, "num_requests": number, **lengths}
    return {
        "step_time": {"kind": "constant", "seconds": STEP_S},
        "kv_cache": {"blocks": 100_000},
        "workload": workload | more.pop("workload", {}),
        "policies": {"one": {"scheduler": "continuous", "max_num_seqs": 1}},
        **more,
    }


def answered_ms(arrival_s: np.ndarray, timeout_s: float, from_s: float = 0.0) -> np.ndarray:
    """Return the sojourns of those that a server with steps of 0.1 s answers, if clients give up after the timeout."""
    free_s, found = 0.0, []
    for time_s in arrival_s.tolist():
        start_s = max(free_s, time_s)
        if start_s - time_s >= timeout_s:
            continue
        free_s = start_s + STEP_S
        if free_s - time_s <= timeout_s and time_s >= from_s:
            found.append(1000 * (free_s - time_s))
    return np.array(found)


@pytest.mark.parametrize("rate_rps", [11.0, 13.0])
def test_clients_that_give_up_make_an_overload_steady(rate_rps: float) -> None:
    """M/D/1 with patience: overloaded, but bounded, and after a warm-up the latencies are those of a recursion."""
    result = sq.run(one_slot(rate_rps, 1500, workload={"timeout_s": 0.55}, warmup_s=5.0), check=False)
    row = result.summary_rows[0]
    assert (row["overloaded"], row["bounded"], row["window"]) == (True, True, "steady")
    arrival_s = result.requests["arrival_s"].to_numpy()
    sojourn_ms = answered_ms(arrival_s, 0.55)
    assert row["timed_out"] == len(arrival_s) - len(sojourn_ms)
    assert row["mean_ttft_ms"] == pytest.approx(np.mean(answered_ms(arrival_s, 0.55, from_s=5.0)), rel=1e-9)
    (line,) = [line for line in result.warnings if "overloaded" in line]
    share = 100 * (1 - len(sojourn_ms) / len(arrival_s))
    assert f"overloaded (offered load {rate_rps * STEP_S:.2f}), but bounded: " in line
    assert f"{share:.1f} % of the requests time out, so the queue does not grow" in line
    shown = {cells.line.label: cells.texts for cells in comparison(result).sections["Load and run"]}
    assert (shown["overloaded"], shown["bounded"]) == (("YES",), ("YES",))


@pytest.mark.parametrize("rate_rps", [9.8, 9.9])
def test_just_below_the_capacity_impatience_is_no_overload(rate_rps: float) -> None:
    """At 0.98 and 0.99 many give up by chance: the queue is bounded, and it is not said that too much comes."""
    for seed in range(3):
        result = sq.run(one_slot(rate_rps, 1500, workload={"timeout_s": 0.5}, warmup_s=5.0), seed=seed, check=False)
        row = result.summary_rows[0]
        assert row["timed_out"] > 50  # type: ignore[operator] # known
        assert (row["overloaded"] is not True, row["bounded"]) == (True, True)
        assert row["mean_ttft_ms"] is not None
        assert not any("overloaded" in line for line in result.warnings)


def test_a_limit_on_the_queue_refuses_as_many_as_theory_says() -> None:
    """M/M/1/6 at a load of 1.5: the share of refused requests over replications, and latencies beside it."""
    outputs = {"distribution": "exponential", "mean": 200}
    made = one_slot(1.5 / 20, 400, workload={"output_tokens": outputs}, max_queued_requests=5, replications=6)
    result = sq.run({**made, "warmup_s": 200.0}, check=False, workers=1)
    row = result.summary_rows[0]
    assert (row["overloaded"], row["bounded"]) == (True, True)
    assert row["mean_ttft_ms"] is not None
    shares = [one["rejected"] / one["n_requests"] for one in result.replication_rows]  # type: ignore[operator] # known
    blocked = 0.5 * 1.5**6 / (1.5**7 - 1)
    assert np.mean(shares) == pytest.approx(blocked, abs=4 * np.std(shares, ddof=1) / 6**0.5)


def test_without_a_law_a_full_queue_is_seen_too() -> None:
    """At five times the capacity of four slots, most requests are refused because ten wait."""
    lengths = {"prompt_tokens": {"distribution": "constant", "value": 100}}
    lengths["output_tokens"] = {"distribution": "constant", "value": 50}
    made = one_slot(4.0, 400, workload=lengths, max_queued_requests=10)
    made["policies"] = {"slots": {"scheduler": "llamacpp", "n_parallel": 4}}
    result = sq.run(made, check=False)
    row = result.summary_rows[0]
    assert (row["load"], row["overloaded"], row["bounded"]) == (None, True, True)
    assert any("overloaded (more came than could be done), but bounded" in line for line in result.warnings)


def test_a_queue_that_has_not_reached_its_limit_grows() -> None:
    """Clients who give up after 200 s do not bound a run of 100 s at twice the capacity: nothing steady is shown."""
    result = sq.run(one_slot(20.0, 2000, workload={"timeout_s": 200.0}, warmup_s=20.0), check=False)
    row = result.summary_rows[0]
    assert (row["overloaded"], row["bounded"], row["mean_ttft_ms"]) == (True, False, None)
