"""Arrivals in groups, and a rate that ramps up from request to request."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from simqueue.errors import inside
from simqueue.settings import invalid
from simqueue.workload.arrivals.base import (
    AT_ONCE,
    RATE_UNIT,
    ArrivalProcess,
    before,
    most_arrivals,
    refuse_too_many,
    running_sum,
    unit_exponentials,
)
from simqueue.workload.arrivals.renewal import STEADY, GammaArrivals
from simqueue.workload.lengths import LengthSettings

if TYPE_CHECKING:
    import numpy as np

    from simqueue.workload.arrivals.base import Floats, Times


class BatchArrivals(ArrivalProcess):
    """Groups of requests arrive together; the groups are a Poisson process."""

    process: Literal["batches"] = Field(description="Poisson process of groups that arrive together.")
    rate_rps: float = Field(gt=0, description="Mean arrival rate of requests, not groups.", json_schema_extra=RATE_UNIT)
    batch_size: LengthSettings = Field(
        description="How many requests a group has: a law, as for lengths.", json_schema_extra={"unit": "requests"}
    )

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

    def resolved(self, base_dir: Path) -> Self:
        """Return the process with the law of its group sizes read in."""
        with inside("batch_size"):
            return self.model_copy(update={"batch_size": self.batch_size.resolved(base_dir)})

    def check(
        self, rng: Callable[[], np.random.Generator], *, num_requests: int | None = None, until_s: float | None = None
    ) -> None:
        """Draw them: only then it is known how many come with their groups."""
        self.times(rng(), num_requests=num_requests, until_s=until_s)

    def times(
        self, rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds; see `ArrivalProcess.times`. The last group may be cut."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        limit = self._most(num_requests, until_s)
        groups_per_s = self.rate_rps / self.batch_size.mean()
        gaps_rng, sizes_rng = rng.spawn(2)
        pieces: list[Times] = []
        made, last_s = 0, 0.0
        while made < limit and (until_s is None or last_s < until_s):
            groups = min(limit - made, AT_ONCE)
            at_s = running_sum(last_s, unit_exponentials(gaps_rng.random(groups)) / groups_per_s)
            sizes = self.batch_size.sample(sizes_rng, groups)
            refuse_too_many(made + int(sizes.sum()) if num_requests is None else num_requests)
            ends = np.minimum(np.cumsum(sizes), limit - made)
            pieces.append(np.repeat(at_s, np.diff(ends, prepend=0)))
            made += len(pieces[-1])
            last_s = float(at_s[-1])
        return before(np.concatenate(pieces)[:limit], until_s)


class RampArrivals(ArrivalProcess):
    """The rate goes from one value to another over the requests, by their number and not by time."""

    process: Literal["ramp"] = Field(description="A rate that rises or falls from request to request (vLLM's ramp-up).")
    from_rps: float = Field(gt=0, description="Rate at the first request.", json_schema_extra=RATE_UNIT)
    to_rps: float = Field(gt=0, description="Rate at the last request.", json_schema_extra=RATE_UNIT)
    shape: Literal["linear", "exponential"] = Field(
        default="linear", description="Whether the rate grows by equal steps or by equal factors."
    )
    burstiness: float | Literal["inf"] = Field(
        default=1.0, description="Shape of the gamma gaps: 1 is Poisson, inf evenly spaced; see process gamma."
    )

    @field_validator("burstiness", mode="before")
    @classmethod
    def _infinity_by_name(cls, value: Any) -> Any:
        return STEADY if value == math.inf else value

    @model_validator(mode="after")
    def _possible_burstiness(self) -> Self:
        if self.burstiness != STEADY and float(self.burstiness) < 1e-4:
            raise invalid("must be >= 0.0001", "burstiness", value=self.burstiness)
        return self

    @property
    def mean_rate_rps(self) -> float | None:
        """Undefined: it depends on how many requests there are."""
        return None

    @property
    def gap_scv(self) -> float | None:
        """Undefined: gaps have different laws."""
        return None

    @property
    def dispersion(self) -> float | None:
        """Undefined: counts have different laws in different windows."""
        return None

    def complaint(self, num_requests: int | None, _until_s: float | None) -> str | None:
        """Return why this process cannot be stopped so, or None if it can."""
        return "process ramp needs num_requests: the rate follows their number" if num_requests is None else None

    def _most(self, num_requests: int | None, until_s: float | None) -> int:
        """Check against the slower end, whatever the time; see `ArrivalProcess`."""
        self._check_end(num_requests, until_s)
        return most_arrivals(min(self.from_rps, self.to_rps), num_requests, None)

    def rates_rps(self, num_requests: int) -> Floats:
        """Return the rate at each request."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        progress = np.arange(num_requests) / max(num_requests - 1, 1)
        if self.shape == "linear":
            return np.asarray(self.from_rps + (self.to_rps - self.from_rps) * progress)
        return np.asarray(self.from_rps * (self.to_rps / self.from_rps) ** progress)

    def times(
        self, rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds; see `ArrivalProcess.times`."""
        number = self._most(num_requests, until_s)
        gaps = GammaArrivals(process="gamma", rate_rps=1.0, burstiness=self.burstiness)
        units = gaps._unit_gaps(rng.random(number))
        return before(running_sum(0.0, units / self.rates_rps(number)), until_s)
