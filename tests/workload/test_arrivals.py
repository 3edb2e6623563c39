"""Promises of the arrival processes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from simqueue.errors import InputError
from simqueue.workload import WorkloadSettings
from simqueue.workload.arrivals.renewal import PoissonArrivals
from simqueue.workload.arrivals.simple import AllAtOnce, ConstantArrivals
from simqueue.workload.streams import stream


def poisson(rate_rps: float) -> PoissonArrivals:
    """Return a Poisson process."""
    return PoissonArrivals(rate_rps)


def constant(rate_rps: float) -> ConstantArrivals:
    """Return evenly spaced arrivals."""
    return ConstantArrivals(rate_rps)


def at_once(at_s: float = 0.0) -> AllAtOnce:
    """Return arrivals at one instant."""
    return AllAtOnce(at_s)


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_poisson_has_the_rate_that_was_asked(seed: int) -> None:
    """Case 47: exactly 10 000 requests at 200/s, with the mean, the CV and the distribution of exponential gaps."""
    times = poisson(200).times(stream(seed, 0, "arrivals"), num_requests=10_000)
    gaps = np.diff(times, prepend=0.0)
    assert len(times) == 10_000
    assert abs(gaps.mean() - 0.005) < 3 * 0.005 / math.sqrt(10_000)
    assert abs(gaps.std() / gaps.mean() - 1) < 0.03
    assert stats.kstest(gaps, "expon", args=(0, 1 / 200)).pvalue > 0.01


def test_poisson_gaps_are_independent() -> None:
    """Neighbouring gaps of a Poisson process are uncorrelated: the lag-1 coefficient is within 4/sqrt(n) of 0."""
    gaps = np.diff(poisson(7).times(stream(11, 0, "arrivals"), num_requests=100_000), prepend=0.0)
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 4 / math.sqrt(100_000)


def test_number_in_a_window_is_poisson() -> None:
    """The count before until_s has mean and variance rate * until_s (|z| < 4 over 2000 replications)."""
    counts = np.array([len(poisson(16).times(stream(3, r, "arrivals"), until_s=2.0)) for r in range(2000)])
    mean_z = (counts.mean() - 32) / math.sqrt(32 / 2000)
    # The variance of a sample variance of n Poisson counts with mean m is about (m + 2 m²) / n.
    variance_z = (counts.var(ddof=1) - 32) / math.sqrt((32 + 2 * 32**2) / 2000)
    assert abs(mean_z) < 4
    assert abs(variance_z) < 4


@pytest.mark.parametrize("n", [1, 7, 65_536, 65_537, 150_000])
def test_a_shorter_run_is_the_beginning_of_a_longer_one(n: int) -> None:
    """For any number of requests, the first n arrivals at one seed are the same bits."""
    longest = poisson(100).times(stream(1, 0, "arrivals"), num_requests=200_000)
    assert poisson(100).times(stream(1, 0, "arrivals"), num_requests=n).tobytes() == longest[:n].tobytes()
    by_time = poisson(100).times(stream(1, 0, "arrivals"), until_s=float(longest[n]))
    assert by_time.tobytes() == longest[:n].tobytes()


def test_another_rate_stretches_the_same_pattern() -> None:
    """Halving the rate doubles every gap (exactly, because 2 is a power of two): common random numbers."""
    fast = poisson(8).times(stream(5, 0, "arrivals"), num_requests=1000)
    slow = poisson(4).times(stream(5, 0, "arrivals"), num_requests=1000)
    assert (slow == 2 * fast).all()


def test_whichever_comes_first() -> None:
    """With both a number and a time, the earlier of the two ends the arrivals."""
    assert len(constant(10).times(stream(0, 0, "x"), num_requests=5, until_s=100)) == 5
    assert len(constant(10).times(stream(0, 0, "x"), num_requests=1000, until_s=0.95)) == 10
    assert len(poisson(10).times(stream(0, 0, "x"), num_requests=5, until_s=1e6)) == 5


def test_constant_arrivals_are_at_i_over_rate() -> None:
    """The i-th arrival is at i/rate, and none is exactly at until_s."""
    times = constant(8).times(stream(0, 0, "x"), until_s=1.0)
    assert times.tolist() == [0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875]


def test_all_at_once() -> None:
    """All requests arrive at at_s, and none if at_s is not before until_s."""
    assert at_once(2.5).times(stream(0, 0, "x"), num_requests=3).tolist() == [2.5, 2.5, 2.5]
    assert len(at_once(2.5).times(stream(0, 0, "x"), num_requests=3, until_s=2.5)) == 0
    assert at_once().times(stream(0, 0, "x"), num_requests=2).tolist() == [0, 0]


def test_moments_for_theory() -> None:
    """Each process has a rate and a squared coefficient of variation of its gaps, or None."""
    assert (poisson(3).mean_rate_rps, poisson(3).gap_scv) == (3, 1)
    assert (constant(3).mean_rate_rps, constant(3).gap_scv) == (3, 0)
    assert (at_once().mean_rate_rps, at_once().gap_scv) == (None, None)


@pytest.mark.parametrize("process", ["poisson", "constant"])
@pytest.mark.parametrize("rate", [0, -1, math.nan, math.inf, "10", True, None])
def test_impossible_rates_are_rejected(process: str, rate: Any) -> None:
    """Case 49: a rate of 0, below 0, NaN or infinity, or one that is not a number, is an error before the run."""
    lengths = {"distribution": "constant", "value": 1}
    workload = {
        "arrivals": {"process": process, "rate_rps": rate},
        "num_requests": 3,
        "prompt_tokens": lengths,
        "output_tokens": lengths,
    }
    with pytest.raises(ValidationError) as caught:
        WorkloadSettings.model_validate(workload)
    assert caught.value.errors()[0]["loc"][-1] == "rate_rps"


def test_an_endless_process_is_rejected() -> None:
    """Without a number and a time there is no end, which is an error that names both keys."""
    with pytest.raises(InputError, match="num_requests, or arrivals_for_s"):
        poisson(1).times(stream(0, 0, "x"))
    with pytest.raises(InputError, match="num_requests"):
        at_once().times(stream(0, 0, "x"), until_s=1)


def test_absurd_numbers_are_rejected_at_once() -> None:
    """A typing error that would make 1e18 requests, or wait longer than floats can tell, is an error and not a hang."""
    with pytest.raises(InputError, match=r"1e\+18 requests"):
        constant(1e18).times(stream(0, 0, "x"), until_s=1)
    with pytest.raises(InputError, match="rate_rps"):
        poisson(1e-300).times(stream(0, 0, "x"), num_requests=10)
    assert len(poisson(5e-324).times(stream(0, 0, "x"), num_requests=10, until_s=30)) == 0
