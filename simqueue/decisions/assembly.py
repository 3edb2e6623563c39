"""From what a search found to an answer: what limits, what is attained there, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simqueue.decisions.alone import why_not_alone
from simqueue.decisions.answers import Answer, value_name
from simqueue.decisions.margins import OVERLOAD, binding
from simqueue.decisions.saturation import StableRate
from simqueue.decisions.search import NO_LIMIT, NO_RATE, Found
from simqueue.decisions.trials import Point, Size, Trials
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.scenario.prices import cost_of


def answered(trials: Trials, found: Found, law: PolicyLoad, stable: StableRate | None) -> Answer:
    """Return the answer for one policy.

    Parameters
    ----------
    trials : Trials
    found : Found
    law : PolicyLoad
    stable : StableRate or None
    """
    rates = _rates(trials, found, stable)
    points = _of_size(trials, found.size)
    near = _nearest(points, found.kept if found.stable else rates[0])
    cost = cost_of(trials.traffic.scenario.policies[0])
    return Answer(
        policy=trials.policy,
        capacity_rps=rates[0],
        low_rps=rates[1],
        high_rps=rates[2],
        unit=trials.traffic.unit,
        binding="" if rates[0] is None else _binding(points, found, stable, rates[0]),
        why_not=_why_not(trials, found) if rates[0] is None else "",
        stopped=found.stopped,
        law_rps=None if law.capacity is None else law.capacity.max_rate_rps,
        attained=_attained(trials, points, near, None if found.stable else rates[0]),
        output_throughput=_scaled(near, "output_throughput", rates[0]),
        gpus=cost.gpus,
        usd_per_hour=cost.usd_per_hour,
        no_price=cost.why_not,
        runs=trials.budget.runs,
        requests=0 if near is None else int(near.row["n_requests"] or 0) // near.size.replications,
        replications=found.size.replications,
        notes=tuple(_notes(trials, found, near)),
        points=tuple(sorted(trials.points.values(), key=lambda one: (one.rate_rps, one.size.requests))),
        row=None if near is None else near.row,
    )


def _rates(trials: Trials, found: Found, stable: StableRate | None) -> tuple[float | None, float | None, float | None]:
    """Return the capacity and the ends of its interval."""
    if found.stable and stable is not None:
        low = stable.low_rps if trials.conditions.bounded else min(stable.low_rps, found.kept or 0.0)
        return stable.rate_rps, low, stable.high_rps
    at = found.crossing
    return (None, None, None) if at is None else (at.rate_rps, at.low_rps, at.high_rps)


def _of_size(trials: Trials, size: Size) -> list[Point]:
    return sorted((point for (_, one), point in trials.points.items() if one == size), key=lambda one: one.rate_rps)


def _nearest(points: Sequence[Point], rate: float | None) -> Point | None:
    steady = [point for point in points if not point.judgement.overloaded]
    if rate is None or not steady:
        return None
    return min(steady, key=lambda point: abs(math.log(point.rate_rps / rate)))


def _binding(points: Sequence[Point], found: Found, stable: StableRate | None, rate: float) -> str:
    if found.stable and stable is not None:
        return stable.binding
    above = next((point for point in points if point.rate_rps >= rate), None)
    condition = None if above is None else binding(above)
    return OVERLOAD if condition is None else str(condition)


def _attained(
    trials: Trials, points: Sequence[Point], near: Point | None, rate: float | None
) -> dict[str, float | None]:
    """Return the values that conditions are about: between two rates on a line, or at a simulated rate."""
    if near is None:
        return {one.column: None for one in trials.conditions.all}
    found = {}
    for number, one in enumerate(near.judgement.each):
        values = [(point.rate_rps, point.judgement.each[number].value) for point in points]
        found[value_name(one)] = one.value if rate is None else _between(values, rate, one.value)
    return found


def _scaled(near: Point | None, column: str, rate: float | None) -> float | None:
    """Return a throughput at a rate; it is proportional to the rate next to a simulated one."""
    if near is None or rate is None:
        return None
    value = near.row.get(column)
    return float(value) * rate / near.rate_rps if isinstance(value, int | float) else None


def _between(values: Sequence[tuple[float, float | None]], rate: float, default: float | None) -> float | None:
    """Return the value at a rate on a line between its neighbours."""
    known = [(at, value) for at, value in values if value is not None]
    below = [pair for pair in known if pair[0] <= rate]
    above = [pair for pair in known if pair[0] > rate]
    if not below or not above:
        return default
    (low, first), (high, second) = below[-1], above[0]
    share = math.log(rate / low) / math.log(high / low)
    return first + share * (second - first)


def _why_not(trials: Trials, found: Found) -> str:
    """Return why there is no capacity."""
    if found.stopped == NO_LIMIT and found.kept is not None:
        return f"{NO_LIMIT} up to {found.kept:.4g} {trials.traffic.unit}"
    if found.lowest is None:
        return f"the {found.stopped} was used up before any rate was bracketed"
    return why_not_alone(trials, found.lowest, sure=found.stopped == NO_RATE)


def _notes(trials: Trials, found: Found, near: Point | None) -> list[str]:
    notes, at = list(found.notes), found.crossing
    if not trials.traffic.random:
        notes.append("nothing is random: the interval is between the last two rates that were tried")
    elif at is not None and (at.low_rps is None or at.high_rps is None):
        notes.append("the interval reaches beyond the rates that were simulated")
    if near is not None and near.doubtful and not (found.stable and trials.conditions.bounded):
        names = ", ".join(near.doubtful)
        notes.append(
            f"too few independent values for the interval of {names}: it can be too narrow; ask for more requests"
        )
    return notes
