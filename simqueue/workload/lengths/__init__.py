"""Length laws: how many tokens prompts and outputs have."""

from typing import Annotated

from pydantic import Field

from simqueue.workload.lengths.base import LengthLaw
from simqueue.workload.lengths.empirical import EmpiricalLength
from simqueue.workload.lengths.simple import ConstantLength, UniformLength
from simqueue.workload.lengths.smooth import ExponentialLength, GeometricLength, LognormalLength

LengthSettings = Annotated[
    ConstantLength | UniformLength | LognormalLength | GeometricLength | ExponentialLength | EmpiricalLength,
    Field(discriminator="distribution"),
]
"""A length law, told apart by ``distribution``."""

__all__ = [
    "ConstantLength",
    "EmpiricalLength",
    "ExponentialLength",
    "GeometricLength",
    "LengthLaw",
    "LengthSettings",
    "LognormalLength",
    "UniformLength",
]
