"""The contract of arrival processes, and what ends them.

Each process knows its long-run rate, the squared coefficient of variation (SCV) of the gaps between its arrivals and
its index of dispersion, which queueing formulas need.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic.config import JsonDict

from simqueue.errors import InputError
from simqueue.settings import Settings
from simqueue.workload.limits import LONGEST_S, MOST_REQUESTS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Times = NDArray[np.float64]
    Floats = NDArray[np.float64]

AT_ONCE = 65_536
"""How many gaps are drawn at a time; results do not depend on it."""

RATE_UNIT: JsonDict = {"unit": "requests per second"}
SECONDS_UNIT: JsonDict = {"unit": "s"}


class ArrivalProcess(Settings):
    """When requests arrive."""

    @property
    @abstractmethod
    def mean_rate_rps(self) -> float | None:
        """Long-run arrivals per second; None where there is no such thing."""

    @property
    @abstractmethod
    def gap_scv(self) -> float | None:
        """Squared coefficient of variation of the gaps; None for processes whose rate changes with time."""

    @property
    @abstractmethod
    def dispersion(self) -> float | None:
        """Variance of the number of arrivals over its mean, in a long window: 1 for a Poisson process."""

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
            Where to stop, whichever comes first; arrivals lie strictly before `until_s`. At least one is needed.

        Raises
        ------
        InputError
            If neither is given, if more requests than `MOST_REQUESTS` would come, or if the process ends before
            both.
        """

    def check(
        self, rng: Callable[[], np.random.Generator], *, num_requests: int | None = None, until_s: float | None = None
    ) -> None:
        """Raise what `times` would raise. Nothing is drawn where the settings alone can tell."""
        self._most(num_requests, until_s)

    def complaint(self, num_requests: int | None, until_s: float | None) -> str | None:
        """Return why this process cannot be stopped so, or None if it can."""
        if num_requests is None and until_s is None:
            return "arrivals need an end: num_requests or arrivals_for_s, or both"
        return None

    def resolved(self, _base_dir: Path) -> Self:
        """Return the process with what it keeps in files read in; most keep nothing there."""
        return self

    def _most(self, num_requests: int | None, until_s: float | None) -> int:
        """Return how many arrivals to make at most, having checked that they end and that one can make so many."""
        self._check_end(num_requests, until_s)
        return most_arrivals(self.mean_rate_rps, num_requests, until_s)

    def _check_end(self, num_requests: int | None, until_s: float | None) -> None:
        complaint = self.complaint(num_requests, until_s)
        if complaint is not None:
            raise InputError(f"workload: {complaint}")


def most_arrivals(rate_rps: float | None, num_requests: int | None, until_s: float | None) -> int:
    """Return how many arrivals to make at most, having checked that it is a number one can make."""
    if rate_rps is not None and until_s is None and num_requests is not None and num_requests / rate_rps > LONGEST_S:
        raise InputError(
            f"{num_requests} requests at {rate_rps:g} per second would take longer than {LONGEST_S:g} s; give a higher "
            "rate",
            "rate_rps",
        )
    by_number = math.inf if num_requests is None else num_requests
    by_time = math.inf if until_s is None or rate_rps is None else rate_rps * until_s
    refuse_too_many(min(by_number, by_time))
    return 2 * MOST_REQUESTS if num_requests is None else num_requests


def refuse_too_many(expected: float) -> None:
    """Raise InputError if `expected` requests are more than can be made."""
    if expected > MOST_REQUESTS:
        raise InputError(
            f"these settings make {expected:.3g} requests, at most {MOST_REQUESTS} are allowed (num_requests, or "
            "rate_rps times arrivals_for_s)",
            "process",
        )


def before(times: Times, until_s: float | None) -> Times:
    """Return the times strictly before `until_s`; all of them if it is None."""
    import numpy as np  # noqa: PLC0415  (settings stay light to import)

    if until_s is None:
        return times
    return times[: int(np.searchsorted(times, until_s, side="left"))]


def running_sum(last_s: float, gaps: Floats) -> Times:
    """Return the times after `last_s` with these gaps: one sum, so that pieces leave no trace in the last bits."""
    import numpy as np  # noqa: PLC0415  (settings stay light to import)

    return np.add.accumulate(np.concatenate(([last_s], gaps)))[1:]


def unit_exponentials(uniforms: Floats) -> Floats:
    """Return exponentials of mean 1 for uniforms in [0, 1)."""
    import numpy as np  # noqa: PLC0415  (settings stay light to import)

    return -np.log1p(-uniforms)
