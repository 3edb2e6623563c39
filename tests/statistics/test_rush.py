"""Stretches in which more arrives than can be served, read off recorded arrivals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simqueue.statistics.rush import rush_share, rushes, smoothed_rates
from simqueue.workload.arrivals.course import rate_course
from simqueue.workload.arrivals.grouped import RampArrivals
from simqueue.workload.arrivals.modulated import BurstArrivals
from simqueue.workload.arrivals.renewal import GammaArrivals, PoissonArrivals
from simqueue.workload.arrivals.simple import AllAtOnce
from simqueue.workload.arrivals.varying import SinusoidArrivals, TabulatedArrivals

CAPACITY = 10.0
DAY = SinusoidArrivals(7.5, 0.8, 1000.0, 0.0)
"""A mean load of 0.75, from 0.15 to 1.35."""
ABOVE = 0.5 - math.asin((1 / 0.75 - 1) / 0.8) / math.pi
"""The share of time in which 0.75 (1 + 0.8 sin) exceeds 1: 0.363."""


def test_the_exact_share_of_a_day() -> None:
    """Over whole days it is that of the sine; over the first quarter it ends at the top and begins where it crosses."""
    course = rate_course(DAY, 3000.0, 22_500)
    assert course is not None
    assert course.varies
    assert course.share_above(CAPACITY) == pytest.approx(ABOVE, abs=2e-4)
    quarter = rate_course(DAY, 250.0, 1875)
    assert quarter is not None
    assert quarter.share_above(CAPACITY) == pytest.approx(2 * ABOVE, abs=2e-4)


def test_the_exact_shares_of_other_processes() -> None:
    """Pieces by their lengths, bursts by their share, a ramp by the time that it takes, others all or nothing."""
    pieces = TabulatedArrivals(np.array([30.0, 40.0]), np.array([5.0, 25.0]), repeat=True)
    bursts = BurstArrivals(6.0, peak_to_mean=4.0, mean_burst_s=20.0)
    # The rate rises from 5 to 20 in equal steps per request: the time of a request is 1 / rate.
    ramp = RampArrivals(5.0, 20.0, exponential=False, gaps=GammaArrivals(1.0))
    steady = PoissonArrivals(8.0)
    shares = [0.25, 0.25, math.log(20 / 10) / math.log(20 / 5), 0.0]
    for process, share in zip((pieces, bursts, ramp, steady), shares, strict=True):
        course = rate_course(process, 4000.0, 5000)
        assert course is not None
        assert course.share_above(CAPACITY) == pytest.approx(share, abs=1e-3)
        assert course.varies == (process is not steady)
    assert rate_course(AllAtOnce(0.0), 1.0, 10) is None


@pytest.mark.parametrize("seed", range(6))
def test_a_recorded_day_has_nearly_its_share(seed: int) -> None:
    """Of two recorded days with 15,000 requests, the stretches are within 0.05 of the exact share."""
    arrival_s = DAY.times(np.random.default_rng(seed), until_s=2000.0)
    assert rush_share(arrival_s, CAPACITY) == pytest.approx(ABOVE, abs=0.05)
    assert 2 <= len(rushes(arrival_s, CAPACITY)) <= 4


@pytest.mark.parametrize("seed", range(6))
def test_noise_is_no_rush(seed: int) -> None:
    """Recorded Poisson traffic of 2,000 requests: at a load of 0.8 and 0.9 the share is 0, at 1.5 it is 1."""
    for rate, share in ((8.0, 0.0), (9.0, 0.0), (15.0, 1.0)):
        arrival_s = PoissonArrivals(rate).times(np.random.default_rng(seed), num_requests=2000)
        assert rush_share(arrival_s, CAPACITY) == pytest.approx(share, abs=0.03)


def test_the_rates_count_every_arrival() -> None:
    """At an even rate, all cells have it, those at the ends too; in no time, nothing is there."""
    edges, rates = smoothed_rates(np.arange(1001) / 10)
    assert (edges[0], edges[-1]) == (0.0, 100.0)
    assert rates == pytest.approx(np.full(len(rates), 10.0), rel=0.02)
    assert rush_share(np.zeros(50), CAPACITY) == 0.0
    assert rushes(np.empty(0), CAPACITY) == []
