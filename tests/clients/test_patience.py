"""Promises of timeouts, waiting and running, and of retries, and how they appear in the results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .conftest import MANY_SEATS, ONE_SEAT, Play, constant, ends

STEP = 2.0**-7


def listed(*requests: tuple[str, float, int, float | None], **keys: Any) -> dict[str, Any]:
    """Return listed requests: id, arrival and timeout in steps, output tokens."""
    rows = [
        {"id": name, "arrival_s": at * STEP, "prompt_tokens": 16, "output_tokens": output}
        | ({} if timeout is None else {"timeout_s": timeout * STEP})
        for name, at, output, timeout in requests
    ]
    return {"requests": rows, **keys}


def test_giving_up_in_the_queue(play: Play) -> None:
    """A waiting request leaves at its timeout, and the request after it moves up."""
    result = play(listed(("a", 0, 100, None), ("b", 0.5, 5, 20), ("c", 1, 5, None)), ONE_SEAT)
    assert ends(result) == [
        ("a", "finished", 100 * STEP),
        ("b", "timed_out", 20.5 * STEP),
        ("c", "finished", 105 * STEP),
    ]
    b = result.requests.set_index("request_id").loc["b"]
    assert (b["tokens_emitted"], b["first_token_s"] != b["first_token_s"]) == (0, True)


def test_giving_up_while_running_ends_with_the_step(play: Play) -> None:
    """A running request keeps its seat until the current step ends; then the next request starts at once."""
    result = play(listed(("a", 0, 100, 10.5), ("b", 0, 5, None)), ONE_SEAT)
    assert ends(result) == [("a", "timed_out", 11 * STEP), ("b", "finished", 16 * STEP)]
    rows = result.requests.set_index("request_id")
    assert rows.loc["b", "first_scheduled_s"] == 11 * STEP
    assert rows.loc["a", "tokens_emitted"] == 10  # the eleventh comes at 11, when its client has gone
    assert np.isnan(rows.loc["a", "e2el_ms"])


def test_an_answer_at_the_last_instant_counts(play: Play) -> None:
    """At one instant the step ends first: an answer that is complete at the timeout counts."""
    assert ends(play(listed(("a", 0, 10, 10)), ONE_SEAT)) == [("a", "finished", 10 * STEP)]
    assert ends(play(listed(("a", 0, 10, 9)), ONE_SEAT))[0][1] == "timed_out"


def test_two_clients_give_up_in_one_step(play: Play) -> None:
    """Both seats are free at the end of that step, blocks included; the two waiting requests get them."""
    requests = listed(("a", 0, 50, 3.25), ("b", 0, 50, 3.75), ("c", 1, 4, None), ("d", 1, 4, None))
    result = play(requests, {**ONE_SEAT, "max_num_seqs": 2})
    rows = result.requests.set_index("request_id")
    assert rows["status"].tolist() == ["timed_out", "timed_out", "finished", "finished"]
    assert rows.loc[["c", "d"], "first_scheduled_s"].tolist() == [4 * STEP, 4 * STEP]


def test_retries_come_after_a_growing_wait(play: Play) -> None:
    """Each attempt is a request, 1, 2, 4 s after the previous timeout; its latencies count from its sending."""
    blocked = listed(("block", 0, 2048, None), ("a", 0, 4, 32), retry={"limit": 3, "backoff_s": 1.0})
    rows = play(blocked, ONE_SEAT).requests.set_index("request_id")
    assert rows.index.tolist() == ["block", "a", "a~1", "a~2", "a~3"]
    assert rows["status"].tolist() == ["finished", *["timed_out"] * 4]
    assert rows["arrival_s"].tolist() == [0, 0, 1.25, 3.5, 7.75]
    assert rows["finish_s"].tolist()[1:] == [0.25, 1.5, 3.75, 8.0]
    assert rows["attempt"].tolist() == [0, 0, 1, 2, 3]
    soon = listed(("block", 0, 200, None), ("a", 0, 4, 32), retry={"limit": 3, "backoff_s": 1.0})
    last = play(soon, ONE_SEAT).requests.set_index("request_id").loc["a~2"]
    assert last["status"] == "finished"
    assert last["e2el_ms"] == pytest.approx(1000 * 4 * STEP)
    assert last["client_wait_ms"] == 3500


def test_jitter_lengthens_waits_by_its_share_and_repeats(play: Play) -> None:
    """With jitter 0.5 a wait of 1 s becomes 1 to 1.5 s, the same in every run, different for each request."""
    many = [(f"r{i}", 0.0, 4, 32.0) for i in range(40)]
    workload = listed(("block", 0, 1000, None), *many, retry={"limit": 1, "backoff_s": 1.0, "jitter": 0.5})
    rows = play(workload, ONE_SEAT).requests
    waits_s = rows.loc[rows["attempt"] == 1, "arrival_s"].to_numpy() - 32 * STEP
    assert ((waits_s >= 1) & (waits_s < 1.5)).all()
    assert len(np.unique(waits_s)) == 40
    assert waits_s.mean() == pytest.approx(1.25, abs=4 * 0.5 / np.sqrt(12 * 40))


def test_patience_at_the_client_counts_too(play: Play) -> None:
    """A request that waits at its client times out as well, is never at the server, and takes no place."""
    workload = listed(("a", 0, 20, None), ("b", 0, 5, 10), ("c", 0, 5, None), max_concurrency=1)
    result = play(workload)
    assert sorted(ends(result)) == [
        ("a", "finished", 20 * STEP),
        ("b", "timed_out", 10 * STEP),
        ("c", "finished", 25 * STEP),
    ]
    b = result.requests.set_index("request_id").loc["b"]
    assert (b["arrival_s"], b["client_wait_ms"]) == (10 * STEP, 10_000 * STEP)


def test_a_wave_ends_when_the_one_it_waited_for_gives_up(play: Play) -> None:
    """Static batching: the longest request of a wave times out; requests that waited for it get their answers."""
    wave = {"scheduler": "static", "max_num_seqs": 2}
    result = play(listed(("a", 0, 5, None), ("b", 0, 50, 10.5), ("c", 1, 4, None)), wave)
    assert sorted(ends(result)) == [
        ("a", "finished", 11 * STEP),
        ("b", "timed_out", 11 * STEP),
        ("c", "finished", 15 * STEP),
    ]
    at_the_edge = play(listed(("a", 0, 5, None), ("b", 0, 50, 5)), wave)
    assert ends(at_the_edge)[1] == ("b", "timed_out", 5 * STEP)


OVERLOAD = {
    "arrivals": {"process": "poisson", "rate_rps": 20},
    "arrivals_for_s": 60,
    "prompt_tokens": constant(16),
    "output_tokens": constant(10),
    "timeout_s": 5.0,
}


@pytest.mark.parametrize("retry", [None, {"limit": 3, "backoff_s": 1.0, "jitter": 0.5}], ids=["once", "retries"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_case_39_timeouts_and_retries_do_not_inflate_throughput(seed: int, retry: Any, play: Play) -> None:
    """At twice the capacity of 10 req/s completed / duration is below it; timed-out requests count separately.

    Origin: inference-sim/inference-sim#1115, vllm-project/guidellm#444, ai-dynamo/aiperf#688, where requests that timed
    out vanished from counts and duration, and throughput and percentiles improved in overload.
    """
    result = play({**OVERLOAD, **({} if retry is None else {"retry": retry})}, ONE_SEAT, step_time=0.01, seed=seed)
    rows, (row,) = result.requests, result.summary_rows
    assert row["n_requests"] == len(rows) == row["completed"] + row["timed_out"]
    first_s, last_s = rows["arrival_s"].min(), rows["finish_s"].max()
    assert row["duration_s"] == pytest.approx(last_s - first_s, rel=1e-12)
    assert row["completed"] / row["duration_s"] <= 10
    assert row["request_throughput"] == row["completed"] / row["duration_s"]
    assert row["output_throughput"] == pytest.approx(10 * row["request_throughput"])
    assert row["timed_out_share"] == row["timed_out"] / row["n_requests"] > 0.3
    done = rows[rows["status"] == "finished"]
    assert row["measured_requests"] == len(done)
    assert row["p99_e2el_ms"] == pytest.approx(np.percentile(done["e2el_ms"], 99))
    assert row["retries"] == (rows.get("attempt", np.zeros(1)) > 0).sum()
    requests = {name.partition("~")[0] for name in rows["request_id"]}
    answered = [name.partition("~")[0] for name in done["request_id"]]
    assert len(set(answered)) == len(answered) <= len(requests)


def test_no_request_is_answered_after_its_timeout(play: Play) -> None:
    """E2EL of requests that finished at the first attempt is at most the timeout."""
    rows = play(OVERLOAD, ONE_SEAT, step_time=0.01).requests
    assert rows["e2el_ms"].max() <= 5000
    gone = rows[rows["status"] == "timed_out"]
    waited_s = gone["finish_s"] - gone["arrival_s"]
    assert waited_s.min() == pytest.approx(5, rel=1e-12)
    assert waited_s.max() <= 5.01 + 1e-9


VLLM = {"engine": "vllm", "version": "0.33.0", "max_num_seqs": 4, "max_num_batched_tokens": 128}


@pytest.mark.parametrize(
    "policy",
    [
        MANY_SEATS,
        {"scheduler": "continuous", "max_num_seqs": 4, "max_num_batched_tokens": 128},
        {"scheduler": "static", "max_num_seqs": 4},
        {
            "engine": "vllm",
            "version": "0.33.0",
            "max_num_seqs": 4,
            "max_num_batched_tokens": 128,
            "async_scheduling": True,
        },
        {
            "engine": "vllm",
            "version": "0.33.0",
            "max_num_seqs": 4,
            "max_num_batched_tokens": 128,
            "async_scheduling": False,
        },
    ],
    ids=["chunked", "continuous", "static", "vllm-async", "vllm-sync"],
)
@pytest.mark.parametrize("seed", range(4))
def test_all_requests_are_accounted_for_under_any_policy(seed: int, policy: dict[str, Any], play: Play) -> None:
    """Users, sessions and open traffic with timeouts, ties on a grid: invariants hold, folded or step by step."""
    lengths = {
        "prompt_tokens": {"distribution": "uniform", "low": 1, "high": 60},
        "output_tokens": {"distribution": "geometric", "mean": 12},
    }
    workloads = {
        "open": {
            "arrivals": {"process": "constant", "rate_rps": 32.0},
            "num_requests": 60,
            **lengths,
            "timeout_s": 24 * STEP,
            "retry": {"limit": 2, "backoff_s": 8 * STEP},
        },
        "loop": {"users": {"count": 3, "think_s": 4 * STEP}, "num_requests": 40, **lengths, "timeout_s": 40 * STEP},
        "talk": {
            "sessions": {
                "arrivals": {"process": "constant", "rate_rps": 4.0},
                "num_sessions": 6,
                "turns": constant(3),
                "think_s": 2 * STEP,
            },
            **lengths,
            "max_concurrency": 2,
        },
    }
    cache = {"layout": "paged", "block_size": 16, "blocks": 40}
    result = play({}, policy, workloads=workloads, seed=seed, kv_cache=cache)
    statuses = result.requests["status"]
    assert set(statuses) <= {"finished", "timed_out"}
    assert (statuses == "timed_out").any()
    assert {row["request_class"] for row in result.summary_rows[1:]} == {"open", "loop", "talk"}
    assert sum(row["n_requests"] for row in result.summary_rows[1:]) == len(statuses)
