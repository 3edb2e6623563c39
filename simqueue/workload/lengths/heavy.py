"""Two more laws with a formula for their tail (see `smooth`): gamma, and Pareto, whose tail is a power."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from simqueue.settings import invalid
from simqueue.workload.lengths.base import TOKENS_UNIT
from simqueue.workload.lengths.smooth import SmoothLaw
from simqueue.workload.limits import MOST_TOKENS

if TYPE_CHECKING:
    from simqueue.workload.lengths.base import Floats


class GammaLength(SmoothLaw):
    """Gamma, rounded down to whole tokens; cv 1 is exponential."""

    distribution: Literal["gamma"] = Field(description="Gamma, rounded down to whole tokens.")
    mean_tokens: float = Field(
        gt=0,
        le=MOST_TOKENS,
        alias="mean",
        description="Mean before bounds and rounding.",
        json_schema_extra=TOKENS_UNIT,
    )
    cv: float = Field(ge=0.001, le=100, description="Coefficient of variation before bounds and rounding.")

    @property
    def _shape(self) -> float:
        return 1 / self.cv**2

    @property
    def _scale(self) -> float:
        return self.mean_tokens / self._shape

    def _at_least(self, x: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)
        from scipy.special import gammaincc  # noqa: PLC0415  (settings stay light to import)

        return np.asarray(gammaincc(self._shape, x / self._scale))

    def _quantile(self, p: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)
        from scipy.special import gammaincinv  # noqa: PLC0415  (settings stay light to import)

        return np.asarray(self._scale * gammaincinv(self._shape, p))

    def _integrals(self, a: float, b: float) -> tuple[float, float]:
        # By parts, with the partial moments of the gamma law: x^j f(x) is again a gamma density, of shape k + j.
        from scipy.special import gammaincc  # noqa: PLC0415  (settings stay light to import)

        k, scale = self._shape, self._scale

        def above(x: float, j: int) -> float:
            return float(gammaincc(k + j, x / scale)) if math.isfinite(x) else 0.0

        found = []
        moment = 1.0
        for j in (1, 2):
            moment *= scale * (k + j - 1)
            edge = (b**j * above(b, 0) if math.isfinite(b) else 0.0) - a**j * above(a, 0)
            found.append(moment * (above(a, j) - above(b, j)) + edge)
        return found[0], found[1]


class ParetoLength(SmoothLaw):
    """Pareto, rounded down: P(X > x) = (scale / x)^alpha from scale on."""

    distribution: Literal["pareto"] = Field(description="Pareto: the tail falls like a power.")
    scale: float = Field(
        ge=1, le=MOST_TOKENS, description="Where the law begins, before bounds.", json_schema_extra=TOKENS_UNIT
    )
    alpha: float = Field(gt=0, le=1000, description="Power of the tail; without max it must be above 2.")

    @model_validator(mode="after")
    def _has_moments(self) -> Self:
        if self.max is None and self.alpha <= 2:
            raise invalid("a tail of at most 2 has no finite variance: give a max", "alpha", value=self.alpha)
        return self

    def _at_least(self, x: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return np.asarray((self.scale / np.maximum(x, self.scale)) ** self.alpha)

    def _quantile(self, p: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return np.asarray(self.scale * np.exp(-np.log1p(-p) / self.alpha))

    def _integrals(self, a: float, b: float) -> tuple[float, float]:
        low, high = min(max(a, self.scale), b), max(b, self.scale)
        flat, rising = low - min(a, low), low**2 - min(a, low) ** 2  # below scale the tail is 1
        if high > low:
            flat += self._power(low, high, 1)
            rising += 2 * self._power(low, high, 2)
        return flat, rising

    def _power(self, low: float, high: float, j: int) -> float:
        """Return the integral of t^(j-1) (scale / t)^alpha over [low, high]."""
        power = j - self.alpha
        start: float = low**j * (self.scale / low) ** self.alpha
        if power == 0:
            return start * math.log(high / low)
        if not math.isfinite(high):
            return -start / power
        return start * math.expm1(power * math.log(high / low)) / power
