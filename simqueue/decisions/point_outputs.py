"""The outputs of the points of an analysis: means over replications, which must be defined everywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simqueue.errors import RunError
from simqueue.results.replicated import missing_values

if TYPE_CHECKING:
    from simqueue.sweeps.sweep import Sweep

Record = Mapping[str, Any]


class PointOutputs:
    """The means over replications of the points of a sweep.

    Parameters
    ----------
    sweep : Sweep
    points : int
        How many it has.

    Raises
    ------
    RunError
        If a point could not be run.
    """

    def __init__(self, sweep: Sweep, points: int) -> None:
        self._axes, self._points = sweep.axes, points
        failures = sweep.failures.to_dict("records")
        if failures:
            others = f" (and {len(failures) - 1} other points of {points})" if len(failures) > 1 else ""
            where = self._where(failures[0])
            raise RunError(f"sensitivity: the point {where} cannot be run: {failures[0]['error']}{others}")
        self._rows: dict[tuple[str, int], list[Record]] = {}
        for row in sweep.table.to_dict("records"):
            plain = _without_missing(row)
            self._rows.setdefault((plain["policy"], plain["cell"]), []).append(plain)

    def of(self, policy: str, metric: str) -> list[float]:
        """Return the mean of a metric at each point.

        Raises
        ------
        RunError
            If it is undefined in a replication of a point; the error names both.
        """
        return [self._mean(self._rows[policy, cell], policy, metric) for cell in range(self._points)]

    def _mean(self, rows: Sequence[Record], policy: str, metric: str) -> float:
        for row in rows:
            few = missing_values(row, metric)
            if few or not isinstance(row.get(metric), int | float):
                raise RunError(
                    f"sensitivity: {metric} of {policy} is undefined at {self._where(row)}: {_why(row, few)}; narrow "
                    "the ranges, or choose another metric"
                )
        return math.fsum(float(row[metric]) for row in rows) / len(rows)

    def _where(self, row: Mapping[Any, Any]) -> str:
        """Return the values of the keys at a point."""
        values = {key: row[key] for key in self._axes}
        texts = {key: f"{value:.6g}" if isinstance(value, float) else str(value) for key, value in values.items()}
        return ", ".join(f"{key}={text}" for key, text in texts.items())


def _without_missing(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a row of a table with None for what is missing."""
    from pandas import isna  # noqa: PLC0415 - pandas loads slowly

    return {str(key): None if isna(value) else value for key, value in row.items()}


def _why(row: Record, few: tuple[int, int] | None) -> str:
    if few:
        return f"n too small: {few[0]} values in a run, at least {few[1]} are needed"
    return "it is overloaded, so that there is no steady state" if row.get("overloaded") is True else "no run gives it"
