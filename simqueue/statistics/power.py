"""The t-test of a mean against a value that theory gives, and the smallest error that it would find."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import scipy

from simqueue.errors import InputError
from simqueue.statistics.moments import standard_error


@dataclass(frozen=True, slots=True)
class MeanTest:
    """A two-sided t-test of a mean.

    Attributes
    ----------
    mean : float
    tolerated : float
        Largest deviation of the mean that is no evidence of a difference.
    detectable : float
        Smallest true difference that the test finds with the wanted probability, in the unit of the mean.
    """

    mean: float
    tolerated: float
    detectable: float


def mean_test(values: Sequence[float], *, significance: float, power: float) -> MeanTest:
    """Return the test of a mean of independent values.

    A true difference makes the t-statistic noncentral; `detectable` is the difference whose noncentral t-distribution
    exceeds the limit of the test with probability `power`, with the standard error of the values.

    Parameters
    ----------
    values : sequence of float
        One per replication, at least two.
    significance : float
        Probability of a false alarm.
    power : float
        Probability with which the detectable difference is found.
    """
    n = len(values)
    if n < 2:
        raise InputError(f"a test of a mean needs at least 2 replications; there are {n}")
    mean = math.fsum(values) / n
    error = standard_error(values)
    limit = float(scipy.special.stdtrit(n - 1, 1 - significance / 2))
    away = float(scipy.special.nctdtrinc(n - 1, 1 - power, limit))
    return MeanTest(mean, limit * error, away * error)
