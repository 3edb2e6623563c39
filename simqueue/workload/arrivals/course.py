"""The rate of an arrival process over time, as shares of the time at each rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from simqueue.workload.arrivals.base import ArrivalProcess, Floats
from simqueue.workload.arrivals.grouped import RampArrivals
from simqueue.workload.arrivals.modulated import BurstArrivals
from simqueue.workload.arrivals.varying import VaryingArrivals

_MOMENTS: Final = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class RateCourse:
    """How long a process has which rate.

    Attributes
    ----------
    shares, rates_rps : float64 arrays of the same shape
        Shares of the time, with a sum of 1, and the expected arrivals per second in them.
    """

    shares: Floats
    rates_rps: Floats

    @property
    def varies(self) -> bool:
        """Whether there are different rates."""
        return bool(np.ptp(self.rates_rps) > 0)

    def share_above(self, rate_rps: float) -> float:
        """Return the share of the time in which more than `rate_rps` arrive."""
        return float(self.shares[self.rates_rps > rate_rps].sum())


def rate_course(process: ArrivalProcess, until_s: float, number: int) -> RateCourse | None:
    """Return the rates of a process, None if it has none.

    Parameters
    ----------
    process : ArrivalProcess
    until_s : float
        When the traffic ends, above 0.
    number : int
        How many requests arrive until then.
    """
    if isinstance(process, VaryingArrivals):
        moments_s = np.linspace(0.5, _MOMENTS - 0.5, _MOMENTS) * (until_s / _MOMENTS)
        return RateCourse(np.full(_MOMENTS, 1 / _MOMENTS), process.rates_rps(moments_s))
    if isinstance(process, RampArrivals):
        rates = process.rates_rps(number)
        return RateCourse((1 / rates) / np.sum(1 / rates), rates)
    if isinstance(process, BurstArrivals):
        return RateCourse(np.array([process.burst_share, 1 - process.burst_share]), process.rates_rps)
    if process.mean_rate_rps is None:
        return None
    return RateCourse(np.ones(1), np.array([process.mean_rate_rps]))
