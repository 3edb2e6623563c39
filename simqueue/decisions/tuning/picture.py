"""The figure of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simqueue.figures.tuning import Point, tuning_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simqueue.decisions.judgement import Judged
    from simqueue.decisions.tuning.answer import Standing, Tuning

_KEEPS = {"best": True, "not better than the best": True, "not told apart": None, "does not keep its limits": False}


def figure_of(found: Tuning) -> Figure:
    """Return the figure of an answer: the margin over the cost; if a metric is the goal, the metric over the cost."""
    by_cost = found.goal in ("USD per hour", "GPUs")
    priced = all(one.usd_per_hour is not None for one in found.standings if one.gpus is not None)
    points = [_point(one, priced=priced, by_cost=by_cost) for one in found.standings]
    return tuning_figure(
        points,
        cost="cost (USD/hour)" if priced else "GPUs",
        value="largest value over its limit" if by_cost else _label(found.tie),
        limit=1.0 if by_cost else None,
        title=f"{found.policy}: {found.limits}",
    )


def _point(one: Standing, *, priced: bool, by_cost: bool) -> Point:
    cost = one.usd_per_hour if priced else one.gpus
    if by_cost:
        low, high = _ends(one.limits)
        y = one.margin
    else:
        metric = one.metric
        y, low, high = (None, None, None) if metric is None else (metric.value, metric.low, metric.high)
    return Point(cost, y, low, high, _KEEPS.get(one.state), one.state == "best")


def _ends(limits: tuple[Judged, ...]) -> tuple[float | None, float | None]:
    """Return the ends of the interval of the margin: of the value that is the largest over its limit."""
    known = [one for one in limits if one.low is not None and one.high is not None and one.condition.at_most]
    known = [one for one in known if one.condition.limit > 0 and one.value is not None]
    if not known:
        return None, None
    worst = max(known, key=lambda one: (one.value or 0.0) / one.condition.limit)
    return (worst.low or 0.0) / worst.condition.limit, (worst.high or 0.0) / worst.condition.limit


def _label(metric: str) -> str:
    name, _, unit = metric.rpartition("_")
    return f"{name.replace('_', ' ')} (ms)" if unit == "ms" else metric.replace("_", " ")
