"""The limits that a system must keep: on values of a run, and on single requests, of which a share must meet them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from simqueue.errors import InputError, show
from simqueue.names import hint
from simqueue.printable import shortened
from simqueue.results.classes import ALL_CLASSES
from simqueue.results.fleets import FLEET_TYPES
from simqueue.results.latencies import ALWAYS, GOOD, OF_ALL, OF_CLIENTS, parsed, statistic
from simqueue.results.objectives import value_column
from simqueue.results.replicated import interval_columns
from simqueue.results.summary import SUMMARY_TYPES
from simqueue.scenario.objectives import with_limits, with_percentiles
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.workload.slo import OF_REQUESTS, of_requests, of_run

ATTAINMENT: Final = 0.99
"""Share of the requests that must meet the limits of single requests, and that must not be lost, unless it is given."""
OF_SCENARIO: Final = "scenario"
"""Instead of a condition: the limits that the scenario itself has."""
LOST: Final = "lost_share"
"""Share of the requests that are rejected, time out, or are unfinished at the horizon: they have no latency."""

_CONDITION: Final = re.compile(r"\s*([^\s<>=]+)\s*(<=|>=)\s*([^\s<>=]+)\s*")
_KNOWN_OF_EACH: Final = ("ttft_ms", "tpot_ms", "e2el_ms")
"""Limits of a percentile over requests; a percentile of ITL is one over tokens."""
_BOUNDED: Final = ("tpot_ms", "itl_ms", "_share", "mean_batch")
"""Ends of what stays below some value at any rate, as no more requests run than there are seats."""
_STATISTICS: Final = tuple(
    f"{kind}_{name}_ms" for name in OF_ALL + OF_CLIENTS for kind in ("mean", *map(statistic, ALWAYS))
)
_OTHERS: Final = (
    *(name for name in interval_columns((*SUMMARY_TYPES, *FLEET_TYPES)) if parsed(name) is None),
    "max_itl_ms",
    GOOD,
    LOST,
)
METRICS: Final = (*OF_REQUESTS, *_STATISTICS, *_OTHERS)
"""What can be limited; other percentiles too, such as ``p90_ttft_ms`` or ``p99.9_itl_ms``."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A limit on one value of a run.

    Attributes
    ----------
    column : str
        Of the summary, or `LOST`.
    at_most : bool
        Whether the value must not be above the limit; else not below it.
    limit : float
        In the unit of the column.
    request_class : str
        Whose row of the summary it is about.
    """

    column: str
    at_most: bool
    limit: float
    request_class: str = ALL_CLASSES

    def __str__(self) -> str:
        of_class = "" if self.request_class == ALL_CLASSES else f" of {self.request_class}"
        return f"{self.column}{of_class}{'<=' if self.at_most else '>='}{self.limit:g}"

    def met_by(self, value: float) -> bool:
        """Return whether a value keeps the limit."""
        return value <= self.limit if self.at_most else value >= self.limit


@dataclass(frozen=True, slots=True)
class Conditions:
    """All limits that a system must keep.

    Attributes
    ----------
    all : tuple of Condition
        In the order in which they were given. Limits of single requests are one of them: `good_share`.
    of_requests : mapping of str to float
        Limits of single requests, in milliseconds; empty if there are none, or if they are those of the scenario.
    own : bool
        Whether limits of the scenario are among them, so that it must keep them.
    """

    all: tuple[Condition, ...]
    of_requests: Mapping[str, float] = field(default_factory=dict)
    own: bool = False

    def __str__(self) -> str:
        return ", ".join(map(str, self.all))

    @property
    def of_good_requests(self) -> dict[str, float]:
        """What makes a request good: `of_requests`, or else the limits on percentiles of TTFT, TPOT and E2EL."""
        if self.of_requests:
            return dict(self.of_requests)
        found = {}
        for one in self.all:
            percentile, metric = parsed(one.column) or (None, "")
            if percentile is not None and one.at_most and f"{metric}_ms" in _KNOWN_OF_EACH:
                found[f"{metric}_ms"] = one.limit
        return found

    @property
    def bounded(self) -> bool:
        """Whether no condition is about a value that grows without a limit as the stable rate comes near."""
        if self.own and any(one.column == GOOD for one in self.all):
            return False
        values = [*self.of_requests, *(one.column for one in self.all if one.column != GOOD)]
        return all(name.endswith(_BOUNDED) for name in values)

    def asked_of(self, scenario: ResolvedScenario) -> ResolvedScenario:
        """Return a scenario whose summary has all that the conditions are about.

        Without `own`, the limits of the scenario itself no longer count; goodput is that of `of_good_requests`.
        """
        levels = [found[0] for one in self.all if (found := parsed(one.column)) and found[0] is not None]
        return with_percentiles(scenario if self.own else with_limits(scenario, self.of_good_requests), levels)


def parse_conditions(
    texts: Sequence[str], *, attainment: float | None = None, scenario: ResolvedScenario | None = None
) -> Conditions:
    """Return the conditions that texts state.

    Unless a limit on it is given, or requests have limits of their own, `lost_share` is one of them: percentiles are of
    requests that finish, so a system could keep them by refusing the others.

    Parameters
    ----------
    texts : sequence of str
        ``METRIC<=VALUE`` or ``METRIC>=VALUE``, with a metric of `METRICS` or another percentile; ``scenario`` stands
        for the limits that the scenario has.
    attainment : float, optional
        Share of the requests that must meet ``ttft_ms``, ``tpot_ms``, ``itl_ms`` and ``e2el_ms``; by default 0.99.
    scenario : ResolvedScenario, optional
        Needed for ``scenario``.

    Raises
    ------
    InputError
        If a text is no condition, a metric is unknown or limited twice, or a value is not allowed.
    """
    share = _checked_share(attainment)
    if not texts:
        raise InputError("--slo: give at least one limit, such as p99_ttft_ms<=500")
    found: list[Condition] = []
    limits: dict[str, float] = {}
    own = OF_SCENARIO in texts
    for text in texts:
        if text == OF_SCENARIO:
            found += _of_scenario(scenario, share)
            continue
        condition = _parsed(text)
        if condition.column in OF_REQUESTS:
            _add_of_request(condition, text, limits)
        else:
            found.append(condition)
    if limits and own:
        raise InputError("--slo: limits of single requests cannot be combined with those of the scenario")
    if limits:
        found.append(Condition(GOOD, at_most=False, limit=share))
    _check_all(found, with_requests=bool(limits) or own)
    if attainment is not None and not any(one.column == GOOD for one in found):
        raise InputError("--attainment: needs limits of single requests, such as --slo ttft_ms<=500")
    if not any(one.column in (GOOD, LOST) for one in found):
        found.append(Condition(LOST, at_most=True, limit=_complement(share)))
    return Conditions(tuple(found), limits, own)


def _complement(share: float) -> float:
    return round(1 - share, 12)  # 0.01, and not 0.010000000000000009


def _checked_share(attainment: float | None) -> float:
    if attainment is None:
        return ATTAINMENT
    if not 0 < attainment <= 1:
        raise InputError(f"--attainment: {show(attainment)}: must be > 0 and <= 1, such as 0.99")
    return attainment


def _parsed(text: str) -> Condition:
    """Return one condition; its column is still the metric of a single request, if it is about these."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise InputError(f"--slo: '{text}': must be METRIC<=VALUE or METRIC>=VALUE, such as p99_ttft_ms<=500")
    name, sign, written = match.groups()
    column = _column(name, text)
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"--slo: '{text}': '{written}' must be a number, without a unit")
    _check_value(column, value, text)
    return Condition(column, sign == "<=", value)


def _column(name: str, text: str) -> str:
    known = value_column(name)
    if known in METRICS or parsed(known) is not None:
        return known
    question = hint(name, METRICS)
    raise InputError(
        f"--slo: '{text}': unknown metric '{shortened(name)}'; {question}{question and ' '}known: "
        f"{', '.join(OF_REQUESTS)}; a mean, median or percentile of them, such as p99_ttft_ms; {', '.join(_OTHERS)}"
    )


def _check_value(column: str, value: float, text: str) -> None:
    if column.endswith("_ms") and value <= 0:
        raise InputError(f"--slo: '{text}': a limit in ms must be > 0")
    if column.endswith(("_share", "_rate")) and not 0 <= value <= 1:
        raise InputError(f"--slo: '{text}': a share must be >= 0 and <= 1")


def _add_of_request(condition: Condition, text: str, limits: dict[str, float]) -> None:
    if not condition.at_most:
        raise InputError(f"--slo: '{text}': a limit of single requests must be <=")
    if condition.column in limits:
        raise InputError(f"--slo: {condition.column} is limited twice")
    limits[condition.column] = condition.limit


def _of_scenario(scenario: ResolvedScenario | None, share: float) -> list[Condition]:
    """Return the limits of a scenario; those of classes on means and percentiles are about the class."""
    if scenario is None:
        raise InputError(f"--slo {OF_SCENARIO}: there is no scenario")
    slo, classes = scenario.slo or {}, scenario.class_slos
    found = [Condition(value_column(name), True, limit) for name, limit in of_run(slo).items()]
    for label, limits in classes.items():
        if limits != slo:
            found += [Condition(value_column(name), True, limit, label) for name, limit in of_run(limits).items()]
    if any(map(of_requests, (slo, *classes.values()))):
        found.append(Condition(GOOD, at_most=False, limit=share))
    if not found:
        raise InputError(f"--slo {OF_SCENARIO}: the scenario {scenario.name} has no slo")
    return found


def _check_all(found: Sequence[Condition], *, with_requests: bool) -> None:
    named = [(one.column, one.at_most, one.request_class) for one in found]
    for i, one in enumerate(found):
        if named[i] in named[:i]:
            given = " (by --attainment)" if one.column == GOOD else ""
            raise InputError(f"--slo: {one.column} is limited twice{given}")
        if one.column == GOOD and not with_requests:
            raise InputError(f"--slo: {GOOD} needs limits of single requests, such as ttft_ms<=500")
