"""What changed from one result to another, and whether a change is beyond a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from simqueue.decisions.key_changes import KeyChange, key_changes
from simqueue.decisions.limits import Limit, parse_limits
from simqueue.errors import InputError
from simqueue.experiment.comparing import DEFAULT_METRICS, without_noise
from simqueue.experiment.metric_names import better
from simqueue.names import unknown
from simqueue.statistics.contrast import Known, Method, contrast, method_of
from simqueue.statistics.intervals import Interval
from simqueue.statistics.ratio import ratio_of_means

if TYPE_CHECKING:
    import pandas as pd

    from simqueue.decisions.recorded import Recorded

State = Literal["within", "beyond", "not told"]
"""Whether a change is surely within its limit, surely beyond it, or neither."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A limit on a change, and whether the change is beyond it."""

    limit: Limit
    state: State


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one metric of one policy.

    Attributes
    ----------
    policy, metric : str
    before, after : float or None
        Means over the replications; None if undefined in one of them.
    difference : Interval or None
        After minus before.
    relative : Interval or None
        The same as a share of the value before; None if that is 0. It has an interval if replications are paired.
    method : str
        See `method_of`; "none" also if there is nothing to compare.
    replications : tuple of int
        Of both results: how many are compared.
    verdict : str
        better, worse (higher, lower, if neither is better), the same, no difference shown, or why nothing can be said.
    limits : tuple of Judged
        The limits on this metric.
    """

    policy: str
    metric: str
    before: float | None
    after: float | None
    difference: Interval | None
    relative: Interval | None
    method: Method
    replications: tuple[int, int]
    verdict: str
    limits: tuple[Judged, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return plain values, None if undefined."""
        difference, relative = self.difference, self.relative
        return {
            "policy": self.policy,
            "metric": self.metric,
            "before": self.before,
            "after": self.after,
            "difference": None if difference is None else difference.value,
            "ci_low_difference": None if difference is None else difference.low,
            "ci_high_difference": None if difference is None else difference.high,
            "relative": None if relative is None else relative.value,
            "ci_low_relative": None if relative is None else relative.low,
            "ci_high_relative": None if relative is None else relative.high,
            "method": self.method,
            "replications_before": self.replications[0],
            "replications_after": self.replications[1],
            "verdict": self.verdict,
            "limits": [{"limit": str(one.limit), "state": one.state} for one in self.limits],
        }


@dataclass(frozen=True)
class Changes:
    """What changed from one result to another.

    Attributes
    ----------
    before, after : Recorded
    keys : tuple of KeyChange
        The keys of the scenario that differ, and the version.
    rows : tuple of Change
        By policy and metric.
    only_before, only_after : tuple of str
        Policies that only one of the two has.
    untold : tuple of str
        What a limit could not be applied to, because its policy is gone.
    """

    before: Recorded
    after: Recorded
    keys: tuple[KeyChange, ...]
    rows: tuple[Change, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    untold: tuple[str, ...]

    def limited(self, state: State) -> tuple[str, ...]:
        """Return the limits in this state, each with its policy."""
        found = [f"{one.limit} of {row.policy}" for row in self.rows for one in row.limits if one.state == state]
        return (*found, *self.untold) if state == "not told" else tuple(found)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per policy and metric; limits and their states are texts."""
        from pandas import DataFrame  # noqa: PLC0415 - pandas loads slowly, and the command prints another table

        rows = [row.plain() | {"limits": "; ".join(f"{o.limit}: {o.state}" for o in row.limits)} for row in self.rows]
        return DataFrame(rows).convert_dtypes()

    def plain(self) -> dict[str, Any]:
        """Return plain values, as ``simqueue compare BASELINE RESULT --json`` prints them."""
        return {
            "before": self.before.label,
            "after": self.after.label,
            "warnings": list(self.after.warnings),
            "keys": [one.plain() for one in self.keys],
            "only_before": list(self.only_before),
            "only_after": list(self.only_after),
            "changes": [row.plain() for row in self.rows],
            "beyond": list(self.limited("beyond")),
            "not_told": list(self.limited("not told")),
        }


def changes_between(
    before: Recorded, after: Recorded, metrics: Sequence[str] | None = None, limits: Sequence[str] = ()
) -> Changes:
    """Return what changed.

    The intervals of rows have the confidence of the earlier result, each by itself. Verdicts hold for all rows
    together, and so do the states of all limits (Bonferroni).

    Parameters
    ----------
    before, after : Recorded
    metrics : sequence of str, optional
        Columns of the summary; by default those of a comparison. Those of limits are added.
    limits : sequence of str
        See `parse_limits`.

    Raises
    ------
    InputError
        If neither result has a metric, a limit is wrong, or the results have no policy in common.
    """
    parsed = checked_limits(metrics, limits, (*before.columns, *after.columns))
    policies = [name for name in before.policies if name in after.policies]
    if not policies:
        raise InputError(
            f"{before.label} and {after.label} have no policy in common: {', '.join(before.policies)}; "
            f"{', '.join(after.policies)}"
        )
    shown = dict.fromkeys([*(DEFAULT_METRICS if metrics is None else metrics), *(one.metric for one in parsed)])
    keys = [(policy, metric) for policy in policies for metric in shown]
    gone = tuple(name for name in before.policies if name not in after.policies)
    compared = _Compared(before, after, parsed, rows=len(keys), checks=len(parsed) * len(policies))
    return Changes(
        before,
        after,
        key_changes(before, after),
        tuple(compared.row(*key) for key in keys),
        gone,
        tuple(name for name in after.policies if name not in before.policies),
        tuple(f"{limit} of {name}" for name in gone for limit in parsed),
    )


def checked_limits(metrics: Sequence[str] | None, limits: Sequence[str], columns: Sequence[str]) -> tuple[Limit, ...]:
    """Return the limits that texts say.

    Raises
    ------
    InputError
        If a metric is none of the columns, or a limit is wrong.
    """
    known = tuple(dict.fromkeys(columns))
    for metric in metrics or ():
        if metric not in known:
            raise InputError(f"--metric: {unknown('metric', metric, known)}")
    return parse_limits(limits, known)


@dataclass(frozen=True)
class _Compared:
    """Two results, and how many statements about them must hold together."""

    before: Recorded
    after: Recorded
    limits: tuple[Limit, ...]
    rows: int
    checks: int

    def row(self, policy: str, metric: str) -> Change:
        """Return the change of one metric of one policy."""
        before, after = self.before.known(policy, metric), self.after.known(policy, metric)
        if before is None or after is None:
            return self._undefined(policy, metric, before, after)
        after = _without_rounding(after, before)
        same_seed = self.before.seed == self.after.seed
        method = method_of(after, before, same_seed=same_seed)
        if method == "paired" or (method == "none" and same_seed):
            n = min(len(before.values), len(after.values))  # what both have saw the same random numbers
            before, after = Known(before.values[:n]), Known(after.values[:n])
        confidence = self.before.confidence
        found = contrast(after, before, method, confidence)
        if same_seed and after.values == before.values:
            found = Interval(0.0, 0.0, 0.0)  # the same runs, also where the value of so few would not be known
        return Change(
            policy,
            metric,
            before.mean,
            after.mean,
            found,
            _relative(after, before, method, found, confidence),
            method,
            (len(before.values), len(after.values)),
            _verdict(metric, found, contrast(after, before, method, _shared(confidence, self.rows))),
            tuple(Judged(limit, self._state(limit, after, before, method, found)) for limit in self._limits_on(metric)),
        )

    def _limits_on(self, metric: str) -> list[Limit]:
        return [limit for limit in self.limits if limit.metric == metric]

    def _undefined(self, policy: str, metric: str, before: Known | None, after: Known | None) -> Change:
        """Return a change without a value. What was defined and is so no longer is beyond every limit."""
        columns = [one.values[policy] for one in (self.before, self.after)]
        lost = before is not None and metric in columns[1]
        lacking = [one.label for one, found in ((self.before, before), (self.after, after)) if found is None]
        kind = "undefined" if all(metric in one for one in columns) else "no such column"
        return Change(
            policy,
            metric,
            None if before is None else before.mean,
            None if after is None else after.mean,
            None,
            None,
            "none",
            (_count(before), _count(after)),
            f"{kind} in {' and '.join(lacking)}",
            tuple(Judged(limit, "beyond" if lost else "not told") for limit in self._limits_on(metric)),
        )

    def _state(self, limit: Limit, after: Known, before: Known, method: Method, alone: Interval) -> State:
        """Return whether a change is beyond a limit: the excess over it is shown to be above 0, or not above 0."""
        if alone.low == alone.high == 0:
            return "within"
        confidence = _shared(self.before.confidence, self.checks)
        states: list[State] = []
        for sign in limit.direction:
            up = 1 if sign == "+" else -1
            factor = 1 + up * limit.amount if limit.relative else 1.0
            allowed = 0.0 if limit.relative else limit.amount
            found = contrast(after, before, method, confidence, factor)
            low, high = (None if end is None else up * end - allowed for end in (found.low, found.high))
            if low is not None and high is not None:
                low, high = min(low, high), max(low, high)
                states.append("beyond" if low > 0 else "within" if high <= 0 else "not told")
            else:
                states.append("not told")
        return "beyond" if "beyond" in states else "not told" if "not told" in states else "within"


def _count(found: Known | None) -> int:
    return 0 if found is None else len(found.values)


def _shared(confidence: float, statements: int) -> float:
    """Return the confidence of each of several statements that hold together."""
    return 1 - (1 - confidence) / max(1, statements)


def _without_rounding(after: Known, before: Known) -> Known:
    if len(after.values) != len(before.values):
        return after
    return Known(tuple(without_noise(after.values, before.values)), after.half_width, after.exact)


def _relative(after: Known, before: Known, method: Method, found: Interval, confidence: float) -> Interval | None:
    if before.mean <= 0:
        return None
    if method == "exact":
        value = found.value / before.mean
        return Interval(value, value, value)
    ratio = ratio_of_means(after.values, before.values, confidence) if method == "paired" else None
    if ratio is None or ratio.low is None or ratio.high is None:
        return Interval(found.value / before.mean, None, None)
    return Interval(ratio.value - 1, ratio.low - 1, ratio.high - 1)


def _verdict(metric: str, alone: Interval, found: Interval) -> str:
    """Return what is shown; `found` is the interval that holds with those of all rows."""
    if alone.low == alone.high == 0:
        return "the same"
    if found.low is None or found.high is None:
        return "no interval"
    if found.low <= 0 <= found.high:
        return "no difference shown"
    side, wanted = "higher" if found.value > 0 else "lower", better(metric)
    return side if not wanted else "better" if side == wanted else "worse"
