"""The capacity of padded waves with a few long requests: cut by the pool, correlated, and with two steady states."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simqueue as sq
from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.scenario import from_mapping
from simqueue.steptime.base import Batch, StepTime
from simqueue.theory.lengths import from_sample
from simqueue.theory.limits import Server
from simqueue.theory.waves import decode_seconds, waves

A, B, C, D = 0.01, 1e-4, 2e-5, 1e-8
"""Seconds per step, per decode, per prompt token and per context token."""
LINEAR = {
    "kind": "linear",
    "overhead_s": A,
    "per_decode_s": B,
    "per_prefill_token_s": C,
    "per_context_token_s": D,
}
SEATS = 32
FEW = {"distribution": "empirical", "values": [10, 2000], "weights": [0.95, 0.05]}
ONE = {"distribution": "constant", "value": 1}


def load_of(workload: dict[str, Any], blocks: int = 1_000_000, **policy: Any) -> PolicyLoad:
    """Return what is known of static waves."""
    made = {
        "step_time": LINEAR,
        "kv_cache": {"blocks": blocks},
        "max_model_len": 20_000,
        "workload": {"arrivals": {"process": "poisson", "rate_rps": 1.0}, "num_requests": 100, **workload},
        "policies": {"p": {"scheduler": "static", "max_num_seqs": SEATS, **policy}},
    }
    return policy_loads(from_mapping(made).resolve())["p"]


def pareto(rng: np.random.Generator, alpha: float, scale: float, most: int, number: int) -> list[int]:
    """Return whole numbers from a Pareto distribution, clipped at `most`."""
    return [int(one) for one in np.minimum(scale * (1 - rng.random(number)) ** (-1 / alpha), most)]


def gathered(pairs: Iterator[tuple[int, int]], blocks: int) -> float:
    """Return the requests per second of waves that are gathered from a long queue: the rules, with linear steps."""
    served, seconds = 0, 0.0
    rows = prompt = output = 0
    for p, o in pairs:
        longest = max(prompt, p), max(output, o)
        if rows == SEATS or (rows and (rows + 1) * -(-(sum(longest) - 1) // 16) > blocks):
            context = (output - 1) * prompt + output * (output - 1) / 2
            seconds += A + C * rows * prompt + (A + B * rows) * (output - 1) + D * rows * context
            served += rows
            rows, longest = 0, (p, o)
        rows, (prompt, output) = rows + 1, longest
    return served / seconds


def test_a_pool_that_cuts_the_waves_with_long_prompts() -> None:
    """With heavy tails a long request does not join a wave that it would pad beyond the pool, and the wave is short.

    So full queues carry more than full waves would; 80,000 requests give the rate to some 2 %.
    """
    rng, blocks = np.random.default_rng(5), SEATS * 4000 // 16
    prompts, outputs = pareto(rng, 1.2, 100, 8000, 80_000), pareto(rng, 1.3, 20, 600, 80_000)
    found = load_of(
        {
            "prompt_tokens": {"distribution": "pareto", "alpha": 1.2, "scale": 100, "max": 8000},
            "output_tokens": {"distribution": "pareto", "alpha": 1.3, "scale": 20, "max": 600},
        },
        blocks,
    )
    rate_rps = gathered(iter(zip(prompts, outputs, strict=True)), blocks)
    assert found.capacity is not None
    assert found.capacity.max_rate_rps == pytest.approx(rate_rps, rel=0.05)
    assert found.low_rps is not None
    assert found.high_rps is not None
    assert found.low_rps <= rate_rps <= found.high_rps
    assert not found.sure


def test_long_prompts_with_long_outputs() -> None:
    """If the longest prompt of a wave has its longest output too, its context is longer than that of independent ones.

    The sample is what was listed, so the rate of its waves in a random order is known to some 2 %.
    """
    rng = np.random.default_rng(6)
    lengths = pareto(rng, 1.5, 200, 8000, 4000)
    listed = [
        {"id": str(i), "arrival_s": i, "prompt_tokens": n, "output_tokens": max(1, n // 8)}
        for i, n in enumerate(lengths)
    ]
    made = {
        "step_time": {**LINEAR, "per_context_token_s": 1e-6},
        "kv_cache": {"blocks": 1_000_000},
        "max_model_len": 20_000,
        "workload": {"requests": listed},
        "policies": {"p": {"scheduler": "static", "max_num_seqs": SEATS}},
    }
    found = policy_loads(from_mapping(made).resolve())["p"]
    longest = np.array(lengths)[rng.integers(len(lengths), size=(20_000, SEATS))].max(axis=1)
    made_tokens = np.maximum(1, longest // 8)
    context = (made_tokens - 1) * longest + made_tokens * (made_tokens - 1) / 2
    seconds = A + C * SEATS * longest + (A + B * SEATS) * (made_tokens - 1) + 1e-6 * SEATS * context
    assert found.capacity is not None
    assert found.capacity.max_rate_rps == pytest.approx(SEATS / seconds.mean(), rel=0.04)


@pytest.mark.parametrize("seats", [1024, 8000, 20_000])
def test_large_waves_are_enough_for_bounds(seats: int) -> None:
    """Each large wave has a long request in it, so that all last as long as that one."""
    pairs = [(1000, 50) if i % 10 == 0 else (100, 5) for i in range(200)]
    listed = [{"arrival_s": i, "prompt_tokens": p, "output_tokens": o} for i, (p, o) in enumerate(pairs)]
    made = {
        "step_time": LINEAR,
        "kv_cache": {"blocks": 10**8},
        "workload": {"requests": listed},
        "policies": {"p": {"scheduler": "static", "max_num_seqs": seats, "batch": "fixed"}},
    }
    limit = policy_loads(from_mapping(made).resolve())["p"]
    context = 49 * 1000 + 50 * 49 / 2
    rate_rps = seats / (A + C * seats * 1000 + 49 * (A + B * seats) + D * seats * context)
    assert limit.capacity is not None
    assert limit.capacity.max_rate_rps == pytest.approx(rate_rps)
    assert "too few waves" not in limit.caution


def test_padding_that_grows_faster_than_the_wave() -> None:
    """A prompt of 20 is 2,000 tokens long, the others 10: full waves carry 31 requests a second, single ones 82.

    At a rate in between a queue that is short stays short, and one that is long becomes longer.
    """
    few = {"prompt_tokens": FEW, "output_tokens": ONE}
    found = load_of(few)
    any_long = 1 - 0.95**SEATS
    full_rps = SEATS / (A + C * SEATS * (2000 * any_long + 10 * (1 - any_long)))
    alone_rps = 1 / (A + C * (0.05 * 2000 + 0.95 * 10))
    assert found.capacity is not None
    assert found.capacity.max_rate_rps == pytest.approx(full_rps, rel=0.02)
    assert "only a short queue stays short" in found.caution
    assert found.low_rps is not None
    assert found.high_rps is not None
    assert found.low_rps <= full_rps < alone_rps <= found.high_rps
    assert load_of(few, batch="fixed").sure  # such waves are always full


@pytest.mark.parametrize(("at_once", "grows"), [(0, False), (400, True)])
def test_two_steady_states(at_once: int, grows: bool) -> None:
    """At 36 requests a second, above what full waves carry: the queue after 40 s depends on the queue at time 0."""
    rng = np.random.default_rng(7)
    gaps = rng.exponential(1 / 36, 36 * 40)
    arrivals = [0.0] * at_once + np.cumsum(gaps).tolist()
    prompts = rng.choice([10, 2000], p=[0.95, 0.05], size=len(arrivals)).tolist()
    listed = [
        {"id": str(i), "arrival_s": at_s, "prompt_tokens": n, "output_tokens": 1}
        for i, (at_s, n) in enumerate(zip(arrivals, prompts, strict=True))
    ]
    result = sq.run(
        {
            "step_time": LINEAR,
            "kv_cache": {"blocks": 1_000_000},
            "workload": {"requests": listed},
            "policies": {"p": {"scheduler": "static", "max_num_seqs": SEATS}},
        }
    )
    last = result.requests[result.requests["arrival_s"] > 30]["queue_ms"].mean()
    first = result.requests[result.requests["arrival_s"].between(0.01, 10)]["queue_ms"].mean()
    assert (last > max(first, 5000)) == grows
    assert (last < 1000) != grows


def test_waves_in_the_order_of_lengths_have_less_padding() -> None:
    """The closed form knows waves in the order of arrival; with one length there is only one order."""
    found = load_of({"prompt_tokens": FEW, "output_tokens": ONE}, order="shortest_prompt")
    assert "less padding: the capacity is at least" in found.caution
    assert load_of({"prompt_tokens": {**ONE, "value": 9}, "output_tokens": ONE}, order="shortest_prompt").sure


class Quadratic(StepTime):
    """Steps whose duration is the square of each prompt's tokens, or the context above 1,000 tokens."""

    def seconds(self, batch: Batch) -> float:
        """Return the duration of one step."""
        return 1e-9 * sum(new**2 for _, new in batch.prefill) + 1e-6 * max(1000, batch.context_tokens)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 4))
def test_the_longest_of_some_is_that_of_all_choices(sample: list[int], rows: int) -> None:
    """The mean longest prompt of a wave: over all waves that can be drawn from a small sample."""
    every = [max(chosen) for chosen in product(sample, repeat=rows)]
    lengths = from_sample(np.array(sample), np.array(sample))
    assert [one.mean() for one in lengths.longest(rows)] == pytest.approx([np.mean(every)] * 2, rel=1e-9)


def test_a_prefill_that_is_convex_in_the_prompt() -> None:
    """The mean duration of a prefill is that over the longest prompts, not that of the mean longest prompt."""
    prompts = np.array(pareto(np.random.default_rng(8), 1.2, 50, 15_000, 20_000))
    reached = (np.arange(len(prompts) + 1) / len(prompts)) ** SEATS
    square = float(np.sum(np.sort(prompts) ** 2.0 * np.diff(reached)))
    found = waves(Quadratic(), from_sample(prompts, np.ones(len(prompts))), Server("static", SEATS))
    assert 1 / found.max_rate_rps == pytest.approx(1e-9 * square + 1e-6 * 1000 / SEATS, rel=0.01)


@pytest.mark.parametrize(("prompt", "output"), [(10, 2), (10, 7), (10, 400), (900, 500)])
def test_some_decode_steps_for_all(prompt: int, output: int) -> None:
    """The decode steps of a wave, of which only some are computed, where the limit changes on the way."""
    each, some = (decode_seconds(Quadratic(), 4, prompt, output, each=each) for each in (True, False))
    assert some == pytest.approx(each, rel=0.01)
