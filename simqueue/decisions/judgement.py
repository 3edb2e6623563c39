"""Whether a policy of a result keeps its conditions: yes, no, or not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from simqueue.decisions.conditions import LOST, Condition, Conditions
from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.results.replicated import missing_values
from simqueue.results.steadiness import unsteady
from simqueue.statistics.estimate import estimate
from simqueue.statistics.intervals import Interval

if TYPE_CHECKING:
    from simqueue.results.result import Result
    from simqueue.results.summary import Row

OVERLOADED: Final = "overloaded: there is no steady state"
_NO_INTERVAL: Final = ("max_itl_ms",)
"""The largest value of all has no interval: it decides by itself."""


class Verdict(StrEnum):
    """What is known of a condition."""

    MET = "met"
    NOT_MET = "not met"
    NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Judged:
    """What a result says about one condition.

    Attributes
    ----------
    condition : Condition
    value : float or None
        None if it is undefined, or if there is no steady state of which it could be a value.
    low, high : float or None
        Ends of its interval over replications; None without any.
    verdict : Verdict
    reason : str
        Why it is not met or not known, if the value does not say so itself.
    undefined : bool
        Whether there is no value although there is a steady state, as with too few requests for a percentile.
    """

    condition: Condition
    value: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str = ""
    undefined: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a result says about all conditions of one policy.

    Attributes
    ----------
    policy : str
    overloaded : bool
        Whether there is no steady state.
    each : tuple of Judged
        In the order of the conditions.
    """

    policy: str
    overloaded: bool
    each: tuple[Judged, ...]

    @property
    def verdict(self) -> Verdict:
        """Met if all conditions are, not met if one is not, otherwise not known."""
        found = {one.verdict for one in self.each}
        for answer in (Verdict.NOT_MET, Verdict.NOT_KNOWN):
            if answer in found:
                return answer
        return Verdict.MET

    @property
    def reason(self) -> str:
        """Why it is not met or not known; empty if it is met."""
        verdict = self.verdict
        if verdict is Verdict.MET:
            return ""
        reasons = [_said(one) for one in self.each if one.verdict is verdict]
        return "; ".join(dict.fromkeys(reasons))


def judge(result: Result, policy: str, conditions: Conditions, *, steady: bool = True) -> Judgement:
    """Return what a result says about a policy and its conditions.

    A condition is met if the whole interval of its value is within the limit, and not met if the whole interval is
    beyond it. A value of a single run has no interval and decides by itself.

    Parameters
    ----------
    result : Result
        Of a scenario that `Conditions.asked_of` returned.
    policy : str
    conditions : Conditions
    steady : bool
        Whether the conditions are about a steady state, so that an overloaded policy meets none of them; if not, they
        are about the requests of the runs as they were.

    Raises
    ------
    InputError
        The result has no such policy or class.
    """
    rows = {row["request_class"]: row for row in result.summary_rows if row["policy"] == policy}
    if not rows:
        raise InputError(unknown("policy", policy, result.policies))
    overloaded = steady and any(map(unsteady, rows.values()))
    each = []
    for one in conditions.all:
        if one.request_class not in rows:
            raise InputError(unknown("request class", one.request_class, map(str, rows)))
        if overloaded:
            each.append(Judged(one, None, None, None, Verdict.NOT_MET, OVERLOADED))
        else:
            each.append(_judged(one, rows[one.request_class], _single_rows(result, policy, one), result.confidence))
    return Judgement(policy, overloaded, tuple(each))


def _single_rows(result: Result, policy: str, one: Condition) -> list[Row]:
    chosen = (policy, one.request_class)
    return [row for row in result.replication_rows if (row["policy"], row["request_class"]) == chosen]


def _judged(one: Condition, row: Row, singles: Sequence[Row], confidence: float) -> Judged:
    found = _lost(singles, confidence) if one.column == LOST else interval_of(row, one.column)
    if found is None:
        return Judged(one, None, None, None, Verdict.NOT_KNOWN, _why_undefined(one.column, row), undefined=True)
    value, low, high = found.value, found.low, found.high
    if len(singles) == 1 or one.column in _NO_INTERVAL:
        verdict = Verdict.MET if one.met_by(value) else Verdict.NOT_MET
        return Judged(one, value, None, None, verdict)
    if low is None or high is None:
        return Judged(one, value, None, None, Verdict.NOT_KNOWN, _why_no_interval(one.column, row))
    ends = one.met_by(low), one.met_by(high)
    verdict = Verdict.MET if all(ends) else Verdict.NOT_KNOWN if any(ends) else Verdict.NOT_MET
    return Judged(one, value, low, high, verdict)


def interval_of(row: Row, column: str) -> Interval | None:
    """Return a column of a summary with its interval; None if it is undefined."""
    value, low, high = (row.get(key) for key in (column, f"ci_low_{column}", f"ci_high_{column}"))
    if not isinstance(value, int | float):
        return None
    return Interval(float(value), *(float(end) if isinstance(end, int | float) else None for end in (low, high)))


def lost_share(row: Row) -> float | None:
    """Return the share of the requests of a run that have no answer; None without any request."""
    rejected, timed_out, unfinished, total = (
        row[name] for name in ("rejected", "timed_out", "unfinished", "n_requests")
    )
    lost = [count for count in (rejected, timed_out, unfinished) if isinstance(count, int)]
    return sum(lost) / total if isinstance(total, int) and total else None


def _lost(singles: Sequence[Row], confidence: float) -> Interval | None:
    """Return the share of requests without an answer over replications; None without any request in one of them."""
    shares = [share for row in singles if (share := lost_share(row)) is not None]
    if len(shares) < len(singles):
        return None
    found = estimate(shares, confidence)
    low, high = (None if end is None else min(1.0, max(0.0, end)) for end in (found.low, found.high))
    return Interval(found.value, low, high)


def _why_undefined(column: str, row: Row) -> str:
    return _too_few(column, row) or f"{column} is undefined: no request has a value"


def _why_no_interval(column: str, row: Row) -> str:
    return _too_few(column, row) or f"{column} has no interval: it is undefined in some of the replications"


def _too_few(column: str, row: Row) -> str:
    lacks = missing_values(row, column)
    if lacks is None:
        return ""
    return f"runs of {lacks[0]} values have no {column}; at least {lacks[1]} are needed: ask for more requests"


def _said(one: Judged) -> str:
    if one.reason:
        return one.reason
    return f"{one.condition} is {one.verdict}: {one.value:.4g}"
