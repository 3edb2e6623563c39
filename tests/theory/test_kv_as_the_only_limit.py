"""A KV pool in which each request reserves the same amount is a limit on seats, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

PROMPT, BLOCK_SIZE, SEATS = 100, 16, 5


def random_traffic(rng: np.random.Generator, outputs: list[int]) -> dict[str, Any]:
    """Return Poisson arrivals of equal prompts, faster than five seats serve them."""
    arrivals = np.cumsum(rng.exponential(0.08, len(outputs))).tolist()
    rows = [
        {"arrival_s": at_s, "prompt_tokens": PROMPT, "output_tokens": output}
        for at_s, output in zip(arrivals, outputs, strict=True)
    ]
    return {"requests": rows}


def same_tables(scheduler: str, workload: dict[str, Any], pool: dict[str, Any], play: Any) -> None:
    """Run the traffic with a pool without a cap on seats and with a cap without a pool; compare all tables."""
    step_time = {"kind": "linear", "overhead_s": 0.01, "per_decode_s": 2e-3, "per_prefill_token_s": 5e-5}
    result = play(
        {
            "step_time": step_time,
            "max_model_len": PROMPT + 60,
            "workload": workload,
            "policies": {
                "pool": {"scheduler": scheduler, "max_num_seqs": 256, "kv_cache": {"block_size": BLOCK_SIZE, **pool}},
                "cap": {"scheduler": scheduler, "max_num_seqs": SEATS, "kv_cache": {"blocks": 100_000}},
            },
        }
    )
    by_pool, by_cap = (
        result.requests[result.requests["policy"] == policy].drop(columns="policy").reset_index(drop=True)
        for policy in ("pool", "cap")
    )
    assert by_pool.equals(by_cap)
    assert (by_pool["queue_ms"] > 100).any(), "the limit is meant to bind"
    running, waiting = result.steps["running"], result.steps["waiting"]
    assert running.max() == SEATS
    assert waiting.max() > 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scheduler", ["continuous", "chunked", "static"])
def test_a_pool_of_equal_reservations_is_a_cap_on_seats(scheduler: str, seed: int, play: Any) -> None:
    """Requests that all reserve M blocks of K run as on floor(K / M) seats: the request tables are identical."""
    reservation = -(-(PROMPT + 30 - 1) // BLOCK_SIZE)
    pool = {"layout": "contiguous", "blocks": SEATS * reservation + reservation - 1}
    workload = random_traffic(np.random.default_rng(seed), [30] * 80)
    same_tables(scheduler, workload, pool, play)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scheduler", ["continuous", "chunked"])
def test_reserving_the_longest_is_a_cap_on_seats_whatever_the_outputs(scheduler: str, seed: int, play: Any) -> None:
    """With reserve: model_max every request holds max_model_len tokens, whatever the distribution of outputs."""
    reservation = (PROMPT + 60) // BLOCK_SIZE
    pool = {"layout": "contiguous", "reserve": "model_max", "blocks": SEATS * reservation + reservation - 1}
    rng = np.random.default_rng(seed)
    workload = random_traffic(rng, rng.integers(1, 61, 80).tolist())
    same_tables(scheduler, workload, pool, play)
