"""The laws that stand on their own, told apart by ``distribution``."""

from typing import Annotated

from pydantic import Field

from simqueue.workload.lengths.empirical import EmpiricalLength
from simqueue.workload.lengths.heavy import GammaLength, ParetoLength
from simqueue.workload.lengths.simple import ConstantLength, UniformLength
from simqueue.workload.lengths.smooth import ExponentialLength, GeometricLength, LognormalLength
from simqueue.workload.lengths.table import HistogramLength, ZipfLength

PlainLengthSettings = Annotated[
    ConstantLength
    | UniformLength
    | LognormalLength
    | GammaLength
    | GeometricLength
    | ExponentialLength
    | ParetoLength
    | ZipfLength
    | HistogramLength
    | EmpiricalLength,
    Field(discriminator="distribution"),
]
"""A law that is no mixture."""
