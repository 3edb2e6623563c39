"""When requests arrive, where no trace says so: Poisson, evenly spaced, or all at once.

Each process knows its mean rate and the squared coefficient of variation (SCV) of its gaps, which queueing
formulas need.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from simqueue.errors import InputError
from simqueue.settings import Settings
from simqueue.workload.limits import LONGEST_S, MOST_REQUESTS

Times = NDArray[np.float64]

_GAPS_AT_ONCE = 65_536


class PoissonArrivals(Settings):
    """Independent exponential gaps; the first arrival comes one gap after time 0."""

    process: Literal["poisson"] = Field(description="Poisson process: independent exponential gaps.")
    rate_rps: float = Field(gt=0, description="Mean arrival rate.", json_schema_extra={"unit": "requests per second"})

    @property
    def mean_rate_rps(self) -> float:
        """Long-run arrivals per second."""
        return self.rate_rps

    @property
    def gap_scv(self) -> float:
        """Squared coefficient of variation of the gaps: 1 for exponential ones."""
        return 1.0

    def times(
        self, rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds, ascending: `num_requests` of them or all before `until_s`.

        Each arrival takes one uniform number, so a shorter run is the beginning of a longer one and another
        rate stretches the same pattern.

        Parameters
        ----------
        rng : numpy.random.Generator
            The stream of this process.
        num_requests, until_s : int, float or None
            Where to stop, whichever comes first; arrivals lie strictly before `until_s`. At least one is needed.

        Raises
        ------
        InputError
            If neither is given, or more requests than `MOST_REQUESTS` would come.
        """
        limit = _limit(self.rate_rps, num_requests, until_s)
        pieces: list[Times] = []
        made, last_s = 0, 0.0
        while made < limit and (until_s is None or last_s < until_s):
            exponentials = -np.log1p(-rng.random(min(limit - made, _GAPS_AT_ONCE)))
            with np.errstate(over="ignore"):  # a gap beyond the largest float lies behind any until_s
                gaps = exponentials / self.rate_rps
            # One running sum over all pieces: the piece length leaves no trace in the last bits.
            pieces.append(np.add.accumulate(np.concatenate(([last_s], gaps)))[1:])
            made += len(gaps)
            last_s = float(pieces[-1][-1])
        times = np.concatenate(pieces) if pieces else np.empty(0)
        return _before(times, until_s)


class ConstantArrivals(Settings):
    """Evenly spaced arrivals; the i-th, counted from 0, comes at i / rate_rps, so the first at time 0."""

    process: Literal["constant"] = Field(description="Evenly spaced arrivals, the first at time 0.")
    rate_rps: float = Field(gt=0, description="Arrival rate.", json_schema_extra={"unit": "requests per second"})

    @property
    def mean_rate_rps(self) -> float:
        """Long-run arrivals per second."""
        return self.rate_rps

    @property
    def gap_scv(self) -> float:
        """Squared coefficient of variation of the gaps: 0 for equal ones."""
        return 0.0

    def times(
        self, _rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds; see `PoissonArrivals.times`. No random number is drawn."""
        limit = _limit(self.rate_rps, num_requests, until_s)
        if until_s is not None:
            limit = min(limit, math.ceil(until_s * self.rate_rps) + 1)
        return _before(np.arange(limit) / self.rate_rps, until_s)


class AllAtOnce(Settings):
    """Everybody arrives at one instant: the offline case, a batch job."""

    process: Literal["all_at_once"] = Field(description="All requests arrive at one instant (offline batch).")
    at_s: float = Field(default=0.0, ge=0, description="That instant.", json_schema_extra={"unit": "s"})

    @property
    def mean_rate_rps(self) -> float | None:
        """Undefined: there are no gaps."""
        return None

    @property
    def gap_scv(self) -> float | None:
        """Undefined: there are no gaps."""
        return None

    def times(
        self, _rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return `num_requests` equal times in seconds; see `PoissonArrivals.times`."""
        if num_requests is None:
            raise InputError("arrivals: process all_at_once needs num_requests, a whole number of at least 1")
        _refuse_too_many(num_requests)
        return _before(np.full(num_requests, self.at_s), until_s)


ArrivalSettings = Annotated[PoissonArrivals | ConstantArrivals | AllAtOnce, Field(discriminator="process")]
"""How requests arrive: one of the processes above, told apart by ``process``."""


def _limit(rate_rps: float, num_requests: int | None, until_s: float | None) -> int:
    """Return how many arrivals to make at most, having checked that it is a number one can make."""
    if num_requests is None and until_s is None:
        raise InputError("arrivals: say where to stop, by num_requests or arrivals_for_s (or both)")
    if until_s is None and num_requests is not None and num_requests / rate_rps > LONGEST_S:
        raise InputError(
            f"arrivals.rate_rps: {num_requests} requests at {rate_rps:g} per second would take longer than "
            f"{LONGEST_S:g} s; give a higher rate"
        )
    by_number = math.inf if num_requests is None else num_requests
    by_time = math.inf if until_s is None else rate_rps * until_s
    _refuse_too_many(min(by_number, by_time))
    return 2 * MOST_REQUESTS if num_requests is None else num_requests


def _refuse_too_many(expected: float) -> None:
    if expected > MOST_REQUESTS:
        raise InputError(
            f"arrivals: these settings make {expected:.3g} requests, at most {MOST_REQUESTS} are allowed "
            "(num_requests, or rate_rps times arrivals_for_s)"
        )


def _before(times: Times, until_s: float | None) -> Times:
    if until_s is None:
        return times
    return times[: int(np.searchsorted(times, until_s, side="left"))]
