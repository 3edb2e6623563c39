"""How far a point is from the limits: above 0, a limit is not kept."""

from __future__ import annotations

import math

from simqueue.decisions.conditions import Condition
from simqueue.decisions.crossing import Margins
from simqueue.decisions.judgement import Judged
from simqueue.decisions.trials import Point

OVERLOAD = "steady state"
"""What is said to limit a policy whose conditions hold as long as there is a steady state."""


def margins(point: Point) -> Margins:
    """Return the margins of a point: of the condition that is worst for each."""
    if point.judgement.overloaded:
        return Margins(point.rate_rps, math.inf, math.inf, math.inf)
    each = [_of(one) for one in point.judgement.each]
    value, low, high = (max(ends) for ends in zip(*each, strict=True))
    return Margins(point.rate_rps, value, low, high)


def binding(point: Point) -> Condition | None:
    """Return the condition that is nearest to its limit, or furthest beyond it; None without a steady state."""
    if point.judgement.overloaded:
        return None
    return max(point.judgement.each, key=lambda one: _of(one)[0]).condition


def _of(one: Judged) -> tuple[float, float, float]:
    """Return the margin of a value, and those of the better and the worse end of its interval."""
    if one.value is None:
        return math.inf, math.inf, math.inf
    ends = sorted(_margin(one.condition, one.value if end is None else end) for end in (one.low, one.high))
    return _margin(one.condition, one.value), ends[0], ends[1]


def _margin(condition: Condition, value: float) -> float:
    beyond = value - condition.limit if condition.at_most else condition.limit - value
    return beyond / condition.limit if condition.limit else beyond
