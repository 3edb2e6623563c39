"""Length laws: how many tokens prompts and outputs have."""

from typing import Annotated

from pydantic import Field

from simqueue.workload.lengths.base import LengthLaw
from simqueue.workload.lengths.choice import PlainLengthSettings
from simqueue.workload.lengths.empirical import EmpiricalLength
from simqueue.workload.lengths.heavy import GammaLength, ParetoLength
from simqueue.workload.lengths.mixture import MixtureLength
from simqueue.workload.lengths.simple import ConstantLength, UniformLength
from simqueue.workload.lengths.smooth import ExponentialLength, GeometricLength, LognormalLength
from simqueue.workload.lengths.table import HistogramLength, ZipfLength

LengthSettings = Annotated[PlainLengthSettings | MixtureLength, Field(discriminator="distribution")]
"""A length law, told apart by ``distribution``."""

__all__ = [
    "ConstantLength",
    "EmpiricalLength",
    "ExponentialLength",
    "GammaLength",
    "GeometricLength",
    "HistogramLength",
    "LengthLaw",
    "LengthSettings",
    "LognormalLength",
    "MixtureLength",
    "ParetoLength",
    "PlainLengthSettings",
    "UniformLength",
    "ZipfLength",
]
