"""Intervals of a summary that are widened by the error of the step times: to what runs at both ends of it give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from simqueue.printable import listed
from simqueue.results.replicated import interval_columns

if TYPE_CHECKING:
    from simqueue.results.summary import Row, Value

FACTORS: Final = ("step_time_factor_low", "step_time_factor_high")
"""Columns with the factors of the step times at both ends; null: of this policy no error is published."""
_SHOWN: Final = 5
_Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Widening:
    """What the policies of a result give if their step times are off.

    Attributes
    ----------
    factors : mapping of str to (float, float) or None
        Those of each policy's step times at both ends; None if there are none.
    at_low, at_high : sequence of dict
        The rows of the summary at both ends.
    """

    factors: Mapping[str, _Ends | None]
    at_low: Sequence[Row]
    at_high: Sequence[Row]

    def applied(self, rows: Sequence[Row]) -> tuple[Row, ...]:
        """Return the rows with intervals that contain the values and the intervals of all three runs.

        A column that is undefined at one of the ends has no interval.
        """
        return tuple(self._widened(row, found) for row, found in zip(rows, self._ends(rows), strict=True))

    def undefined(self, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
        """Yield policy and text for each end at which values are undefined that are not so in the middle."""
        for row, ends in zip(rows, self._ends(rows), strict=True):
            factors = self.factors.get(str(row["policy"]))
            if factors is None or row["request_class"] != "all":
                continue
            for factor, end in zip(factors, ends, strict=True):
                yield from ((str(row["policy"]), text) for text in _told(row, end, factor))

    def _ends(self, rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
        found = [{_key(row): row for row in end} for end in (self.at_low, self.at_high)]
        for row in rows:
            low, high = (end.get(_key(row), {}) for end in found)
            yield low, high

    def _widened(self, row: Row, ends: tuple[Row, Row]) -> Row:
        factors = self.factors.get(str(row["policy"]))
        made = dict(row)
        for name in _columns(row):
            all_three = [_interval(one, name) for one in (row, *ends)] if factors else [_own(row, name)]
            known = [one for one in all_three if one is not None]
            is_known = len(known) == len(all_three)
            made[f"ci_low_{name}"] = min(low for low, _ in known) if is_known else None
            made[f"ci_high_{name}"] = max(high for _, high in known) if is_known else None
        return made | dict(zip(FACTORS, factors or (None, None), strict=True))


def _key(row: Row) -> tuple[Value, Value]:
    return row["policy"], row["request_class"]


def _columns(row: Row) -> tuple[str, ...]:
    """Return the columns that have an interval, or would have one over replications."""
    plain = [name for name in row if not name.startswith(("ci_low_", "ci_high_", "effective_n_"))]
    replicated = [name for name in plain if f"ci_low_{name}" in row]
    return tuple(replicated) or interval_columns(plain)


def _own(row: Row, name: str) -> _Ends | None:
    """Return the interval of a value over replications; None without any."""
    return _interval(row, name) if f"ci_low_{name}" in row else None


def _interval(row: Row, name: str) -> _Ends | None:
    """Return the interval of a value over replications, or the value of a single run as one; None if undefined."""
    value = row.get(name)
    low, high = row.get(f"ci_low_{name}", value), row.get(f"ci_high_{name}", value)
    if isinstance(low, int | float) and isinstance(high, int | float):
        return float(low), float(high)
    return None


def _told(row: Row, end: Row, factor: float) -> Iterator[str]:
    how = off(factor)
    if end.get("overloaded") is True and row.get("overloaded") is not True:
        yield f"overloaded if {how}, within the published error"
    lost = [name for name in _columns(row) if _interval(row, name) and not _interval(end, name)]
    if lost:
        yield f"no interval with the model error of {listed(lost, _SHOWN)}: undefined if {how}"


def off(factor: float, policy: str = "") -> str:
    """Return in words what a factor does: ``its steps take 9.2 % longer``."""
    whose = f"the steps of {policy}" if policy else "its steps"
    return f"{whose} take {100 * abs(factor - 1):.3g} % {'longer' if factor > 1 else 'less time'}"


def widening_note(rows: Sequence[Mapping[str, Value]]) -> str | None:
    """Return what intervals contain besides chance; None if they are not widened."""
    if not any(FACTORS[1] in row for row in rows):
        return None
    texts: dict[str, list[str]] = {}
    for row in rows:
        high = row[FACTORS[1]]
        percent = f"{100 * (high - 1):.3g} % ({row['model_error_regime']})" if isinstance(high, float) else "none known"
        texts.setdefault(percent, []).append(str(row["policy"]))
    errors = "; ".join(f"{', '.join(names)}: {text}" for text, names in texts.items())
    alone = "" if rows[0].get("replications") != 1 else "; of one run, so that chance is not in them"
    return f"intervals: widened to runs whose step times are off by the published error of the preset: {errors}{alone}"
