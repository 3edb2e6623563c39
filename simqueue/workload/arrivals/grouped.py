"""Arrivals in groups, and a rate that changes with the number of the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simqueue.workload.arrivals.base import (
    AT_ONCE,
    ArrivalProcess,
    Floats,
    Times,
    before,
    running_sum,
    unit_exponentials,
)
from simqueue.workload.arrivals.renewal import GammaArrivals
from simqueue.workload.lengths.base import LengthDistribution
from simqueue.workload.limits import check_number, most_arrivals


@dataclass(frozen=True, slots=True)
class BatchArrivals(ArrivalProcess):
    """Groups of requests arrive together; the groups are a Poisson process.

    Attributes
    ----------
    rate_rps : float
        Mean arrival rate of requests, not of groups.
    batch_size : LengthDistribution
        Number of requests in a group.
    """

    rate_rps: float
    batch_size: LengthDistribution

    @property
    def mean_rate_rps(self) -> float:
        """Long-run arrivals per second."""
        return self.rate_rps

    @property
    def gap_scv(self) -> float:
        """Most gaps are 0 and one in E[B] is exponential: 2 E[B] - 1."""
        return 2 * self.batch_size.mean() - 1

    @property
    def dispersion(self) -> float:
        """That of a compound Poisson process: E[B²] / E[B]."""
        mean = self.batch_size.mean()
        return self.batch_size.variance() / mean + mean

    def check(
        self, rng: Callable[[], np.random.Generator], *, num_requests: int | None = None, until_s: float | None = None
    ) -> None:
        """Draw the arrivals: only then is it known how many there are."""
        self.times(rng(), num_requests=num_requests, until_s=until_s)

    def times(
        self, rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds; see `ArrivalProcess.times`. The last group can be incomplete."""
        limit = self._limit(num_requests, until_s)
        groups_per_s = self.rate_rps / self.batch_size.mean()
        gaps_rng, sizes_rng = rng.spawn(2)
        pieces: list[Times] = []
        made, last_s = 0, 0.0
        while made < limit and (until_s is None or last_s < until_s):
            groups = min(limit - made, AT_ONCE)
            at_s = running_sum(last_s, unit_exponentials(gaps_rng.random(groups)) / groups_per_s)
            sizes = self.batch_size.sample(sizes_rng, groups)
            check_number(made + int(sizes.sum()) if num_requests is None else num_requests)
            ends = np.minimum(np.cumsum(sizes), limit - made)
            pieces.append(np.repeat(at_s, np.diff(ends, prepend=0)))
            made += len(pieces[-1])
            last_s = float(at_s[-1])
        return before(np.concatenate(pieces)[:limit], until_s)


@dataclass(frozen=True, slots=True)
class RampArrivals(ArrivalProcess):
    """The rate changes with the number of the request, not with time.

    Attributes
    ----------
    from_rps, to_rps : float
        Rates at the first and at the last request.
    exponential : bool
        Whether the rate changes by equal factors; otherwise by equal steps.
    gaps : GammaArrivals
        Distribution of the gaps times the rate.
    """

    from_rps: float
    to_rps: float
    exponential: bool
    gaps: GammaArrivals

    @property
    def mean_rate_rps(self) -> float | None:
        """Undefined: it depends on the number of requests."""
        return None

    @property
    def gap_scv(self) -> float | None:
        """Undefined: the distribution of the gaps changes."""
        return None

    @property
    def dispersion(self) -> float | None:
        """Undefined: the distribution of the counts changes with the window."""
        return None

    def _limit(self, num_requests: int | None, until_s: float | None) -> int:
        """Check with the lower of both rates, whatever the time; see `ArrivalProcess`."""
        return most_arrivals(min(self.from_rps, self.to_rps), num_requests, None)

    def rates_rps(self, num_requests: int) -> Floats:
        """Return the rate at each request."""
        progress = np.arange(num_requests) / max(num_requests - 1, 1)
        if self.exponential:
            return np.asarray(self.from_rps * (self.to_rps / self.from_rps) ** progress)
        return np.asarray(self.from_rps + (self.to_rps - self.from_rps) * progress)

    def times(
        self, rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds; see `ArrivalProcess.times`."""
        number = self._limit(num_requests, until_s)
        units = self.gaps.unit_gaps(rng.random(number))
        return before(running_sum(0.0, units / self.rates_rps(number)), until_s)
