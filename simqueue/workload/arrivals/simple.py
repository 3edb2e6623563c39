"""Arrivals without chance: evenly spaced, or all at one instant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from simqueue.workload.arrivals.base import (
    RATE_UNIT,
    SECONDS_UNIT,
    ArrivalProcess,
    before,
)

if TYPE_CHECKING:
    import numpy as np

    from simqueue.workload.arrivals.base import Times


class ConstantArrivals(ArrivalProcess):
    """Evenly spaced arrivals; the i-th, counted from 0, comes at i / rate_rps, so the first at time 0."""

    process: Literal["constant"] = Field(description="Evenly spaced arrivals, the first at time 0.")
    rate_rps: float = Field(gt=0, description="Arrival rate.", json_schema_extra=RATE_UNIT)

    @property
    def mean_rate_rps(self) -> float:
        """Long-run arrivals per second."""
        return self.rate_rps

    @property
    def gap_scv(self) -> float:
        """Squared coefficient of variation of the gaps: 0 for equal ones."""
        return 0.0

    @property
    def dispersion(self) -> float:
        """The number in a long window does not vary."""
        return 0.0

    def times(
        self, _rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds; see `ArrivalProcess.times`. No random number is drawn."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        limit = self._most(num_requests, until_s)
        if until_s is not None:
            limit = min(limit, math.ceil(until_s * self.rate_rps) + 1)
        return before(np.arange(limit) / self.rate_rps, until_s)


class AllAtOnce(ArrivalProcess):
    """Everybody arrives at one instant: the offline case, a batch job."""

    process: Literal["all_at_once"] = Field(description="All requests arrive at one instant (offline batch).")
    at_s: float = Field(default=0.0, ge=0, description="That instant.", json_schema_extra=SECONDS_UNIT)

    @property
    def mean_rate_rps(self) -> float | None:
        """Undefined: there are no gaps."""
        return None

    @property
    def gap_scv(self) -> float | None:
        """Undefined: there are no gaps."""
        return None

    @property
    def dispersion(self) -> float | None:
        """Undefined: there is no long window."""
        return None

    def complaint(self, num_requests: int | None, _until_s: float | None) -> str | None:
        """Return why this process cannot be stopped so, or None if it can."""
        return "process all_at_once needs num_requests" if num_requests is None else None

    def times(
        self, _rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return `num_requests` equal times in seconds; see `ArrivalProcess.times`."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return before(np.full(self._most(num_requests, until_s), self.at_s), until_s)
