"""Selection of the best of several alternatives on common random numbers, by KN++ (Kim and Nelson 2006).

Alternatives are simulated side by side. After every stage each one is dropped that another one leads by so much that it
can hardly be better by the indifference zone or more; dropped ones are not simulated any further. If differences are
normal, the one that is left is, with the wanted probability, the best or within the indifference zone of the best.

The lead that KN++ asks for grows with the variance over the zone, so that an alternative that is hopeless and varies
much, such as an overloaded one, would stay for long. A fifth of the error is therefore spent on a second rule, a t-test
that can be made after every stage: it drops what is worse at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

FIRST_STAGE = 10
"""Replications before the first decision: variances of differences must be known."""
_TESTED = 0.2
"""Share of the error that is spent on the t-test."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How sure a selection must be.

    Attributes
    ----------
    alternatives : int
        Number of alternatives at the start.
    zone : float
        Difference that does not matter, > 0, in the unit of the values.
    confidence : float
        Probability of a right selection.
    """

    alternatives: int
    zone: float
    confidence: float

    @property
    def error(self) -> float:
        """The probability of a wrong decision that each pair with the best may have."""
        return (1 - self.confidence) / (self.alternatives - 1)


def dropped(values: Mapping[str, Sequence[float]], rule: Rule) -> tuple[str, ...]:
    """Return the alternatives that can be dropped; at least one is left.

    Parameters
    ----------
    values : mapping of str to sequence of float
        Of the alternatives that are left, one value per replication in the same order of replications; smaller is
        better.
    rule : Rule
    """
    totals = {name: math.fsum(found) for name, found in values.items()}
    return tuple(
        name
        for name in values
        if any(totals[other] < totals[name] and _beats(values[other], values[name], rule) for other in values)
    )


def _beats(leading: Sequence[float], values: Sequence[float], rule: Rule) -> bool:
    """Return whether a lead is too large for chance if the other one were better by the zone, or better at all."""
    n = len(values)
    lead = math.fsum(values) - math.fsum(leading)
    chance = rule.zone / 2 * (_longest(values, leading, rule) - n)
    return lead > max(0.0, chance) or told_apart(values, leading, _TESTED * rule.error)


def last_stage(values: Mapping[str, Sequence[float]], rule: Rule) -> int:
    """Return the number of replications after which, with the variances of these values, any lead is enough."""
    return max(
        (math.floor(_longest(values[a], values[b], rule)) + 1 for a in values for b in values if a < b), default=0
    )


def told_apart(values: Sequence[float], others: Sequence[float], error: float) -> bool:
    """Return whether two means differ, by a t-test that can be made after every replication.

    The number of replications depends on the values, so an ordinary t-test would find differences that are not there.
    This one averages the likelihood ratio over differences that are normally distributed, in standard deviations of one
    pair (Wang and Ramdas 2024). Under equal means it ever exceeds 1 / `error` with a probability of at most `error`.
    """
    differences = np.subtract(values, others)
    n = len(differences)
    squares, total = float(np.sum(differences**2)), float(np.sum(differences))
    if squares == 0:
        return False
    rest = 1 - total**2 / ((n + 1) * squares)
    return -0.5 * math.log(n + 1) - n / 2 * math.log(rest) >= -math.log(error)


def _longest(values: Sequence[float], others: Sequence[float], rule: Rule) -> float:
    """Return the replications after which any lead is enough, with the constant of KN for as many as there are now."""
    n = len(values)
    error = (1 - _TESTED) * rule.error
    constant = (n - 1) * math.expm1(-2 / (n - 1) * math.log(2 * error))
    return constant * float(np.var(np.subtract(values, others), ddof=1)) / rule.zone**2
