"""Why no rate meets the conditions: what one request at a time attains."""

from __future__ import annotations

from typing import Final

from simqueue.decisions.budget import BudgetSpentError
from simqueue.decisions.judgement import Judgement, Verdict
from simqueue.decisions.trials import Point, Trials
from simqueue.errors import InputError

_TRIES: Final = 5
_SPARE: Final = 1.5
"""Requests come so many times further apart than the longest one takes."""


def why_not_alone(trials: Trials, lowest: Point, *, sure: bool) -> str:
    """Return why no rate meets the conditions.

    Parameters
    ----------
    trials : Trials
    lowest : Point
        The lowest rate that was simulated.
    sure : bool
        Whether its intervals exclude that it meets the conditions.
    """
    found, unit = _alone(trials, lowest), trials.traffic.unit
    if found is None or found.verdict is not Verdict.NOT_MET:
        if not sure:
            return f"not known whether any rate meets {_broken(lowest.judgement)} at {lowest.rate_rps:.3g} {unit}"
        return f"no rate down to {lowest.rate_rps:.3g} {unit} meets {_broken(lowest.judgement)}"
    return f"no rate meets {_broken(found)}, even with one request at a time"


def _broken(judgement: Judgement) -> str:
    parts = []
    for one in judgement.each:
        if one.value is None:
            parts.append(f"{one.condition}: {one.reason}")
        elif not one.condition.met_by(one.value):
            parts.append(f"{one.condition}: it is {one.value:,.4g}")
    return "; ".join(dict.fromkeys(parts))


def _alone(trials: Trials, lowest: Point) -> Judgement | None:
    """Return the judgement of requests that never meet; None if the traffic cannot be made so."""
    workload = trials.traffic.scenario.workload
    if not trials.traffic.steady or workload is None or workload.arrivals is None:
        return None
    gap_s = 1 / lowest.rate_rps
    try:
        for _ in range(_TRIES):
            row, judgement = trials.judged(trials.traffic.one_at_a_time(gap_s, lowest.size.requests))
            if row["max_concurrent_requests"] == 1:
                return judgement
            gap_s *= 10 * _SPARE
    except (BudgetSpentError, InputError):
        return None
    return None
