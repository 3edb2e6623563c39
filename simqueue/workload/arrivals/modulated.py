"""Bursts: Poisson arrivals whose rate switches between two values after exponential times.

With two positive rates this is the two-state Markov-modulated Poisson process, MMPP(2); with nothing between the bursts
it is an on-off process (interrupted Poisson). People think of it as mean rate, peak to mean and mean burst; these and
the calm rate fix the four parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from simqueue.settings import invalid
from simqueue.workload.arrivals.base import (
    AT_ONCE,
    RATE_UNIT,
    SECONDS_UNIT,
    ArrivalProcess,
    before,
    running_sum,
    unit_exponentials,
)

if TYPE_CHECKING:
    import numpy as np

    from simqueue.workload.arrivals.base import Floats, Times

_SOJOURNS_AT_ONCE = 4096

_SMALLEST_BURST = 0.01
"""Requests in a mean burst; below, nobody could tell the process from a Poisson process of its mean rate."""


class BurstProcess(ArrivalProcess):
    """Two states with a Poisson process each; time starts in one of them as in the long run."""

    rate_rps: float = Field(gt=0, description="Mean arrival rate.", json_schema_extra=RATE_UNIT)
    peak_to_mean: float = Field(gt=1, le=1e6, description="Rate during a burst over the mean rate.")
    mean_burst_s: float = Field(gt=0, le=1e9, description="Mean length of a burst.", json_schema_extra=SECONDS_UNIT)

    @model_validator(mode="after")
    def _bursts_matter(self) -> Self:
        if not 0 < self.burst_share < 1:
            raise invalid("calm_to_mean leaves no time for bursts; give a smaller one")
        requests = self.mean_burst_s * self.peak_to_mean * self.rate_rps
        if requests < _SMALLEST_BURST:
            raise invalid(f"a mean burst has {requests:.3g} requests, at least {_SMALLEST_BURST:g} are allowed")
        return self

    @property
    def _calm_to_mean(self) -> float:
        return 0.0

    @property
    def mean_rate_rps(self) -> float:
        """Long-run arrivals per second."""
        return self.rate_rps

    @property
    def burst_share(self) -> float:
        """Share of time in bursts."""
        return (1 - self._calm_to_mean) / (self.peak_to_mean - self._calm_to_mean)

    @property
    def mean_calm_s(self) -> float:
        """Mean time between two bursts, in seconds."""
        return self.mean_burst_s * (1 - self.burst_share) / self.burst_share

    def _rates_rps(self) -> Floats:
        """Return the rates of burst and calm."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return self.rate_rps * np.array([self.peak_to_mean, self._calm_to_mean])

    @property
    def gap_scv(self) -> float:
        """Squared coefficient of variation of a gap in the long run, from its phase-type moments."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        rates, leave = self._rates_rps(), 1 / np.array([self.mean_burst_s, self.mean_calm_s])
        no_arrival = np.array([[-leave[0], leave[0]], [leave[1], -leave[1]]]) - np.diag(rates)
        at_arrivals = np.array([self.burst_share, 1 - self.burst_share]) * rates / self.rate_rps
        twice = np.linalg.solve(no_arrival, np.linalg.solve(no_arrival, np.ones(2)))
        return float(2 * (at_arrivals @ twice) * self.rate_rps**2 - 1)

    @property
    def dispersion(self) -> float:
        """Limit of the index of dispersion of counts (Heffes and Lucantoni 1986)."""
        burst_rps, calm_rps = self._rates_rps().tolist()
        end, begin = 1 / self.mean_burst_s, 1 / self.mean_calm_s
        return float(
            1
            + 2
            * (burst_rps - calm_rps) ** 2
            * end
            * begin
            / ((end + begin) ** 2 * (burst_rps * begin + calm_rps * end))
        )

    def times(
        self, rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds; see `ArrivalProcess.times`.

        Arrivals are those of a Poisson process of rate 1 on the clock that the rate drives.
        """
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        limit = self._most(num_requests, until_s)
        states, arrivals = rng.spawn(2)
        clock = _Clock(self, states)
        pieces: list[Times] = []
        made, last_unit, last_s = 0, 0.0, 0.0
        while made < limit and (until_s is None or last_s < until_s):
            units = running_sum(last_unit, unit_exponentials(arrivals.random(min(limit - made, AT_ONCE))))
            pieces.append(clock.times(units))
            made += len(units)
            last_unit, last_s = float(units[-1]), float(pieces[-1][-1])
        return before(np.concatenate(pieces), until_s)


class _Clock:
    """The area under the rate as a function of time, drawn as far as it is needed."""

    def __init__(self, process: BurstProcess, rng: np.random.Generator) -> None:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        self._rng = rng
        self._means_s = np.array([process.mean_burst_s, process.mean_calm_s])
        self._rates = process._rates_rps()
        self._state = 0 if rng.random() < process.burst_share else 1
        self._times_s = np.zeros(1)
        self._areas = np.zeros(1)

    def times(self, areas: Floats) -> Times:
        """Return when the area reaches these values, ascending and beyond all asked for before."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        while self._areas[-1] <= areas[-1]:
            self._extend()
        found = np.interp(areas, self._areas, self._times_s)
        kept = max(0, int(np.searchsorted(self._areas, areas[-1], side="right")) - 1)
        self._areas, self._times_s = self._areas[kept:], self._times_s[kept:]
        return found

    def _extend(self) -> None:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        # An even number of sojourns, so that every piece starts in the same state.
        states = (self._state + np.arange(_SOJOURNS_AT_ONCE)) % 2
        sojourns_s = unit_exponentials(self._rng.random(_SOJOURNS_AT_ONCE)) * self._means_s[states]
        ends_s = running_sum(float(self._times_s[-1]), sojourns_s)
        areas = running_sum(float(self._areas[-1]), sojourns_s * self._rates[states])
        self._times_s = np.concatenate((self._times_s, ends_s))
        self._areas = np.concatenate((self._areas, areas))


class OnOffArrivals(BurstProcess):
    """Bursts, and nothing between them."""

    process: Literal["on_off"] = Field(description="Poisson bursts with nothing between them (interrupted Poisson).")


class MmppArrivals(BurstProcess):
    """Bursts, and a calm rate between them."""

    process: Literal["mmpp"] = Field(description="Poisson whose rate switches between burst and calm: MMPP(2).")
    calm_to_mean: float = Field(ge=0, lt=1, description="Rate between bursts over the mean rate.")

    @property
    def _calm_to_mean(self) -> float:
        return self.calm_to_mean
