"""Promises of closed loops: users think, send a request, wait for the answer, and repeat."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from simqueue.errors import RunError
from simqueue.results.result import Result

from .conftest import MANY_SEATS, ONE_SEAT, Play, constant

STEP = 2.0**-7


def loop(users: int, **keys: Any) -> dict[str, Any]:
    """Return a closed loop of users with prompts of 16 and outputs of 10 tokens."""
    lengths = {"prompt_tokens": constant(16), "output_tokens": constant(10)}
    return {"users": {"count": users}, **lengths, **keys}


def test_one_user_who_does_not_think_is_never_idle_and_never_waits(play: Play) -> None:
    """Zero think time and N = 1: each request is sent at the instant of the previous answer, and is served at once."""
    rows = play(loop(1, num_requests=50), ONE_SEAT).requests
    assert rows["arrival_s"].tolist() == [10 * STEP * k for k in range(50)]
    assert rows["finish_s"].tolist() == [10 * STEP * (k + 1) for k in range(50)]
    assert (rows["queue_ms"] == 0).all()
    assert rows["client"].unique().tolist() == ["user-0"]


# a (s) a step, b a decode and step, c a prompt token; prompts of 500, outputs of 100 tokens
LINEAR = {
    "kind": "linear",
    "overhead_s": 0.02,
    "per_prefill_token_s": 2e-5,
    "decode_base_s": 0.0,
    "per_decode_s": 5e-4,
    "per_context_token_s": 0.0,
}
UNBOUNDED = {**MANY_SEATS, "max_num_batched_tokens": 200_000}


@pytest.mark.parametrize(("users", "throughput"), [(1, 0.4856), (4, 1.7873), (16, 5.4201), (64, 11.0193)])
def test_closed_loop_throughput_is_exact(users: int, throughput: float, play: Play) -> None:
    """N users without think time: X = N / (a O + N w) with w = b (O - 1) + c P, and every answer takes a O + N w."""
    w = 5e-4 * 99 + 2e-5 * 500
    cycle_s = 0.02 * 100 + users * w
    assert users / cycle_s == pytest.approx(throughput, abs=5e-5)
    workload = {
        "users": {"count": users},
        "prompt_tokens": constant(500),
        "output_tokens": constant(100),
        "num_requests": 12 * users,
    }
    result = play(workload, UNBOUNDED, step_time=LINEAR)
    assert result.requests["e2el_ms"].to_numpy() == pytest.approx(1000 * cycle_s, rel=1e-9)
    assert result.summary_rows[0]["request_throughput"] == pytest.approx(users / cycle_s, rel=1e-9)


@pytest.mark.parametrize("users", [1, 4, 16])
def test_closed_loop_throughput_does_not_depend_on_the_distribution_of_lengths(users: int, play: Play) -> None:
    """With geometric outputs the same formula holds for the realised mean output: every step serves every user."""
    workload = {
        "users": {"count": users},
        "prompt_tokens": constant(500),
        "output_tokens": {"distribution": "geometric", "mean": 100},
        "arrivals_for_s": 1500.0,
    }
    result = play(workload, UNBOUNDED, step_time=LINEAR, horizon_s=1500.0)
    rows, steps = result.requests, result.steps
    # Exact on the path: while no request leaves, each step makes one token for each user.
    assert rows["tokens_emitted"].sum() == users * steps["repeat"].sum()
    done = rows[rows["status"] == "finished"]
    mean_output = rows["tokens_emitted"].sum() / len(rows)
    predicted = users / (0.02 * mean_output + users * (5e-4 * (mean_output - 1) + 2e-5 * 500))
    assert len(rows) / 1500 == pytest.approx(predicted, rel=2e-3)
    assert len(done) >= len(rows) - users


def test_thinking_users_obey_the_interactive_law(play: Play) -> None:
    """Each user's cycles are think and answer, one after the other: X (R + Z) = N on the path, to rounding."""
    users = 7
    workload = loop(users, num_requests=2000)
    workload["users"] = {"count": users, "think_s": {"distribution": "exponential", "mean_s": 0.5}}
    rows = play(workload, {**MANY_SEATS, "max_num_seqs": 3}).requests
    thinks = []
    for _, mine in rows.groupby("client"):
        arrival_s, finish_s = mine["arrival_s"].to_numpy(), mine["finish_s"].to_numpy()
        thinks += (arrival_s - np.concatenate(([0.0], finish_s[:-1]))).tolist()
        assert (arrival_s[1:] >= finish_s[:-1]).all()
    assert len(rows) == 2000
    assert abs(np.mean(thinks) - 0.5) < 4 * 0.5 / math.sqrt(2000)
    cycles_s = (rows["e2el_ms"].sum() / 1000 + sum(thinks)) / users
    assert len(rows) * (rows["e2el_ms"].mean() / 1000 + np.mean(thinks)) / cycles_s == pytest.approx(users, rel=1e-12)


def test_requests_of_a_user_do_not_depend_on_other_users(play: Play) -> None:
    """The requests and think times of user 0 are the same among 1 or 9 users, on 1 or 256 seats."""
    lengths = {"prompt_tokens": {"distribution": "uniform", "low": 1, "high": 99}, "arrivals_for_s": 8.0}

    def asked(users: int, policy: dict[str, Any]) -> list[tuple[str, int, int]]:
        workload = {**loop(users), **lengths, "output_tokens": {"distribution": "geometric", "mean": 20}}
        workload["users"] = {"count": users, "think_s": 0.25}
        rows = play(workload, policy).requests
        mine = rows[rows["client"] == "user-0"]
        return list(zip(mine["request_id"], mine["prompt_tokens"], mine["output_tokens"], strict=True))

    alone, crowded = asked(1, ONE_SEAT), asked(9, MANY_SEATS)
    n = min(len(alone), len(crowded))
    assert n > 5
    assert alone[:n] == crowded[:n]


def test_users_come_one_after_the_other(play: Play) -> None:
    """ramp_up_s spreads the first requests evenly; num_requests is exact; none is sent at or after arrivals_for_s."""
    workload = {**loop(4, num_requests=11), "output_tokens": constant(200)}
    workload["users"] = {"count": 4, "ramp_up_s": 2.0}
    rows = play(workload).requests
    firsts = rows.groupby("client")["arrival_s"].min().tolist()
    assert firsts == [0.0, 0.5, 1.0, 1.5]
    assert len(rows) == 11
    until = play(loop(2, arrivals_for_s=5 * 10 * STEP)).requests
    assert until["arrival_s"].max() == 4 * 10 * STEP
    assert len(until) == 10


def test_a_next_turn_comes_before_arrivals_of_the_same_instant(play: Play) -> None:
    """At one instant a client reacts to the end of a step before new requests arrive: it is first in the queue."""
    users = {"users": {"count": 1}, "prompt_tokens": constant(16), "output_tokens": constant(10), "num_requests": 2}
    rival = {"requests": [{"id": "rival", "arrival_s": 10 * STEP, "prompt_tokens": 16, "output_tokens": 10}]}
    result = play({}, ONE_SEAT, workloads={"loop": users, "open": rival})
    rows = result.requests.set_index("request_id")
    assert rows.loc["loop/user-0.1", "arrival_s"] == rows.loc["open/rival", "arrival_s"] == 10 * STEP
    assert rows.loc["loop/user-0.1", "finish_s"] == 20 * STEP
    assert rows.loc["open/rival", "finish_s"] == 30 * STEP


def concurrency(result: Result) -> int:
    """Return the most requests that were at the server at one time; departures before arrivals."""
    rows = result.requests
    moments = [(t, 1) for t in rows["arrival_s"]] + [(t, -1) for t in rows["finish_s"]]
    return int(max(np.cumsum([change for _, change in sorted(moments, key=lambda m: (m[0], m[1]))])))


def test_max_concurrency_waits_at_the_client(play: Play) -> None:
    """Two at a time: other requests wait at the client, in order; the wait is reported and is no part of a latency."""
    workload = {
        "arrivals": {"process": "all_at_once"},
        "num_requests": 6,
        "max_concurrency": 2,
        "prompt_tokens": constant(16),
        "output_tokens": constant(10),
    }
    result = play(workload)
    rows = result.requests
    span_ms = 10_000 * STEP
    assert rows["request_id"].tolist() == list("012345")
    assert rows["client_wait_ms"].tolist() == [0, 0, span_ms, span_ms, 2 * span_ms, 2 * span_ms]
    assert rows["e2el_ms"].tolist() == [span_ms] * 6
    assert rows["ttft_ms"].tolist() == [1000 * STEP] * 6
    assert rows["queue_ms"].tolist() == [0] * 6
    assert concurrency(result) == 2
    assert result.summary_rows[0]["mean_client_wait_ms"] == span_ms


def test_max_concurrency_bounds_an_open_stream(play: Play) -> None:
    """At most the limit is at the server, no request is lost, and the order is kept."""
    workload = {
        "arrivals": {"process": "gamma", "rate_rps": 40.0, "cv": 3.0},
        "num_requests": 400,
        "max_concurrency": 5,
        "prompt_tokens": constant(16),
        "output_tokens": {"distribution": "geometric", "mean": 20},
    }
    result = play(workload)
    rows = result.requests
    assert concurrency(result) == 5
    assert (rows["status"] == "finished").all()
    assert sorted(rows["request_id"], key=int) == rows["request_id"].tolist()
    unlimited = play({key: value for key, value in workload.items() if key != "max_concurrency"}).requests
    wanted_s = rows["arrival_s"] - rows["client_wait_ms"] / 1000
    assert wanted_s.to_numpy() == pytest.approx(unlimited["arrival_s"].to_numpy(), rel=1e-12)


def test_who_still_waits_at_the_client_at_the_horizon_is_unfinished(play: Play) -> None:
    """All requests are accounted for: served, at the server, or still at the client when the run ends."""
    workload = {
        "arrivals": {"process": "all_at_once"},
        "num_requests": 6,
        "max_concurrency": 2,
        "prompt_tokens": constant(16),
        "output_tokens": constant(10),
    }
    result = play(workload, horizon_s=15 * STEP)
    rows = result.requests
    assert rows["status"].tolist() == ["finished"] * 2 + ["unfinished"] * 4
    assert rows["first_scheduled_s"].isna().tolist() == [False] * 4 + [True] * 2
    assert rows["client_wait_ms"].tolist()[4:] == [15_000 * STEP] * 2


def test_a_user_whose_requests_are_always_rejected_ends_the_run(play: Play) -> None:
    """Zero think time and requests that can never be served would loop at one instant: the run fails with the name."""
    workload = {**loop(1, arrivals_for_s=5.0), "prompt_tokens": constant(10_000_000)}
    with pytest.raises(RunError, match=r"user-0: \d+ requests in a row are rejected at 0 s"):
        play(workload)
