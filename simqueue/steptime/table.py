"""Measured step times on a grid, with linear interpolation."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simqueue.datafiles.csvtable import read_table
from simqueue.errors import InputError
from simqueue.steptime.base import Batch, StepTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

AXES = ("decode_seqs", "context_tokens", "prefill_tokens")
_WHAT = ("decodes per step", "tokens of context per decode", "prompt tokens per step")
Point = tuple[float, float, float]
Axes = tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class TableStepTime(StepTime):
    """Multilinear interpolation on a full grid.

    Attributes
    ----------
    name : str
        Name of the file, for messages.
    axes : three tuples of float
        Values of `AXES` in the table, ascending.
    seconds_at : mapping of index triple to float
        Measured duration at each point of the grid.
    rejects : bool
        Whether a step outside the grid is an error.
    least_s : float
        Shortest duration in the table; extrapolated durations are not below it.
    """

    name: str
    axes: Axes
    seconds_at: Mapping[tuple[int, int, int], float]
    rejects: bool
    least_s: float

    def seconds(self, batch: Batch) -> float:
        """Return the duration of one step.

        Raises
        ------
        InputError
            If the step is outside the grid and `rejects` is true.
        """
        point = self._point(batch)
        if self.rejects:
            for axis, value, what in zip(self.axes, point, _WHAT, strict=True):
                if not axis[0] <= value <= axis[-1]:
                    raise InputError(
                        f"step_time: {self.name} covers {axis[0]:g} to {axis[-1]:g} {what}; a step has {value:g} "
                        "(outside: warn extrapolates)"
                    )
        return max(self._interpolated(point), self.least_s)

    def shortest_s(self) -> float:
        """Return 0: a table may lack the smallest batch, and its durations need not grow with the batch."""
        return 0.0

    def warnings(self, steps: Mapping[str, NDArray[Any]]) -> list[str]:
        """Return one line for each axis whose range a run left."""
        decode_seqs, repeat = steps["decode_seqs"], steps["repeat"]
        last_context = steps["context_tokens"] + (repeat - 1) * decode_seqs
        contexts = last_context / decode_seqs.clip(min=1)
        contexts[decode_seqs == 0] = self.axes[1][0]
        found = []
        for axis, values, what in zip(self.axes, (decode_seqs, contexts, steps["prefill_tokens"]), _WHAT, strict=True):
            outside = (values < axis[0]) | (values > axis[-1])
            if outside.any():
                found.append(
                    f"step_time: {self.name} covers {axis[0]:g} to {axis[-1]:g} {what}; "
                    f"this run has {values.min():g} to {values.max():g}"
                )
        return found

    def _point(self, batch: Batch) -> Point:
        context = batch.context_tokens / batch.decode_seqs if batch.decode_seqs else self.axes[1][0]
        return (batch.decode_seqs, context, batch.prefill_tokens)

    def _interpolated(self, point: Point) -> float:
        cells = [_cell(axis, value) for axis, value in zip(self.axes, point, strict=True)]
        total = 0.0
        for corner in product((0, 1), repeat=3):
            weight = 1.0
            for (_, share), side in zip(cells, corner, strict=True):
                weight *= share if side else 1 - share
            if weight:
                i, j, k = (low + side for (low, _), side in zip(cells, corner, strict=True))
                total += weight * self.seconds_at[i, j, k]
        return total


def read_step_table(path: str, base_dir: Path, *, rejects: bool) -> TableStepTime:
    """Read a grid; see `simqueue.steptime.settings.TableSettings`.

    Raises
    ------
    InputError
        If the file cannot be read, a value is not a number, or a combination is missing or occurs twice.
    """
    points = _points(base_dir / path, path)
    axes = _axes(points)
    seconds_at: dict[tuple[int, int, int], float] = {}
    without_decodes = {point[2]: point for point in reversed(points) if point[0] == 0}  # the context has no meaning
    for i, j, k in product(*(range(len(axis)) for axis in axes)):
        at = (axes[0][i], axes[1][j], axes[2][k])
        key = at if at in points else without_decodes.get(at[2]) if at[0] == 0 else None
        if key is None:
            where = ", ".join(f"{name} {value:g}" for name, value in zip(AXES, at, strict=True))
            raise InputError(f"{path}: no row for {where}; the grid needs every combination of its values")
        seconds_at[i, j, k] = points[key]
    return TableStepTime(path, axes, seconds_at, rejects, min(points.values()))


def _points(file: Path, path: str) -> dict[Point, float]:
    """Return the measured seconds by point."""
    seconds: dict[Point, float] = {}
    table = read_table(file, path, pad=True)
    table.check_columns((*AXES, "ms"))
    for row in table.rows():
        decodes, context, prefill = (row.number(name, least=0) for name in AXES)
        point = (decodes, context, prefill)
        if point in seconds:
            raise row.error("this combination occurs twice")
        seconds[point] = row.number("ms", above=0) / 1e3
    return seconds


def _axes(points: Mapping[Point, float]) -> Axes:
    with_decodes = [point for point in points if point[0] > 0] or list(points)
    return (
        tuple(sorted({point[0] for point in points})),
        tuple(sorted({point[1] for point in with_decodes})),
        tuple(sorted({point[2] for point in points})),
    )


def _cell(axis: tuple[float, ...], value: float) -> tuple[int, float]:
    """Return the index of the interval of `value` (the outermost if it is outside) and the position within it."""
    if len(axis) == 1:
        return 0, 0.0
    low = min(max(bisect_right(axis, value) - 1, 0), len(axis) - 2)
    return low, (value - axis[low]) / (axis[low + 1] - axis[low])
