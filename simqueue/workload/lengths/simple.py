"""Length laws on plain whole numbers: always the same, or equally likely in a range."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from simqueue.settings import invalid
from simqueue.workload.lengths.base import TOKENS_UNIT, BoundedLaw
from simqueue.workload.limits import MOST_TOKENS

if TYPE_CHECKING:
    from simqueue.workload.lengths.base import Floats, Tokens


class ConstantLength(BoundedLaw):
    """Every request has the same length."""

    distribution: Literal["constant"] = Field(description="Always the same length.")
    value: int = Field(ge=1, le=MOST_TOKENS, description="That length.", json_schema_extra=TOKENS_UNIT)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.bounds == "resample" and self._length() != self.value:
            self._refuse_empty_bounds()
        return self

    def _length(self) -> int:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return int(self._bounded(np.array([self.value], dtype=np.float64))[0])

    def of_uniforms(self, uniforms: Floats) -> Tokens:
        """Return equal lengths; see `LengthLaw.of_uniforms`."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return np.full(len(uniforms), self._length(), dtype=np.int64)

    def mean(self) -> float:
        """Return the length itself."""
        return float(self._length())

    def variance(self) -> float:
        """Return 0."""
        return 0.0


class UniformLength(BoundedLaw):
    """Every whole number from low to high is equally likely."""

    distribution: Literal["uniform"] = Field(description="Whole numbers from low to high, equally likely.")
    low: int = Field(ge=1, le=MOST_TOKENS, description="Smallest value, included.", json_schema_extra=TOKENS_UNIT)
    high: int = Field(ge=1, le=MOST_TOKENS, description="Largest value, included.", json_schema_extra=TOKENS_UNIT)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.low > self.high:
            raise invalid(f"low {self.low} is greater than high {self.high}")
        low, high = self._drawn()
        if low > high:
            self._refuse_empty_bounds()
        return self

    def _drawn(self) -> tuple[int, int]:
        """Return the ends of what is drawn, before any clipping."""
        if self.bounds == "clip":
            return self.low, self.high
        return max(self.low, self.min), min(self.high, self.high if self.max is None else self.max)

    def of_uniforms(self, uniforms: Floats) -> Tokens:
        """Return one length for each uniform number; see `LengthLaw.of_uniforms`."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        low, high = self._drawn()
        return self._bounded(low + np.floor(uniforms * (high - low + 1)))

    def mean(self) -> float:
        """Return the exact mean."""
        return float(self._moment(1))

    def variance(self) -> float:
        """Return the exact variance."""
        return float(self._moment(2) - self._moment(1) ** 2)

    def _moment(self, power: int) -> Fraction:
        """Return E[N^power] for power 1 or 2: the mass at either bound, and the whole numbers between."""
        low, high = self._drawn()
        inner_low = max(low, self.min)
        inner_high = min(high, high if self.max is None else self.max)
        at_min = min(max(0, self.min - low), high - low + 1)
        at_max = 0 if self.max is None else min(max(0, high - self.max), high - low + 1)
        total = at_min * self.min**power + (0 if self.max is None else at_max * self.max**power)
        if inner_low <= inner_high:
            total += _power_sum(inner_high, power) - _power_sum(inner_low - 1, power)
        return Fraction(total, high - low + 1)


def _power_sum(n: int, power: int) -> int:
    """Return 1^power + ... + n^power for power 1 or 2."""
    return n * (n + 1) // 2 if power == 1 else n * (n + 1) * (2 * n + 1) // 6
