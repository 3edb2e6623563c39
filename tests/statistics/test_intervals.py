"""Intervals: against textbook numbers, an independent implementation, and their own promise of coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from simqueue.errors import InputError
from simqueue.statistics.intervals import carries_percentile, mean_interval


def lindley_mean_waits(seed: int, runs: int, customers: int, load: float = 0.8) -> np.ndarray:
    """Return the mean wait of each of `runs` independent M/M/1 queues that start empty, by Lindley's recursion."""
    rng = np.random.default_rng(seed)
    wait = np.zeros(runs)
    total = np.zeros(runs)
    for _ in range(customers):
        total += wait
        wait = np.maximum(0.0, wait + rng.exponential(1.0, runs) - rng.exponential(1 / load, runs))
    return total / customers


def covered(samples: np.ndarray, truth: float) -> float:
    """Return the share of rows whose 95 % interval contains the true mean."""
    found = [mean_interval(row.tolist()) for row in samples]
    return float(np.mean([abs(one.value - truth) <= (one.half_width or 0) for one in found]))


def test_the_interval_is_students() -> None:
    """Mean and half-width are those of scipy's t-interval."""
    values = [3.0, 5.0, 4.0, 9.0]
    found = mean_interval(values, 0.9)
    expected = stats.t.interval(0.9, 3, loc=np.mean(values), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected)


def test_one_value_has_no_interval() -> None:
    """From one replication nothing is known about the spread: undefined, not zero."""
    found = mean_interval([3.0])
    assert (found.value, found.half_width, found.low, found.relative) == (3.0, None, None, None)


def test_nothing_has_no_mean() -> None:
    """An interval of no values, and a confidence outside (0, 1), are errors."""
    with pytest.raises(InputError, match="at least one value"):
        mean_interval([])
    with pytest.raises(InputError, match="confidence"):
        mean_interval([1.0, 2.0], 1.0)


@pytest.mark.slow
def test_intervals_over_replications_cover_what_they_promise() -> None:
    """400 times 10 replications of 5,000 customers of M/M/1 at 0.8: nominal 95 % covers 92 to 97 %."""
    waits = lindley_mean_waits(20_240_501, 4000, 5000)
    assert 0.92 <= covered(waits.reshape(400, 10), 4.0) <= 0.97


@pytest.mark.slow
def test_an_interval_over_requests_would_not() -> None:
    """The interval this package never makes, over the 5,000 successive waits of one run, covers less than half."""
    rng = np.random.default_rng(7)
    runs, customers = 200, 5000
    wait, history = np.zeros(runs), np.empty((customers, runs))
    for i in range(customers):
        history[i] = wait
        wait = np.maximum(0.0, wait + rng.exponential(1.0, runs) - rng.exponential(1.25, runs))
    half_widths = 1.96 * history.std(axis=0, ddof=1) / np.sqrt(customers)
    assert np.mean(np.abs(history.mean(axis=0) - 4.0) <= half_widths) < 0.5


@pytest.mark.parametrize(("n", "q", "carried"), [(99, 99, False), (100, 99, True), (20, 95, True), (19, 95, False)])
def test_what_a_sample_carries(n: int, q: float, carried: bool) -> None:
    """A percentile can be read off a sample in which one value is expected beyond it."""
    assert carries_percentile(n, q) is carried
