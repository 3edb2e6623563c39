"""The scenario keys of length distributions. Nothing here needs numpy; `simqueue.workload.build` makes the parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic.config import JsonDict

from simqueue.settings import Settings, invalid
from simqueue.workload.limits import LARGEST_SAMPLE, LARGEST_TABLE, MOST_TOKENS

TOKENS_UNIT: JsonDict = {"unit": "tokens"}

_LARGEST_EXPONENTIAL = 53 * math.log(2)
"""Exponential of mean 1 for the largest uniform number below 1, which is 1 - 2^-53."""

_LARGEST_NORMAL = 8.209536151601387
"""Standard normal score of the same uniform number."""

_Weight = Annotated[float, Field(ge=0)]
_Length = Annotated[int, Field(ge=1, le=MOST_TOKENS)]


class BoundedLengthSettings(Settings):
    """A length distribution with bounds."""

    min: int = Field(default=1, ge=1, le=MOST_TOKENS, description="smallest length", json_schema_extra=TOKENS_UNIT)
    max: int | None = Field(
        default=None, ge=1, le=MOST_TOKENS, description="largest length; null: no limit", json_schema_extra=TOKENS_UNIT
    )
    bounds: Literal["clip", "resample"] = Field(
        default="clip",
        description="lengths outside [min, max] are moved to the nearer bound (clip) or drawn again (resample)",
    )

    @model_validator(mode="after")
    def _min_not_above_max(self) -> Self:
        if self.max is not None and self.min > self.max:
            raise invalid(f"must be at most max, which is {self.max}", "min", value=self.min)
        return self

    @property
    def always_possible(self) -> bool:
        """Whether a length can always be drawn, whatever is in files and however rare lengths inside the bounds are."""
        return self.bounds == "clip"

    def _check_longest(self, longest: float) -> None:
        """Check that without max the longest sample is one that floats hold exactly."""
        if self.max is None and not longest < LARGEST_SAMPLE:
            raise invalid(f"without max this distribution reaches lengths above {LARGEST_SAMPLE:g} tokens: give a max")


class ConstantLengthSettings(BoundedLengthSettings):
    """All lengths are equal."""

    distribution: Literal["constant"] = Field(description="always the same length")
    value: int = Field(ge=1, le=MOST_TOKENS, description="the length", json_schema_extra=TOKENS_UNIT)


class UniformLengthSettings(BoundedLengthSettings):
    """All whole numbers from low to high are equally likely."""

    distribution: Literal["uniform"] = Field(description="whole numbers from low to high, equally likely")
    low: int = Field(ge=1, le=MOST_TOKENS, description="smallest value, included", json_schema_extra=TOKENS_UNIT)
    high: int = Field(ge=1, le=MOST_TOKENS, description="largest value, included", json_schema_extra=TOKENS_UNIT)

    @model_validator(mode="after")
    def _low_not_above_high(self) -> Self:
        if self.low > self.high:
            raise invalid(f"must be at most high, which is {self.high}", "low", value=self.low)
        return self


class LognormalLengthSettings(BoundedLengthSettings):
    """The logarithm of the length is normal: most lengths are short, few are very long."""

    distribution: Literal["lognormal"] = Field(description="lognormal: most lengths are short, few are very long")
    median: float | None = Field(
        default=None,
        gt=0,
        le=MOST_TOKENS,
        description="median before bounds; give median or mean",
        json_schema_extra=TOKENS_UNIT,
    )
    mean_tokens: float | None = Field(
        default=None,
        gt=0,
        le=MOST_TOKENS,
        alias="mean",
        description="mean before bounds; give median or mean",
        json_schema_extra=TOKENS_UNIT,
    )
    sigma: float | None = Field(
        default=None, gt=0, le=10, description="standard deviation of the logarithm; give sigma or cv"
    )
    cv: float | None = Field(
        default=None, gt=0, le=1e6, description="coefficient of variation before bounds; give sigma or cv"
    )

    def mu_and_sigma(self) -> tuple[float, float]:
        """Return mean and standard deviation of the logarithm of the length."""
        from_cv = None if self.cv is None else math.sqrt(math.log1p(self.cv**2))
        sigma = _one_of("sigma", self.sigma, "cv", from_cv)
        from_median = None if self.median is None else math.log(self.median)
        from_mean = None if self.mean_tokens is None else math.log(self.mean_tokens) - sigma**2 / 2
        return _one_of("median", from_median, "mean", from_mean), sigma

    @model_validator(mode="after")
    def _needs_max(self) -> Self:
        mu, sigma = self.mu_and_sigma()
        self._check_longest(math.exp(mu + sigma * _LARGEST_NORMAL))
        return self


def _one_of(name: str, value: float | None, other_name: str, other: float | None) -> float:
    """Return whichever of two values is given; exactly one must be."""
    if value is not None and other is None:
        return value
    if other is not None and value is None:
        return other
    raise invalid(f"lognormal needs exactly one of {name}, {other_name}")


class ExponentialLengthSettings(BoundedLengthSettings):
    """Exponential, rounded down to whole tokens."""

    distribution: Literal["exponential"] = Field(description="exponential, rounded down to whole tokens")
    mean_tokens: float = Field(
        gt=0,
        le=MOST_TOKENS,
        alias="mean",
        description="mean before bounds and rounding",
        json_schema_extra=TOKENS_UNIT,
    )


class GeometricLengthSettings(BoundedLengthSettings):
    """Geometric on 1, 2, 3, ...: after each token the request ends with probability 1 / mean."""

    distribution: Literal["geometric"] = Field(description="geometric on 1, 2, 3, ... tokens")
    mean_tokens: float = Field(
        ge=1, le=MOST_TOKENS, alias="mean", description="mean before bounds", json_schema_extra=TOKENS_UNIT
    )


class GammaLengthSettings(BoundedLengthSettings):
    """Gamma, rounded down to whole tokens; with cv 1 it is exponential."""

    distribution: Literal["gamma"] = Field(description="gamma, rounded down to whole tokens")
    mean_tokens: float = Field(
        gt=0,
        le=MOST_TOKENS,
        alias="mean",
        description="mean before bounds and rounding",
        json_schema_extra=TOKENS_UNIT,
    )
    cv: float = Field(ge=0.001, le=100, description="coefficient of variation before bounds and rounding")


class ParetoLengthSettings(BoundedLengthSettings):
    """Pareto, rounded down to whole tokens: P(X > x) = (scale / x)^alpha for x above scale."""

    distribution: Literal["pareto"] = Field(description="Pareto: the tail is a power of the length")
    scale: float = Field(
        ge=1, le=MOST_TOKENS, description="smallest value before bounds", json_schema_extra=TOKENS_UNIT
    )
    alpha: float = Field(gt=0, le=1000, description="exponent of the tail; must be above 2 if there is no max")

    @model_validator(mode="after")
    def _needs_max(self) -> Self:
        if self.max is None and self.alpha <= 2:
            raise invalid("the variance is infinite for alpha up to 2: give a max", "alpha", value=self.alpha)
        if self.max is None:
            self._check_longest(self.scale * math.exp(_LARGEST_EXPONENTIAL / self.alpha))
        return self


class ZipfLengthSettings(BoundedLengthSettings):
    """The probability of k tokens is proportional to 1 / k^exponent, for k from 1 to ranks."""

    distribution: Literal["zipf"] = Field(description="Zipf on 1 to ranks tokens: weights 1 / k^exponent")
    exponent: float = Field(gt=0, le=20, description="exponent of the weights; a larger one makes long requests rarer")
    ranks: int = Field(
        ge=1, le=LARGEST_TABLE, description="largest length before bounds", json_schema_extra=TOKENS_UNIT
    )


class HistogramLengthSettings(BoundedLengthSettings):
    """Bins with weights. Lengths inside a bin, from its edge to just before the next edge, are equally likely."""

    distribution: Literal["histogram"] = Field(description="bins with weights; lengths inside a bin are equally likely")
    edges: Annotated[tuple[_Length, ...], Field(min_length=2)] = Field(
        strict=False,
        description="first length of each bin, in ascending order, and one past the end of the last bin: one more "
        "entry than weights",
        json_schema_extra=TOKENS_UNIT,
    )
    weights: Annotated[tuple[_Weight, ...], Field(min_length=1)] = Field(
        strict=False, description="relative frequency of each bin"
    )

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if len(self.edges) != len(self.weights) + 1:
            raise invalid(f"there are {len(self.edges)} edges for {len(self.weights)} weights; it must be one more")
        if not all(low < high for low, high in pairwise(self.edges)):
            raise invalid("edges must ascend: each must be greater than the one before")
        if self.edges[-1] - self.edges[0] > LARGEST_TABLE:
            raise invalid(f"the histogram is {self.edges[-1] - self.edges[0]} tokens wide, at most {LARGEST_TABLE}")
        _check_sum(self.weights)
        return self


class EmpiricalLengthSettings(BoundedLengthSettings):
    """Given values, drawn by weight."""

    distribution: Literal["empirical"] = Field(description="given values, drawn by weight")
    values: tuple[_Length, ...] | None = Field(
        default=None,
        strict=False,
        min_length=1,
        description="the lengths; give values or path",
        json_schema_extra=TOKENS_UNIT,
    )
    weights: tuple[_Weight, ...] | None = Field(
        default=None, strict=False, description="relative frequency of each value; null: all equal"
    )
    path: str | None = Field(
        default=None,
        description="CSV file with a column tokens and an optional column weight, relative to the scenario file",
    )

    @property
    def always_possible(self) -> bool:
        """See `BoundedLengthSettings`."""
        return self.bounds == "clip" and self.path is None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.values is None) == (self.path is None):
            raise invalid("empirical needs exactly one of values, path")
        if self.values is None:
            if self.weights is not None:
                raise invalid("weights go with values; with path, weights are the column weight of the file")
            return self
        if self.weights is not None and len(self.weights) != len(self.values):
            raise invalid(f"there are {len(self.weights)} weights for {len(self.values)} values")
        if self.weights is not None:
            _check_sum(self.weights)
        return self


def _check_sum(weights: Sequence[float]) -> None:
    if not 0 < sum(weights) < math.inf:
        raise invalid(f"weights add up to {sum(weights):g}; the sum must be positive and finite")


PlainLengthSettings = Annotated[
    ConstantLengthSettings
    | UniformLengthSettings
    | LognormalLengthSettings
    | GammaLengthSettings
    | GeometricLengthSettings
    | ExponentialLengthSettings
    | ParetoLengthSettings
    | ZipfLengthSettings
    | HistogramLengthSettings
    | EmpiricalLengthSettings,
    Field(discriminator="distribution"),
]
"""Any length distribution but a mixture."""


class Component(Settings):
    """One part of a mixture."""

    weight: float = Field(gt=0, description="relative frequency of this part")
    law: PlainLengthSettings = Field(description="distribution of its lengths, with bounds of its own")


class MixtureLengthSettings(Settings):
    """Each length comes from one of several distributions, chosen by weight."""

    distribution: Literal["mixture"] = Field(description="each length comes from one of several distributions")
    components: tuple[Component, ...] = Field(strict=False, description="the distributions")

    @property
    def always_possible(self) -> bool:
        """See `BoundedLengthSettings`."""
        return all(part.law.always_possible for part in self.components)

    @model_validator(mode="after")
    def _usable_weights(self) -> Self:
        if not self.components:
            raise invalid("components must have at least 1 entry")
        if not sum(part.weight for part in self.components) < math.inf:
            raise invalid("weights of the components must have a finite sum")
        return self


LengthSettings = Annotated[PlainLengthSettings | MixtureLengthSettings, Field(discriminator="distribution")]
"""A length distribution; the key ``distribution`` tells which."""
