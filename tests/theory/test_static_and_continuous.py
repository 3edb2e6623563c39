"""Static batching is bulk service: equal to continuous batching with equal lengths, and slower with unequal ones."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pytest

AMPLE = {"block_size": 16, "blocks": 100_000}
EXACT = 1e-9


def makespans(step_time: dict[str, Any], workload: dict[str, Any], seats: int, play: Any) -> dict[str, float]:
    """Return how long static waves and continuous batching take for the same backlog, in seconds."""
    keys = {"max_num_seqs": seats}
    policies = {
        "static": {"scheduler": "static", **keys},
        "continuous": {"scheduler": "continuous", "max_num_batched_tokens": 100_000, **keys},
    }
    result = play({"step_time": step_time, "kv_cache": AMPLE, "workload": workload, "policies": policies})
    return {row["policy"]: row["duration_s"] for row in result.summary_rows}


def test_with_equal_lengths_both_have_the_same_capacity(play: Any, offline: Any) -> None:
    """P = 500, O = 100, 16 seats: both serve 16 requests in s(16) = 2.952 s, a capacity of 5.4201 a second."""
    step_time = {"kind": "linear", "overhead_s": 0.02, "per_decode_s": 5e-4, "per_prefill_token_s": 2e-5}
    a, b, c, prompt, output, seats, rounds = 0.02, 5e-4, 2e-5, 500, 100, 16, 10
    wave_s = (a + c * prompt * seats) + (output - 1) * (a + b * seats)
    assert wave_s == pytest.approx(2.952, rel=EXACT)
    found = makespans(step_time, offline(*[(prompt, output)] * seats * rounds), seats, play)
    for policy, time_s in found.items():
        assert time_s == pytest.approx(rounds * wave_s, rel=EXACT), policy
        assert seats * rounds / time_s == pytest.approx(5.4201, abs=5e-5), policy
    # the same capacity from rate conservation: B / (aO + Bw), w the work of a request that no batching shares
    assert seats / wave_s == pytest.approx(seats / (a * output + seats * (b * (output - 1) + c * prompt)), rel=EXACT)


def list_schedule_steps(outputs: list[int], seats: int) -> int:
    """Return the steps of a backlog on `seats` seats, each freed seat going to the next in line at once."""
    free_at = [0] * seats
    for output in outputs:
        heapq.heappush(free_at, heapq.heappop(free_at) + output)
    return max(free_at)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("seats", [1, 2, 8, 32])
def test_a_backlog_of_unequal_outputs(seats: int, seed: int, play: Any, offline: Any) -> None:
    """Steps of constant length: static takes the sum over waves of the longest output, continuous fills each seat."""
    outputs = np.random.default_rng(seed).geometric(1 / 20, 96).tolist()
    step_s = 2.0**-7  # exact in binary, so that sums of steps are exact too
    found = makespans({"kind": "constant", "seconds": step_s}, offline(*[(50, o) for o in outputs]), seats, play)
    waves = [max(outputs[i : i + seats]) for i in range(0, len(outputs), seats)]
    assert found["static"] == sum(waves) * step_s
    assert found["continuous"] == list_schedule_steps(outputs, seats) * step_s
    assert found["continuous"] <= found["static"]


def test_on_one_seat_both_are_the_same_server(play: Any, offline: Any) -> None:
    """With one seat there is no wave to wait for: every request has the same times under both."""
    outputs = np.random.default_rng(5).geometric(1 / 20, 40).tolist()
    policies = {name: {"scheduler": name, "max_num_seqs": 1} for name in ("static", "continuous", "chunked")}
    step_time = {"kind": "linear", "overhead_s": 0.01, "per_decode_s": 1e-3, "per_prefill_token_s": 1e-5}
    workload = offline(*[(50, output) for output in outputs])
    result = play({"step_time": step_time, "kv_cache": AMPLE, "workload": workload, "policies": policies})
    finishes = {policy: table["finish_s"].tolist() for policy, table in result.requests.groupby("policy")}
    assert finishes["static"] == finishes["continuous"] == finishes["chunked"]


@pytest.mark.parametrize("seats", [2, 8, 32])
def test_the_loss_of_static_is_the_longest_against_the_mean(seats: int, play: Any, offline: Any) -> None:
    """A backlog in which every wave holds the same outputs, shuffled: the ratio of throughputs tends to max / mean.

    With continuous batching a seat idles only while the last requests drain, less than one longest output, so
    ``sum / seats <= steps < sum / seats + max`` brackets its makespan.
    """
    rng = np.random.default_rng(11)
    one_wave = rng.geometric(1 / 20, seats)
    outputs = [int(o) for _ in range(40) for o in rng.permutation(one_wave)]
    step_s = 2.0**-7
    found = makespans({"kind": "constant", "seconds": step_s}, offline(*[(50, o) for o in outputs]), seats, play)
    longest, mean = int(one_wave.max()), float(one_wave.mean())
    assert found["static"] == 40 * longest * step_s
    assert 40 * mean * step_s <= found["continuous"] < (40 * mean + longest) * step_s
    assert 40 * longest / (40 * mean + longest) < found["static"] / found["continuous"] <= longest / mean
