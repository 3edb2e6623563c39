"""What is shown of the tables of a sweep: means over replications, pivots, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from simqueue import figures
from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.report.lines import metric_label
from simqueue.statistics.intervals import mean_interval
from simqueue.sweeps.table import CELL, DONE, SHARE_OF_CAPACITY, STATUS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

POLICY: Final = "policy"
_UNITS: Final = {"_rps": "requests/s", "_s": "s", "_ms": "ms", "_tokens": "tokens", "_bytes": "bytes"}
MOST_LINES: Final = 20


def checked_columns(table: pd.DataFrame, names: Sequence[str], what: str) -> None:
    """Raise `InputError` if a table lacks one of these columns."""
    for name in names:
        if name not in table:
            raise InputError(f"{what}: {unknown('column', name, list(table.columns))}")


def numbers(table: pd.DataFrame, name: str, what: str) -> None:
    """Raise `InputError` unless a column of a table has numbers."""
    checked_columns(table, [name], what)
    if table[name].dtype.kind not in "iuf":
        raise InputError(f"{what} = {name}: is no column of numbers")


def means(table: pd.DataFrame, axes: Sequence[str], metrics: Sequence[str]) -> pd.DataFrame:
    """Return one row per cell that is done and policy, with means of metrics over replications.

    A mean is missing if the metric is undefined in one of the replications.

    Raises
    ------
    InputError
        If a metric is no column of numbers.
    """
    for name in metrics:
        numbers(table, name, "metric")
    done = table[table[STATUS] == DONE]
    groups = done.groupby([CELL, POLICY], sort=False)
    found = (
        groups[list(metrics)].mean().where(groups[list(metrics)].count().eq(groups.size(), axis=0)).astype("float64")
    )
    shared = groups[list(axes)].first()
    return shared.join(found).reset_index()


def pivoted(
    table: pd.DataFrame, axes: Sequence[str], values: str, index: str, columns: str, where: Mapping[str, Any]
) -> pd.DataFrame:
    """Return a metric by two axes; see `Sweep.pivot`."""
    chosen = rows_where(table, where)
    checked_columns(chosen, [index, columns], "pivot")
    _check_told_apart(chosen, axes, (index, columns), "pivot")
    found = means(chosen, [name for name in dict.fromkeys((*axes, index, columns)) if name != POLICY], [values])
    wide: pd.DataFrame = found.pivot_table(index=index, columns=columns, values=values, sort=False, observed=True)
    return wide.sort_index(axis=0).sort_index(axis=1)


def axes_drawn(
    table: pd.DataFrame, axes: Sequence[str], x: str, y: str, hue: Sequence[str] | None, ax: Axes | None
) -> Axes:
    """Draw a metric over an axis; see `Sweep.plot`."""
    checked_columns(table, [x, *(hue or ())], "plot")
    numbers(table, y, "y")
    done = table[table[STATUS] == DONE]
    if done.empty:
        raise InputError("plot: no cell is done")
    same = (x, x.removesuffix(SHARE_OF_CAPACITY), x + SHARE_OF_CAPACITY)
    by = [name for name in (*axes, POLICY) if name not in same and done[name].nunique(dropna=False) > 1]
    if hue is not None:
        _check_told_apart(done, axes, (x, *hue), "plot")
        by = list(hue)
    lines = _lines(done, x, y, by)
    if len(lines) > MOST_LINES:
        raise InputError(
            f"plot: {len(lines)} lines, of {', '.join(by)}; up to {MOST_LINES} can be told apart: choose rows first, "
            "with where"
        )
    return figures.sweep_axes(lines, label(x), metric_label(y), ax)


def _lines(done: pd.DataFrame, x: str, y: str, by: Sequence[str]) -> dict[str, list[figures.SweepPoint]]:
    """Return the points of each line by its name."""
    groups = done.groupby(list(by), sort=False, dropna=False) if by else [((), done)]
    made: dict[str, list[figures.SweepPoint]] = {}
    for key, part in groups:
        values = key if isinstance(key, tuple) else (key,)
        name = ", ".join(_named(column, value) for column, value in zip(by, values, strict=True))
        points = []
        for at, rows in part.groupby(x, sort=True):
            known = rows[y].dropna().tolist()
            if len(known) == len(rows):
                found = mean_interval([float(value) for value in known])
                points.append((at, found.value, found.low, found.high))
        made[name] = points
    return made


def rows_where(table: pd.DataFrame, where: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows with these values; `InputError` if there are none."""
    checked_columns(table, list(where), "where")
    for name, value in where.items():
        is_so = (table[name] == value).fillna(value=False)
        if len(table) and not is_so.any():
            raise InputError(f"where: no row has {name} = {value}")
        table = table[is_so]
    return table


def _check_told_apart(table: pd.DataFrame, axes: Sequence[str], by: Sequence[str], what: str) -> None:
    """Raise `InputError` if rows of several values of another axis, or of several policies, would be mixed."""
    shown = table[table[STATUS] == DONE]
    cells = shown.groupby(list(by), dropna=False)
    for name in (*axes, POLICY):
        if name not in by and (cells[name].nunique(dropna=False) > 1).any():
            raise InputError(f"{what}: rows with several values of {name} would be mixed; choose one with where")


def label(column: str) -> str:
    """Return the label of a column of an axis, with its unit."""
    name = column.rpartition(".")[2]
    if name == "share_of_capacity":
        return "rate as a share of the capacity"
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
    return f"{column} ({unit})" if unit else column


def _named(column: str, value: object) -> str:
    """Return the value of a column for a legend."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if column == POLICY else f"{column.rpartition('.')[2]} {text}"
