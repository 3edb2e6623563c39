"""Paired comparisons of alternatives that see the same traffic, each of them one row of a table.

A row has intervals of its own, and simultaneous ones: with the given confidence, all simultaneous intervals of a table
contain their true values at once (Bonferroni: each of m rows is given 1/m of the error). The p-values are corrected for
the number of rows by Holm's procedure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import scipy

from simqueue.errors import InputError
from simqueue.statistics.estimate import estimate
from simqueue.statistics.intervals import CONFIDENCE, Estimate, Interval, check_confidence
from simqueue.statistics.moments import standard_error, variance
from simqueue.statistics.ratio import ratio_of_means

K = TypeVar("K")
LEAST_FOR_VARIANCES = 5
"""With fewer replications the ratio of two variances is mostly chance."""
Pairs = tuple[Sequence[float], Sequence[float]]
"""The values of an alternative and those of its baseline, one of each per replication."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """An alternative compared with a baseline, replication by replication.

    Attributes
    ----------
    difference, simultaneous_difference : Estimate
        Mean of alternative minus baseline; its interval allows for skewness.
    ratio, simultaneous_ratio : Interval or None
        Mean of the alternative over that of the baseline, see `ratio_of_means`.
    variance_factor : float or None
        How many times more variance the difference would have if both had seen traffic of their own: the sum of their
        variances over the variance of the paired differences. None if these do not vary.
    p_value : float or None
        p-value of a two-sided paired t-test; None with fewer than two replications, and if the difference is the same
        in all of them but not 0: a t-test needs differences that vary.
    adjusted_p : float or None
        The p-value after Holm's correction for all comparisons of a table.
    """

    difference: Estimate
    simultaneous_difference: Estimate
    ratio: Interval | None
    simultaneous_ratio: Interval | None
    variance_factor: float | None
    p_value: float | None
    adjusted_p: float | None = None

    def verdict(self, better: Literal["", "higher", "lower"], *, confidence: float = CONFIDENCE) -> str:
        """Return "better", "worse", "no difference shown", "the same", or why none of them can be said.

        If neither higher nor lower values are `better`, it is "higher" or "lower".

        A difference is shown if the test finds it and its interval, which allows for skewness, does not contain 0.
        """
        p = self.adjusted_p if self.adjusted_p is not None else self.p_value
        if p is None:
            return "too few replications" if self.difference.n < 2 else "the same difference each time"
        if self.difference.value == 0 and self.difference.error == 0:
            return "the same"
        low, high = self.difference.low, self.difference.high
        if p > 1 - confidence or (low is not None and high is not None and low <= 0 <= high):
            return "no difference shown"
        found = "higher" if self.difference.value > 0 else "lower"
        return found if not better else "better" if found == better else "worse"


def paired(
    values: Sequence[float], baseline: Sequence[float], confidence: float = CONFIDENCE, rows: int = 1
) -> Comparison:
    """Compare an alternative with a baseline that sees the same traffic.

    Parameters
    ----------
    values, baseline : sequences of float
        One value per replication, in the same order of replications.
    confidence : float
        Nominal coverage of the intervals of the row, and of all simultaneous intervals at once.
    rows : int
        Number of comparisons that are looked at together.
    """
    if len(values) != len(baseline) or not values:
        raise InputError(f"a paired comparison needs pairs; there are {len(values)} and {len(baseline)} values")
    check_confidence(confidence)
    differences = [value - base for value, base in zip(values, baseline, strict=True)]
    together = 1 - (1 - confidence) / rows
    alone, simultaneous = estimate(differences, confidence), estimate(differences, together)
    return Comparison(
        alone,
        simultaneous,
        _agreeing(ratio_of_means(values, baseline, confidence), alone),
        _agreeing(ratio_of_means(values, baseline, together), simultaneous),
        _variance_factor(values, baseline, differences),
        _p_value(differences),
    )


def _agreeing(ratio: Interval | None, difference: Interval) -> Interval | None:
    """Return the interval of a ratio, cut at 1 where that of the difference excludes 0: both say the same of the sign.

    The cut part is missed only if the difference has the other sign, of which its own interval is as sure.
    """
    if ratio is None or ratio.low is None or ratio.high is None or difference.low is None or difference.high is None:
        return ratio
    if difference.high < 0:
        return replace(ratio, high=max(ratio.value, min(ratio.high, 1.0)))
    if difference.low > 0:
        return replace(ratio, low=min(ratio.value, max(ratio.low, 1.0)))
    return ratio


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return p-values adjusted by Holm's step-down procedure (1979), in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    worst = 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = worst
    return tuple(adjusted)


def all_paired(pairs: Mapping[K, Pairs], confidence: float = CONFIDENCE) -> dict[K, Comparison]:
    """Return the comparisons of one table, with simultaneous intervals and p-values for the number of its rows."""
    rows = max(1, len(pairs))
    made = {key: paired(values, baseline, confidence, rows) for key, (values, baseline) in pairs.items()}
    tested = {key: found.p_value for key, found in made.items() if found.p_value is not None}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    return {key: replace(found, adjusted_p=corrected.get(key)) for key, found in made.items()}


def _variance_factor(values: Sequence[float], baseline: Sequence[float], differences: Sequence[float]) -> float | None:
    if len(differences) < LEAST_FOR_VARIANCES or min(differences) == max(differences):
        return None
    return (variance(values) + variance(baseline)) / variance(differences)


def _p_value(differences: Sequence[float]) -> float | None:
    n = len(differences)
    if n < 2:
        return None
    if min(differences) == max(differences):
        return 1.0 if differences[0] == 0 else None
    mean = math.fsum(differences) / n
    return float(2 * scipy.special.stdtr(n - 1, -abs(mean) / standard_error(differences)))
