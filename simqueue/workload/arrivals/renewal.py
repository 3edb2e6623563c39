"""Renewal processes: independent gaps of one law. Exponential (Poisson), gamma, Weibull.

The first arrival comes one gap after time 0, as in vLLM's benchmark. Each gap takes one uniform number, inverted; so
another rate stretches the same pattern, and another law keeps its ranks.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from simqueue.settings import invalid
from simqueue.workload.arrivals.base import (
    AT_ONCE,
    RATE_UNIT,
    ArrivalProcess,
    before,
    running_sum,
    unit_exponentials,
)

if TYPE_CHECKING:
    import numpy as np

    from simqueue.workload.arrivals.base import Floats, Times

STEADY = "inf"
"""The burstiness of evenly spaced arrivals."""

_STEADY_FROM = 1e16
"""Gamma gaps of a higher shape differ by less than floats resolve."""


class RenewalProcess(ArrivalProcess):
    """Independent gaps of one law."""

    rate_rps: float = Field(gt=0, description="Mean arrival rate.", json_schema_extra=RATE_UNIT)
    normalize_to_rate: bool = Field(
        default=False,
        description="Rescale all arrivals so that the last falls on num_requests / rate_rps, as vLLM's benchmark does. "
        "The process is then less variable than its name says: for comparing with that benchmark only.",
    )

    @property
    def mean_rate_rps(self) -> float:
        """Long-run arrivals per second."""
        return self.rate_rps

    @property
    def dispersion(self) -> float | None:
        """That of a renewal process is the SCV of its gaps."""
        return self.gap_scv

    @abstractmethod
    def _unit_gaps(self, uniforms: Floats) -> Floats:
        """Return gaps of mean 1, one for each uniform in [0, 1)."""

    def complaint(self, num_requests: int | None, until_s: float | None) -> str | None:
        """Return why this process cannot be stopped so, or None if it can."""
        if self.normalize_to_rate and (num_requests is None or until_s is not None):
            return "normalize_to_rate needs num_requests and goes without arrivals_for_s"
        return super().complaint(num_requests, until_s)

    def times(
        self, rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds; see `ArrivalProcess.times`."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        limit = self._most(num_requests, until_s)
        pieces: list[Times] = []
        made, last_s = 0, 0.0
        while made < limit and (until_s is None or last_s < until_s):
            units = self._unit_gaps(rng.random(min(limit - made, AT_ONCE)))
            with np.errstate(over="ignore"):  # a gap beyond the largest float lies behind any until_s
                gaps = units / self.rate_rps
            pieces.append(running_sum(last_s, gaps))
            made += len(gaps)
            last_s = float(pieces[-1][-1])
        times = np.concatenate(pieces) if pieces else np.empty(0)
        if self.normalize_to_rate and last_s > 0:
            times *= (made / self.rate_rps) / last_s
        return before(times, until_s)


class PoissonArrivals(RenewalProcess):
    """Independent exponential gaps."""

    process: Literal["poisson"] = Field(description="Poisson process: independent exponential gaps.")

    @property
    def gap_scv(self) -> float:
        """Squared coefficient of variation of the gaps: 1 for exponential ones."""
        return 1.0

    def _unit_gaps(self, uniforms: Floats) -> Floats:
        return unit_exponentials(uniforms)


class GammaArrivals(RenewalProcess):
    """Independent gamma gaps: burstier than Poisson for cv above 1, steadier below."""

    process: Literal["gamma"] = Field(description="Independent gamma gaps, by cv or by vLLM's burstiness.")
    given_cv: float | None = Field(
        default=None,
        alias="cv",
        gt=0,
        le=100,
        description="Coefficient of variation of the gaps; or give burstiness.",
    )
    given_burstiness: float | Literal["inf"] | None = Field(
        default=None,
        alias="burstiness",
        description="Shape of the gamma law, 1 / cv² (vLLM's --burstiness, above 0): 1 is Poisson, below 1 is "
        "burstier, inf evenly spaced; or give cv.",
    )

    @field_validator("given_burstiness", mode="before")
    @classmethod
    def _infinity_by_name(cls, value: Any) -> Any:
        return STEADY if value == math.inf else value

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.given_cv is None) == (self.given_burstiness is None):
            raise invalid("gamma arrivals need exactly one of cv, burstiness")
        if self.given_burstiness is not None and self.burstiness < 1e-4:
            raise invalid("must be >= 0.0001", "burstiness", value=self.given_burstiness)
        return self

    @property
    def burstiness(self) -> float:
        """Shape of the gamma law, vLLM's burstiness."""
        if self.given_cv is not None:
            return 1 / self.given_cv**2
        return math.inf if self.given_burstiness in (STEADY, None) else float(self.given_burstiness)

    @property
    def cv(self) -> float:
        """Coefficient of variation of the gaps."""
        return 1 / math.sqrt(self.burstiness) if self.given_cv is None else self.given_cv

    @property
    def gap_scv(self) -> float:
        """Squared coefficient of variation of the gaps: one over the shape."""
        return 1 / self.burstiness

    def _unit_gaps(self, uniforms: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)
        from scipy.special import gammaincinv  # noqa: PLC0415  (settings stay light to import)

        shape = self.burstiness
        if shape > _STEADY_FROM:
            return np.ones(len(uniforms))
        return np.asarray(gammaincinv(shape, uniforms) / shape)


class WeibullArrivals(RenewalProcess):
    """Independent Weibull gaps: like gamma, with a heavier tail at the same cv above 1."""

    process: Literal["weibull"] = Field(description="Independent Weibull gaps.")
    cv: float = Field(ge=0.01, le=20, description="Coefficient of variation of the gaps.")

    @property
    def gap_scv(self) -> float:
        """Squared coefficient of variation of the gaps."""
        return self.cv**2

    @property
    def shape(self) -> float:
        """The k that solves Gamma(1 + 2/k) / Gamma(1 + 1/k)² = 1 + cv²."""
        from scipy.optimize import brentq  # noqa: PLC0415  (settings stay light to import)

        def excess(k: float) -> float:
            return math.lgamma(1 + 2 / k) - 2 * math.lgamma(1 + 1 / k) - math.log1p(self.gap_scv)

        return float(brentq(excess, 0.05, 500, xtol=1e-15, rtol=1e-14))

    def _unit_gaps(self, uniforms: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        k = self.shape
        return np.asarray(unit_exponentials(uniforms) ** (1 / k) / math.exp(math.lgamma(1 + 1 / k)))
