"""The scenario keys of arrival processes. Nothing here needs numpy; `simqueue.workload.build` makes the parts."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic.config import JsonDict

from simqueue.errors import InputError
from simqueue.settings import Settings, invalid
from simqueue.workload.lengths.settings import LengthSettings

RATE_UNIT: JsonDict = {"unit": "requests per second"}
SECONDS_UNIT: JsonDict = {"unit": "s"}

STEADY = "inf"
"""The burstiness of evenly spaced arrivals."""

_LEAST_BURSTINESS = 1e-4

_SMALLEST_BURST = 0.01
"""Requests in a mean burst; with fewer, the process cannot be told from a Poisson process of its mean rate."""


class ArrivalProcessSettings(Settings):
    """When requests arrive."""

    @property
    def plain_rate_rps(self) -> float | None:
        """The rate of a process that can only fail by its number of arrivals; None: it has to be built to know."""
        return None

    @property
    def is_random(self) -> bool:
        """Whether arrival times are drawn; the same times come in every replication if not."""
        return True

    def with_rate(self, rate_rps: float) -> Self:
        """Return the same process at another rate.

        Raises
        ------
        InputError
            The process has no `rate_rps`.
        """
        if "rate_rps" not in type(self).model_fields:
            raise InputError("must be a process with a rate_rps", "process", value=getattr(self, "process", None))
        given = self.model_dump(by_alias=True, exclude_unset=True)
        return self.model_validate({**given, "rate_rps": rate_rps})

    def end_problem(self, num_requests: int | None, until_s: float | None) -> str | None:
        """Return why this process does not end with these limits, or None if it does."""
        if num_requests is None and until_s is None:
            return "arrivals need an end: num_requests or arrivals_for_s, or both"
        return None


class ConstantArrivalsSettings(ArrivalProcessSettings):
    """Evenly spaced arrivals."""

    process: Literal["constant"] = Field(description="evenly spaced arrivals, the first at time 0")
    rate_rps: float = Field(gt=0, description="arrival rate", json_schema_extra=RATE_UNIT)

    @property
    def plain_rate_rps(self) -> float:
        """See `ArrivalProcessSettings`."""
        return self.rate_rps

    @property
    def is_random(self) -> bool:
        """See `ArrivalProcessSettings`."""
        return False


class AllAtOnceSettings(ArrivalProcessSettings):
    """All requests arrive at one instant."""

    process: Literal["all_at_once"] = Field(description="all requests arrive at one instant (offline batch)")
    at_s: float = Field(default=0.0, ge=0, description="arrival time of all requests", json_schema_extra=SECONDS_UNIT)

    @property
    def is_random(self) -> bool:
        """See `ArrivalProcessSettings`."""
        return False

    def end_problem(self, num_requests: int | None, _until_s: float | None) -> str | None:
        """Return why this process does not end with these limits, or None if it does."""
        return "process all_at_once needs num_requests" if num_requests is None else None


class RenewalSettings(ArrivalProcessSettings):
    """Independent gaps with one distribution."""

    rate_rps: float = Field(gt=0, description="mean arrival rate", json_schema_extra=RATE_UNIT)
    normalize_to_rate: bool = Field(
        default=False,
        description="rescale all arrival times so that the last arrival is at num_requests / rate_rps, as vLLM's "
        "benchmark does. The process is then less variable than its distribution: use it only to compare with that "
        "benchmark",
    )

    @property
    def plain_rate_rps(self) -> float:
        """See `ArrivalProcessSettings`."""
        return self.rate_rps

    def end_problem(self, num_requests: int | None, until_s: float | None) -> str | None:
        """Return why this process does not end with these limits, or None if it does."""
        if self.normalize_to_rate and (num_requests is None or until_s is not None):
            return "normalize_to_rate needs num_requests and cannot be combined with arrivals_for_s"
        return super().end_problem(num_requests, until_s)


class PoissonArrivalsSettings(RenewalSettings):
    """Independent exponential gaps."""

    process: Literal["poisson"] = Field(description="Poisson process: independent exponential gaps")


def _infinity_by_name(value: Any) -> Any:
    return STEADY if value == math.inf else value


_Burstiness = Annotated[float | Literal["inf"], BeforeValidator(_infinity_by_name)]
_BurstinessOrNone = Annotated[float | Literal["inf"] | None, BeforeValidator(_infinity_by_name)]


def _check_burstiness(value: float | Literal["inf"]) -> None:
    if value != STEADY and float(value) < _LEAST_BURSTINESS:
        raise invalid("must be >= 0.0001", "burstiness", value=value)


class GammaArrivalsSettings(RenewalSettings):
    """Independent gamma gaps: burstier than Poisson for cv above 1, steadier below."""

    process: Literal["gamma"] = Field(description="independent gamma gaps, given by cv or by vLLM's burstiness")
    cv: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="coefficient of variation of the gaps; give cv or burstiness",
    )
    burstiness: _BurstinessOrNone = Field(
        default=None,
        description="shape of the gamma distribution, 1 / cv² (vLLM's --burstiness, above 0): 1 is Poisson, below 1 is "
        "burstier, inf is evenly spaced; give cv or burstiness",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.cv is None) == (self.burstiness is None):
            raise invalid("gamma arrivals need exactly one of cv, burstiness")
        if self.burstiness is not None:
            _check_burstiness(self.burstiness)
        return self

    @property
    def shape(self) -> float:
        """Shape of the gamma distribution: vLLM's burstiness."""
        if self.cv is not None:
            return 1 / self.cv**2
        return math.inf if self.burstiness is None else float(self.burstiness)

    @property
    def is_random(self) -> bool:
        """See `ArrivalProcessSettings`."""
        return self.shape != math.inf


class WeibullArrivalsSettings(RenewalSettings):
    """Independent Weibull gaps: like gamma, with a heavier tail at the same cv above 1."""

    process: Literal["weibull"] = Field(description="independent Weibull gaps")
    cv: float = Field(ge=0.01, le=20, description="coefficient of variation of the gaps")


class BurstSettings(ArrivalProcessSettings):
    """A Poisson process that switches between two rates."""

    rate_rps: float = Field(gt=0, description="mean arrival rate", json_schema_extra=RATE_UNIT)
    peak_to_mean: float = Field(gt=1, le=1e6, description="rate during a burst divided by the mean rate")
    mean_burst_s: float = Field(gt=0, le=1e9, description="mean duration of a burst", json_schema_extra=SECONDS_UNIT)

    @property
    def plain_rate_rps(self) -> float:
        """See `ArrivalProcessSettings`."""
        return self.rate_rps

    @model_validator(mode="after")
    def _bursts_matter(self) -> Self:
        requests = self.mean_burst_s * self.peak_to_mean * self.rate_rps
        if requests < _SMALLEST_BURST:
            raise invalid(f"a mean burst has {requests:.3g} requests, at least {_SMALLEST_BURST:g} are needed")
        return self


class OnOffArrivalsSettings(BurstSettings):
    """Bursts, and no arrivals between them."""

    process: Literal["on_off"] = Field(
        description="Poisson bursts without arrivals between them (interrupted Poisson process)"
    )


class MmppArrivalsSettings(BurstSettings):
    """Bursts, and a lower rate between them."""

    process: Literal["mmpp"] = Field(
        description="Poisson process that switches between a burst rate and a calm rate: MMPP(2)"
    )
    calm_to_mean: float = Field(ge=0, lt=1, description="rate between bursts divided by the mean rate")


class SinusoidArrivalsSettings(ArrivalProcessSettings):
    """The rate oscillates around its mean: rate_rps (1 + amplitude sin(2 pi (t - phase_s) / period_s))."""

    process: Literal["sinusoid"] = Field(description="Poisson process with a sinusoidal rate (day and night)")
    rate_rps: float = Field(gt=0, description="mean arrival rate over a period", json_schema_extra=RATE_UNIT)
    amplitude: float = Field(ge=0, le=1, description="amplitude as a share of the mean rate; 1: the rate falls to 0")
    period_s: float = Field(gt=0, description="length of a period", json_schema_extra=SECONDS_UNIT)
    phase_s: float = Field(
        default=0.0, description="time at which the rate rises through its mean", json_schema_extra=SECONDS_UNIT
    )


class TabulatedSettings(ArrivalProcessSettings):
    """The rate is constant in each of several intervals."""

    repeat: bool = Field(
        default=False, description="start over at the end of the rate curve; false: arrivals end with the curve"
    )


class PieceSettings(Settings):
    """An interval with one rate."""

    for_s: float = Field(gt=0, description="duration of the interval", json_schema_extra=SECONDS_UNIT)
    rate_rps: float = Field(
        ge=0, description="arrival rate in the interval; 0: no arrivals", json_schema_extra=RATE_UNIT
    )


class PiecewiseArrivalsSettings(TabulatedSettings):
    """The rate is written down interval by interval."""

    process: Literal["piecewise"] = Field(description="Poisson process with a rate given for each interval")
    pieces: tuple[PieceSettings, ...] = Field(strict=False, description="the intervals, from time 0 on")

    @model_validator(mode="after")
    def _some_arrivals(self) -> Self:
        if not self.pieces:
            raise invalid("pieces must have at least 1 entry")
        if not any(piece.rate_rps for piece in self.pieces):
            raise invalid("every rate_rps of the pieces is 0: no request would ever arrive")
        return self


class CurveArrivalsSettings(TabulatedSettings):
    """The rate is read from a file with columns category, window_start_s, total_rate_rps (as the packaged one)."""

    process: Literal["curve"] = Field(
        description="Poisson process with a rate read from a file, such as a production rate curve"
    )
    category: str = Field(
        description="name of the curve in the file; packaged: language/m-small, language/m-mid, language/m-large (two "
        "weeks) and reason/deepseek-r1 (one day), in windows of 10 minutes"
    )
    path: str | None = Field(
        default=None, description="the file, relative to the scenario file; null: the packaged ServeGen curves"
    )
    start_s: float = Field(
        default=0.0, ge=0, description="time in the curve at which the run starts", json_schema_extra=SECONDS_UNIT
    )
    end_s: float | None = Field(
        default=None,
        gt=0,
        description="time in the curve at which arrivals end; null: the end of the curve",
        json_schema_extra=SECONDS_UNIT,
    )
    rate_rps: float | None = Field(
        default=None,
        gt=0,
        description="scale the used part of the curve to this mean rate; null: rates as in the file",
        json_schema_extra=RATE_UNIT,
    )

    @model_validator(mode="after")
    def _window(self) -> Self:
        if self.end_s is not None and self.end_s <= self.start_s:
            raise invalid(f"must be after start_s, which is {self.start_s:g}", "end_s", value=self.end_s)
        return self


class BatchArrivalsSettings(ArrivalProcessSettings):
    """Groups of requests arrive together; the groups are a Poisson process."""

    process: Literal["batches"] = Field(description="Poisson process of groups that arrive together")
    rate_rps: float = Field(
        gt=0, description="mean arrival rate of requests (not of groups)", json_schema_extra=RATE_UNIT
    )
    batch_size: LengthSettings = Field(
        description="distribution of the number of requests in a group, with the same keys as a length distribution",
        json_schema_extra={"unit": "requests"},
    )


class RampArrivalsSettings(ArrivalProcessSettings):
    """The rate changes from one value to another with the number of the request, not with time."""

    process: Literal["ramp"] = Field(
        description="rate that rises or falls from the first request to the last (vLLM's ramp-up)"
    )
    from_rps: float = Field(gt=0, description="rate at the first request", json_schema_extra=RATE_UNIT)
    to_rps: float = Field(gt=0, description="rate at the last request", json_schema_extra=RATE_UNIT)
    shape: Literal["linear", "exponential"] = Field(
        default="linear", description="whether the rate changes by equal steps or by equal factors"
    )
    burstiness: _Burstiness = Field(
        default=1.0, description="shape of the gamma gaps: 1 is Poisson, inf is evenly spaced; see process gamma"
    )

    @property
    def is_random(self) -> bool:
        """See `ArrivalProcessSettings`."""
        return self.burstiness != STEADY

    @model_validator(mode="after")
    def _possible_burstiness(self) -> Self:
        _check_burstiness(self.burstiness)
        return self

    def end_problem(self, num_requests: int | None, _until_s: float | None) -> str | None:
        """Return why this process does not end with these limits, or None if it does."""
        if num_requests is None:
            return "process ramp needs num_requests: the rate depends on the number of the request"
        return None


ArrivalSettings = Annotated[
    PoissonArrivalsSettings
    | ConstantArrivalsSettings
    | GammaArrivalsSettings
    | WeibullArrivalsSettings
    | OnOffArrivalsSettings
    | MmppArrivalsSettings
    | SinusoidArrivalsSettings
    | PiecewiseArrivalsSettings
    | CurveArrivalsSettings
    | BatchArrivalsSettings
    | RampArrivalsSettings
    | AllAtOnceSettings,
    Field(discriminator="process"),
]
"""How requests arrive; the key ``process`` tells which."""
