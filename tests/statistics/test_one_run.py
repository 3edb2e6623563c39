"""Intervals from a single run: coverage where the truth is known, and what they do with odd input."""

from __future__ import annotations

import numpy as np
import pytest

from simqueue.results import onerun
from simqueue.statistics import batchmeans, regenerative
from studies.certainty.one_run import coverage


@pytest.mark.parametrize(("arrivals", "load"), [("Poisson", 0.8), ("bursty (gamma, 1/4)", 0.8)])
def test_intervals_of_single_runs_cover(arrivals: str, load: float) -> None:
    """Of 60 runs of 5,000 requests at least 50 intervals contain the truth: 95 % do with a chance of 0.9998."""
    found = coverage(arrivals, load, 5000, 60)
    for name in ("mean, batch means", "mean, regenerative", "throughput", "median"):
        covered, given, _ = found[name]
        assert given >= 55, name
        assert covered >= given - 10, name


def test_batch_means_of_independent_values_are_near_the_usual_interval() -> None:
    """Without correlation or skewness the interval is that of the mean of n values, wider by less than 2.5 times."""
    values = np.random.default_rng(1).normal(10, 2, 20_000)
    found = batchmeans.mean_by_batches(values)
    assert found.low is not None
    assert found.high is not None
    assert found.value == pytest.approx(values.mean())
    half = 1.96 * 2 / np.sqrt(20_000)
    assert half < (found.high - found.low) / 2 < 2.5 * half


def test_the_lag_check_refuses_what_is_one_long_wave() -> None:
    """A value that drifts through the whole run has no independent batches."""
    found = batchmeans.mean_by_batches(np.sin(np.linspace(0, 2 * np.pi, 5000)) + 5)
    assert found.low is None
    assert "too few independent batches" in found.reason


def test_constant_values_have_an_interval_without_width() -> None:
    """Values that differ by rounding only are one value."""
    values = 0.1 * (1 + 1e-15 * np.random.default_rng(2).normal(size=5000))
    found = batchmeans.mean_by_batches(values)
    assert (found.low, found.high) == (found.value, found.value)


def test_cycles_begin_with_requests_that_find_the_system_empty() -> None:
    """The fourth request comes when all three before it have left, also the second, which leaves last."""
    arrival_s, leave_s = np.array([0.0, 1, 2, 6, 7]), np.array([3.0, 6, 4, 6.5, 9])
    assert regenerative.cycle_starts(arrival_s, leave_s).tolist() == [0, 3, 4]
    assert regenerative.cycle_starts(arrival_s, np.array([3.0, np.inf, 4, 6.5, 9])).tolist() == [0]


def test_regenerative_means_are_those_of_complete_cycles_and_skip_what_has_no_value() -> None:
    """300 cycles of two requests with 1 and 3 and one without a value: the mean is 2, whatever the last cycle has."""
    values = np.array([1.0, 3.0, np.nan] * 300 + [99.0])
    found = regenerative.mean_by_cycles(values, np.arange(0, 901, 3))
    assert (found.value, found.low, found.high, found.based_on) == (2.0, 2.0, 2.0, "300 cycles")
    few = regenerative.mean_by_cycles(values, np.arange(0, 30, 3))
    assert few.low is None
    assert "emptied only 9 times" in few.reason


@pytest.mark.parametrize(("swing", "changes"), [(0.0, False), (0.3, True), (0.8, True)])
def test_a_day_is_no_steady_state(swing: float, changes: bool) -> None:
    """Arrivals with one sinusoidal period drift; a Poisson process and a bursty one do not."""
    rng = np.random.default_rng(3)
    at = np.cumsum(rng.exponential(1, 20_000))
    until = float(at[-1])
    kept = at[rng.random(20_000) < (1 + swing * np.sin(2 * np.pi * at / until)) / (1 + swing)]
    assert onerun.rate_changes(kept, 0.0, until) is changes
    bursty = np.cumsum(rng.gamma(0.25, 4, 20_000))
    assert not onerun.rate_changes(bursty, 0.0, float(bursty[-1]))
