"""The contract of arrival processes, and what ends them.

Each process has a long-run rate, a squared coefficient of variation (SCV) of the gaps between its arrivals and
an index of dispersion, which queueing formulas need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simqueue.workload.limits import most_arrivals

Times = NDArray[np.float64]
Floats = NDArray[np.float64]

AT_ONCE = 65_536
"""Gaps drawn in one batch; results do not depend on it."""


class ArrivalProcess(ABC):
    """When requests arrive."""

    @property
    @abstractmethod
    def mean_rate_rps(self) -> float | None:
        """Long-run arrivals per second; None if undefined."""

    @property
    @abstractmethod
    def gap_scv(self) -> float | None:
        """Squared coefficient of variation of the gaps; None if the rate changes with time."""

    @property
    @abstractmethod
    def dispersion(self) -> float | None:
        """Variance of the number of arrivals in a long window over its mean: 1 for a Poisson process."""

    @abstractmethod
    def times(
        self, rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds, ascending: `num_requests` of them or all before `until_s`.

        A shorter run is the beginning of a longer one.

        Parameters
        ----------
        rng : numpy.random.Generator
            The stream of this process, at its beginning.
        num_requests, until_s : int, float or None
            Where to stop, whichever comes first; arrivals are strictly before `until_s`. At least one is needed, and
            `num_requests` if the process has no rate.

        Raises
        ------
        InputError
            If the needed limits are not given, if more than `MOST_REQUESTS` requests would arrive, or if the process
            ends before both limits.
        """

    def check(
        self, rng: Callable[[], np.random.Generator], *, num_requests: int | None = None, until_s: float | None = None
    ) -> None:
        """Raise what `times` would raise. Arrivals are drawn only if there is no other way to know."""
        self._limit(num_requests, until_s)

    def _limit(self, num_requests: int | None, until_s: float | None) -> int:
        """Return the largest number of arrivals to draw; InputError if there is no end or there are too many."""
        return most_arrivals(self.mean_rate_rps, num_requests, until_s)


def before(times: Times, until_s: float | None) -> Times:
    """Return the times strictly before `until_s`; all of them if it is None."""
    if until_s is None:
        return times
    return times[: int(np.searchsorted(times, until_s, side="left"))]


def running_sum(last_s: float, gaps: Floats) -> Times:
    """Return the times after `last_s` with these gaps, as one sum: the last bits do not depend on the batch size."""
    return np.add.accumulate(np.concatenate(([last_s], gaps)))[1:]


def unit_exponentials(uniforms: Floats) -> Floats:
    """Return exponentials of mean 1 for uniforms in [0, 1)."""
    return -np.log1p(-uniforms)
