"""Requests that start together end together, if they are about equal or multiples of the most frequent one."""

from __future__ import annotations

import numpy as np
import pytest

from simqueue.theory.rhythm import keeps_rhythm

RNG = np.random.default_rng(3)
SAMPLES = {
    "equal": np.full(1000, 40),
    "equal and long": np.full(1000, 30_011),
    "nearly equal": RNG.integers(38, 43, 20_000),
    "multiples": RNG.choice([4, 76], p=[0.9, 0.1], size=20_000),
    "mostly equal": RNG.choice([5, 61], p=[0.95, 0.05], size=20_000),
    "geometric": RNG.geometric(1 / 40, 20_000),
    "uniform": RNG.integers(1, 80, 20_000),
    "two lengths": RNG.choice([20, 27], size=20_000),
    "lognormal": np.maximum(1, RNG.lognormal(4, 0.5, 20_000).astype(int)),
}


def starts(steps: np.ndarray, generations: int = 5) -> float:
    """Return by how much the chance of a start still varies some generations after a start at time 0: from 0 to 1.

    The chance of a start after n steps is the sum over the last length k of the chance of a start after n - k.
    """
    lengths, counts = np.unique(steps, return_counts=True)
    mean = int(steps.mean())
    chance = np.zeros(generations * mean + 1)
    chance[0] = 1
    for n in range(1, len(chance)):
        fits = lengths <= n
        chance[n] = counts[fits] @ chance[n - lengths[fits]] / len(steps)
    last = chance[-2 * mean :]
    return float((last.max() - last.min()) / (last.max() + last.min()))


@pytest.mark.parametrize("name", [name for name in SAMPLES if "long" not in name])
def test_a_rhythm_is_one_that_is_left_after_some_generations(name: str) -> None:
    """The renewal sequence of the lengths still swings after four generations, or it is nearly even."""
    left = starts(SAMPLES[name])
    assert left > 0.5 or left < 0.35
    assert keeps_rhythm(SAMPLES[name]) == (left > 0.5)


def test_equal_lengths_of_any_size_keep_it() -> None:
    """However long they are."""
    assert keeps_rhythm(SAMPLES["equal and long"])
    assert keeps_rhythm(np.ones(10, dtype=int))
