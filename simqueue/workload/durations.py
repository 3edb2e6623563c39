"""Laws of times between things, such as how long people think."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from simqueue.settings import Settings, invalid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LONGEST_S = 1e9
_SECONDS: Any = {"unit": "s"}


class DurationLaw(Settings):
    """A random time in seconds."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """Return `n` durations in seconds, one uniform number each."""

    @abstractmethod
    def mean_s(self) -> float:
        """Return the mean."""


class ConstantDuration(DurationLaw):
    """Always the same time."""

    distribution: Literal["constant"] = Field(description="Always the same time.")
    value_s: float = Field(ge=0, le=_LONGEST_S, description="That time.", json_schema_extra=_SECONDS)

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """Return `n` equal durations; see `DurationLaw.sample`."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return np.full_like(rng.random(n), self.value_s)

    def mean_s(self) -> float:
        """Return the time itself."""
        return self.value_s


class UniformDuration(DurationLaw):
    """Any time between two."""

    distribution: Literal["uniform"] = Field(description="Any time between two, equally likely.")
    low_s: float = Field(ge=0, le=_LONGEST_S, description="The shortest.", json_schema_extra=_SECONDS)
    high_s: float = Field(ge=0, le=_LONGEST_S, description="The longest.", json_schema_extra=_SECONDS)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low_s > self.high_s:
            raise invalid(f"low_s {self.low_s:g} is greater than high_s {self.high_s:g}")
        return self

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """Return `n` durations; see `DurationLaw.sample`."""
        return self.low_s + rng.random(n) * (self.high_s - self.low_s)

    def mean_s(self) -> float:
        """Return the middle."""
        return (self.low_s + self.high_s) / 2


class ExponentialDuration(DurationLaw):
    """Exponential: the end is equally likely at any moment."""

    distribution: Literal["exponential"] = Field(description="Exponential.")
    mean: float = Field(gt=0, le=_LONGEST_S, alias="mean_s", description="Mean.", json_schema_extra=_SECONDS)

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """Return `n` durations; see `DurationLaw.sample`."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return -self.mean * np.log1p(-rng.random(n))

    def mean_s(self) -> float:
        """Return the mean."""
        return self.mean


class LognormalDuration(DurationLaw):
    """The logarithm is normal: mostly short, sometimes very long."""

    distribution: Literal["lognormal"] = Field(description="Lognormal.")
    median_s: float = Field(gt=0, le=_LONGEST_S, description="Median.", json_schema_extra=_SECONDS)
    sigma: float = Field(gt=0, le=5, description="Standard deviation of the logarithm.")

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """Return `n` durations; see `DurationLaw.sample`."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)
        from scipy.special import ndtri  # noqa: PLC0415  (settings stay light to import)

        uniforms = np.maximum(rng.random(n), 2.0**-54)
        return np.asarray(self.median_s * np.exp(self.sigma * ndtri(uniforms)))

    def mean_s(self) -> float:
        """Return the mean."""
        return self.median_s * math.exp(self.sigma**2 / 2)


def _number_is_constant(value: Any) -> Any:
    """Let a plain number stand for a constant."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"distribution": "constant", "value_s": value}
    return value


DurationSettings = Annotated[
    Annotated[
        ConstantDuration | UniformDuration | ExponentialDuration | LognormalDuration,
        Field(discriminator="distribution"),
    ],
    BeforeValidator(_number_is_constant),
]
"""A law of times, told apart by ``distribution``; a plain number of seconds is a constant one."""

NO_TIME = ConstantDuration(distribution="constant", value_s=0.0)
