"""The scenario keys of think times. Nothing here needs numpy; `simqueue.workload.build` makes the parts."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic.config import JsonDict

from simqueue.settings import Settings, invalid

_LONGEST_S = 1e9
_SECONDS: JsonDict = {"unit": "s"}


class ConstantDurationSettings(Settings):
    """Always the same time."""

    distribution: Literal["constant"] = Field(description="always the same time")
    value_s: float = Field(ge=0, le=_LONGEST_S, description="the time", json_schema_extra=_SECONDS)


class UniformDurationSettings(Settings):
    """Any time between two, equally likely."""

    distribution: Literal["uniform"] = Field(description="any time between low_s and high_s, equally likely")
    low_s: float = Field(ge=0, le=_LONGEST_S, description="shortest time", json_schema_extra=_SECONDS)
    high_s: float = Field(ge=0, le=_LONGEST_S, description="longest time", json_schema_extra=_SECONDS)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low_s > self.high_s:
            raise invalid(f"must be at most high_s, which is {self.high_s:g}", "low_s", value=self.low_s)
        return self


class ExponentialDurationSettings(Settings):
    """Exponential."""

    distribution: Literal["exponential"] = Field(description="exponential")
    mean_s: float = Field(gt=0, le=_LONGEST_S, description="mean", json_schema_extra=_SECONDS)


class LognormalDurationSettings(Settings):
    """The logarithm is normal: mostly short times, few very long ones."""

    distribution: Literal["lognormal"] = Field(description="lognormal")
    median_s: float = Field(gt=0, le=_LONGEST_S, description="median", json_schema_extra=_SECONDS)
    sigma: float = Field(gt=0, le=5, description="standard deviation of the logarithm")


def _number_is_constant(value: Any) -> Any:
    """Turn a plain number into a constant."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"distribution": "constant", "value_s": value}
    return value


DurationSettings = Annotated[
    Annotated[
        ConstantDurationSettings | UniformDurationSettings | ExponentialDurationSettings | LognormalDurationSettings,
        Field(discriminator="distribution"),
    ],
    BeforeValidator(_number_is_constant),
]
"""A distribution of times; the key ``distribution`` tells which. A plain number of seconds is a constant."""

NO_TIME = ConstantDurationSettings(distribution="constant", value_s=0.0)
