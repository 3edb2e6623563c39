"""The duration of steps with prompts of random lengths, and one request after another: against sums by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simqueue.steptime.base import Batch, StepTime
from simqueue.steptime.linear import LinearStepTime
from simqueue.theory.capacity import capacity
from simqueue.theory.lengths import from_sample
from simqueue.theory.limits import Server
from simqueue.theory.mixture import StepSizes, pieces_of, steps_seconds


class Roof(StepTime):
    """Steps of 1 ms, or 1 us per prompt token and 1 ns per pair of prompt tokens if that is more."""

    def seconds(self, batch: Batch) -> float:
        """Return the duration of one step."""
        return max(1e-3, sum(1e-6 * new + 1e-9 * new * (past + new / 2) for past, new in batch.prefill))


def roof(prompts: tuple[int, ...]) -> float:
    """Return the duration of a step of `Roof` with these prompts."""
    return max(1e-3, sum(1e-6 * n + 1e-9 * n * n / 2 for n in prompts))


def test_a_step_is_longer_if_prompts_differ() -> None:
    """One step in four has a prompt and one in four has two: the mean over all choices of short and long ones."""
    lengths = np.array([100.0] * 9 + [4000.0])
    sizes = StepSizes(0.0, float(lengths.mean()), 0.0, None, lengths, whole=True)
    prompts = np.tile([0, 1, 0, 2], 20_000)
    chances = {100: 0.9, 4000: 0.1}
    one = sum(chances[n] * roof((n,)) for n in chances)
    two = sum(chances[n] * chances[m] * roof((n, m)) for n, m in product(chances, repeat=2))
    found = steps_seconds(Roof(), sizes, np.zeros(len(prompts)), prompts)
    assert found == pytest.approx((2 * 1e-3 + one + two) / 4, rel=0.01)
    assert found > 1.2 * (2 * 1e-3 + roof((490,)) + roof((490, 490))) / 4  # of mean prompts


@settings(max_examples=40)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 20))
def test_tokens_beyond_the_budget_wait_for_the_next_step(prompts: list[int], budget: int) -> None:
    """Prompts of 7 tokens, computed in turn: each step takes what is there, up to the budget."""
    step = LinearStepTime(0.01, 1.0, 0, 0, 0)
    waiting, done = 0, 0
    for n in prompts:
        waiting += 7 * n
        done += min(waiting, budget)
        waiting -= min(waiting, budget)
    found = steps_seconds(step, StepSizes(0, 7, 0, budget), np.zeros(len(prompts)), np.array(prompts))
    # groups of steps have whole tokens on average
    assert found * len(prompts) == pytest.approx(0.01 * len(prompts) + done, abs=0.5 * len(prompts))


@settings(max_examples=40)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=5), st.integers(1, 60))
def test_pieces_are_those_of_all_prompts(prompts: list[int], most: int) -> None:
    """Cut by hand: the values are pieces, in their order, the shortest and the longest at the ends."""
    pieces = sorted(min(most, n - past) for n in prompts for past in range(0, n, most))
    found = pieces_of(np.array(prompts, dtype=float), most)
    assert len(found) == len(prompts)
    assert set(found.tolist()) <= set(pieces)
    assert found.tolist() == sorted(found.tolist())


@pytest.mark.parametrize("batching", ["mixed", "separate", "chunked", "static"])
def test_one_request_after_another(batching: str) -> None:
    """With one slot a request takes its steps alone: prompt, or its pieces of up to 32 tokens, then its decodes."""
    a, b, c, d = 0.01, 1e-3, 1e-4, 1e-6
    rng = np.random.default_rng(4)
    prompts = rng.integers(1, 200, 5000)
    outputs = np.maximum(1, prompts // 3)
    step = LinearStepTime(a, c, 0, b, d)
    pieces = np.ceil(prompts / 32) if batching == "chunked" else np.ones(len(prompts))
    context = (outputs - 1) * prompts + outputs * (outputs - 1) / 2
    seconds = a * pieces + c * prompts + (a + b) * (outputs - 1) + d * context
    budget = {"chunked": 32, "static": None}.get(batching, 4096)
    found = capacity(step, from_sample(prompts, outputs), Server(batching, 1, budget))  # type: ignore[arg-type]
    assert 1 / found.max_rate_rps == pytest.approx(float(seconds.mean()), rel=0.005)
    assert (found.binding, found.running) == ("slots", 1)


def test_one_long_prompt_after_another_is_convex() -> None:
    """The prefill of one prompt at a time is averaged over prompts, and not computed for the mean prompt."""
    prompts = np.array([100] * 95 + [8000] * 5)
    mean = 0.95 * roof((100,)) + 0.05 * roof((8000,))
    found = capacity(Roof(), from_sample(prompts, np.full(100, 3)), Server("chunked", 1, 16_384))
    assert 1 / found.max_rate_rps == pytest.approx(mean + 2 * 1e-3, rel=0.02)


def test_separate_steps_of_prompts_that_differ() -> None:
    """Answers of one token: each step has the prompts of both slots, at random."""
    prompts = np.array([100] * 9 + [4000])
    found = capacity(Roof(), from_sample(prompts, np.ones(10)), Server("separate", 2))
    chances = {100: 0.9, 4000: 0.1}
    mean = sum(chances[n] * chances[m] * roof((n, m)) for n, m in product(chances, repeat=2))
    assert found.max_rate_rps == pytest.approx(2 / mean, rel=0.02)


@pytest.mark.parametrize("values", [(1, 2, 11), (3, 4, 5, 30), (1, 5, 23, 60)])
def test_separate_prompt_steps_follow_each_other_where_answers_have_one_token(values: tuple[int, ...]) -> None:
    """Seats are filled in separate steps until none is free, then all decode: played by hand with 16 seats."""
    a, b, seats, rng = 0.02, 1e-3, 16, np.random.default_rng(9)
    drawn = iter(rng.choice(values, 60_000).tolist())
    left: list[int] = []
    prompt_steps = decode_steps = decodes = served = 0
    for _ in range(6000):
        while len(left) < seats:
            new = [next(drawn) - 1 for _ in range(seats - len(left))]
            served += len(new)
            prompt_steps += 1
            left += [n for n in new if n]
        decode_steps += 1
        decodes += len(left)
        left = [n - 1 for n in left if n > 1]
        if served > 50_000:
            break
    seconds = a * (prompt_steps + decode_steps) + b * decodes
    lengths = from_sample(np.full(len(values), 10), np.array(values))
    found = capacity(LinearStepTime(a, 0, 0, b, 0), lengths, Server("separate", seats))
    assert found.max_rate_rps == pytest.approx(served / seconds, rel=0.02)
