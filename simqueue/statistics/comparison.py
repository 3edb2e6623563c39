"""Paired comparisons of alternatives that see the same traffic, with Holm's correction for several comparisons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import scipy

from simqueue.errors import InputError
from simqueue.statistics.intervals import CONFIDENCE, Interval, mean_interval

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Comparison:
    """An alternative compared with a baseline, replication by replication.

    Attributes
    ----------
    difference : Interval
        Alternative minus baseline.
    ratio, ratio_low, ratio_high : float or None
        Alternative over baseline: the exponential of the mean log ratio, and the ends of its interval, which is not
        symmetric. None unless all values are > 0.
    p_value : float or None
        p-value of a two-sided paired t-test; None with fewer than two replications, and if the difference is the same
        in all of them but not 0: a t-test needs differences that vary.
    adjusted_p : float or None
        The p-value after Holm's correction for all comparisons of a table.
    """

    difference: Interval
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    p_value: float | None
    adjusted_p: float | None = None

    def verdict(self, *, larger_is_better: bool, confidence: float = CONFIDENCE) -> str:
        """Return "better", "worse", "no difference shown", "the same", or why none of them can be said."""
        p = self.adjusted_p if self.adjusted_p is not None else self.p_value
        if p is None:
            return "too few replications" if self.difference.n < 2 else "the same difference each time"
        if self.difference.mean == 0 and self.difference.half_width == 0:
            return "the same"
        if p > 1 - confidence:
            return "no difference shown"
        return "better" if (self.difference.mean > 0) == larger_is_better else "worse"


def paired(values: Sequence[float], baseline: Sequence[float], confidence: float = CONFIDENCE) -> Comparison:
    """Compare an alternative with a baseline that sees the same traffic.

    Parameters
    ----------
    values, baseline : sequences of float
        One value per replication, in the same order of replications.
    confidence : float
    """
    if len(values) != len(baseline) or not values:
        raise InputError(f"a paired comparison needs pairs; there are {len(values)} and {len(baseline)} values")
    differences = [value - base for value, base in zip(values, baseline, strict=True)]
    difference = mean_interval(differences, confidence)
    ratio = low = high = None
    if all(value > 0 for value in (*values, *baseline)):
        logs = mean_interval([math.log(v / b) for v, b in zip(values, baseline, strict=True)], confidence)
        ratio = math.exp(logs.mean)
        if logs.low is not None and logs.high is not None:
            low, high = math.exp(logs.low), math.exp(logs.high)
    return Comparison(difference, ratio, low, high, _p_value(differences))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return p-values adjusted by Holm's step-down procedure (1979), in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    worst = 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = worst
    return tuple(adjusted)


def adjusted(comparisons: Mapping[K, Comparison]) -> dict[K, Comparison]:
    """Return the comparisons of one table with their p-values adjusted for the number of comparisons."""
    tested = [key for key, found in comparisons.items() if found.p_value is not None]
    corrected = dict(zip(tested, holm([comparisons[key].p_value or 0.0 for key in tested]), strict=True))
    return {key: replace(found, adjusted_p=corrected.get(key)) for key, found in comparisons.items()}


def _p_value(differences: Sequence[float]) -> float | None:
    n = len(differences)
    if n < 2:
        return None
    if min(differences) == max(differences):
        return 1.0 if differences[0] == 0 else None
    mean = math.fsum(differences) / n
    error = math.sqrt(math.fsum((d - mean) ** 2 for d in differences) / (n - 1) / n)
    return float(2 * scipy.special.stdtr(n - 1, -abs(mean) / error))
