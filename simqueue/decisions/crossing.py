"""Where measured curves cross their limit: an estimate, and the points at which an interval contains the limit.

A curve is known at some rates, as margins: what is above 0 is beyond the limit. Each rate has the margin of the value
and those of both ends of its interval. The estimate is where the value crosses 0. The interval is a test turned round:
all rates at which the interval contains 0. Between two rates, margins are taken as linear in the logarithm of the rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Margins:
    """How far one rate is beyond the limits: above 0 it is, below it is not. Infinity: there is no steady state.

    Attributes
    ----------
    rate_rps : float
    value, low, high : float
        Of the value, and of the best and the worst end of its interval; all are those of the condition for which they
        are largest.
    """

    rate_rps: float
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where the limits are crossed.

    Attributes
    ----------
    rate_rps : float
    low_rps, high_rps : float or None
        Ends of the interval; None if it reaches beyond the rates that are known.
    """

    rate_rps: float
    low_rps: float | None
    high_rps: float | None

    @property
    def relative(self) -> float:
        """The longer side of the interval over the estimate; infinity if it is open."""
        if self.low_rps is None or self.high_rps is None:
            return math.inf
        return max(self.rate_rps - self.low_rps, self.high_rps - self.rate_rps) / self.rate_rps

    def holds(self, rate_rps: float) -> bool:
        """Return whether the interval contains a rate."""
        return (self.low_rps or 0.0) <= rate_rps <= (math.inf if self.high_rps is None else self.high_rps)


def crossing(points: Sequence[Margins]) -> Crossing | None:
    """Return where margins cross 0 first; None if the values do not.

    Parameters
    ----------
    points : sequence of Margins
        In any order; of each rate one.
    """
    ordered = sorted(points, key=lambda one: one.rate_rps)
    at = first_crossing(ordered, lambda one: one.value)
    if at is None:
        return None
    low = first_crossing(ordered, lambda one: one.high, within=0.0)
    high = first_crossing(ordered, lambda one: one.low, within=1.0)
    return Crossing(at, None if low is None else min(low, at), None if high is None else max(high, at))


def first_crossing(ordered: Sequence[Margins], of: Callable[[Margins], float], within: float = 0.5) -> float | None:
    """Return the lowest rate at which a margin rises through 0; None if it does not between two known rates.

    Parameters
    ----------
    ordered : sequence of Margins
        By rate.
    of : callable
        Which of the margins.
    within : float
        Where it is between two rates if the steady state ends between them: 0 at the first, 1 at the second.
    """
    for before, after in pairwise(ordered):
        below, above = of(before), of(after)
        if below > 0:
            return None
        if above > 0:
            share = within if math.isinf(above) else -below / (above - below)
            return before.rate_rps * math.exp(share * math.log(after.rate_rps / before.rate_rps))
    return None


def falls(points: Sequence[Margins]) -> bool:
    """Return whether a higher rate is surely better than a lower one: the curve is not monotone."""
    ordered = sorted(points, key=lambda one: one.rate_rps)
    worst = -math.inf
    for one in ordered:
        if one.high < worst:
            return True
        worst = max(worst, one.low if math.isfinite(one.low) else -math.inf)
    return False


def proposal(below: Margins, above: Margins) -> float:
    """Return the rate at which to look next between one that keeps the limits and one that does not.

    It is where a line crosses 0 through the margins as logarithms of value over limit, and never near an end.
    """
    span = math.log(above.rate_rps / below.rate_rps)
    share = 0.5
    if math.isfinite(above.value):
        under, over = math.log1p(max(below.value, -0.99)), math.log1p(above.value)
        share = min(max(-under / (over - under), 0.15), 0.85) if over > under else 0.5
    return below.rate_rps * math.exp(share * span)
