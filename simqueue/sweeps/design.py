"""Designs: which combinations of values of which axes are cells."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any, Final, Literal, get_args

from simqueue.errors import InputError, show
from simqueue.names import unknown
from simqueue.sweeps.axes import MOST_VALUES, Axis, plain_value

Sample = Literal["random", "lhs", "sobol"]
SAMPLES: Final[tuple[str, ...]] = get_args(Sample)
IsWhole = Callable[[Axis], bool]
"""Returns whether the numbers of an axis must be whole."""
Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Design:
    """Axes, and how they are combined: every cell of `grid` with every one of `zipped`, of `table` and of `drawn`.

    Attributes
    ----------
    grid : tuple of Axis
        Every value with every other; the first axis changes slowest.
    zipped : tuple of Axis
        The first values together, the second values together, and so on.
    table : tuple of Axis
        As `zipped`; from a file with one row per cell.
    drawn : tuple of Axis
        Values are drawn together, as `sample` says.
    sample : {"random", "lhs", "sobol"}
        Independent, a Latin hypercube, or scrambled Sobol points.
    points : int or None
        How many are drawn.
    seed : int
        Of the drawing. It has nothing to do with the seed of the scenario.
    """

    grid: tuple[Axis, ...] = ()
    zipped: tuple[Axis, ...] = ()
    table: tuple[Axis, ...] = ()
    drawn: tuple[Axis, ...] = ()
    sample: Sample = "sobol"
    points: int | None = None
    seed: int = 0

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, in the order in which the values of a cell are."""
        return (*self.grid, *self.zipped, *self.table, *self.drawn)

    @property
    def written(self) -> dict[str, Any]:
        """The design as plain data."""
        parts = {"grid": self.grid, "zip": self.zipped, "cells": self.table, "draw": self.drawn}
        made: dict[str, Any] = {name: {axis.key: axis.written for axis in axes} for name, axes in parts.items() if axes}
        drawing = {"sample": self.sample, "points": self.points, "design_seed": self.seed}
        return made | (drawing if self.drawn else {})


@dataclass(frozen=True, slots=True)
class Points:
    """The cells of a design: what each gives to the axes.

    Attributes
    ----------
    axes : tuple of Axis
    values : tuple of tuple
        One per cell, without duplicates; one value per axis.
    notes : tuple of str
        What a reader should know, such as how many duplicates there were.
    """

    axes: tuple[Axis, ...]
    values: tuple[Values, ...]
    notes: tuple[str, ...]


def check_design(design: Design) -> None:
    """Raise `InputError` if a design has no axes, two for one key, or not what its kind needs."""
    if not design.axes:
        raise InputError("the sweep has no axes: give --grid, --zip, --draw or --design, or a design file")
    seen: dict[str, Axis] = {}
    for axis in design.axes:
        if axis.key in seen:
            raise InputError.at(axis.place, f"the key has another axis already ({seen[axis.key].place})")
        seen[axis.key] = axis
    if design.sample not in SAMPLES:
        raise InputError(unknown("sample", design.sample, SAMPLES))
    if design.drawn:
        _check_whole("points", design.points, 1, MOST_VALUES, "with axes to draw from (--draw)")
        _check_whole("design_seed", design.seed, 0, 2**63 - 1, "")
    elif design.points is not None:
        raise InputError(f"points = {show(design.points)}: is for axes to draw from (--draw), and there are none")


def _check_whole(name: str, value: object, least: int, most: int, when: str) -> None:
    if value is None:
        raise InputError(f"{name}: must be given {when}")
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InputError(f"{name} = {show(value)}: must be a whole number from {least} to {most:,}")


def points_of(design: Design, is_whole: IsWhole) -> Points:
    """Return the cells of a design.

    Parameters
    ----------
    design : Design
    is_whole : callable
        Asked about axes with a range.

    Raises
    ------
    InputError
        If the design is wrong, see `check_design`; if zipped axes differ in length, or there are too many cells.
    """
    check_design(design)
    listed = [[(value,) for value in axis.listed(whole=is_whole(axis))] for axis in design.grid]
    blocks: list[Sequence[Values]] = [*listed, *_together(design.zipped, is_whole), *_together(design.table, is_whole)]
    if design.drawn:
        blocks.append(_drawn(design, is_whole))
    many = math.prod(map(len, blocks))
    if many > MOST_VALUES:
        raise InputError(f"the sweep has {many:,} cells; up to {MOST_VALUES:,} are possible")
    found: dict[str, Values] = {}
    for parts in product(*blocks):
        values = tuple(chain(*parts))
        found.setdefault(identity_of(values), values)
    return Points(design.axes, tuple(found.values()), tuple(_notes(design, many - len(found))))


def _together(axes: Sequence[Axis], is_whole: IsWhole) -> Iterator[Sequence[Values]]:
    """Yield the values of zipped axes, if there are any."""
    if not axes:
        return
    listed = [axis.listed(whole=is_whole(axis)) for axis in axes]
    for axis, values in zip(axes, listed, strict=True):
        if len(values) != len(listed[0]):
            text = f"{len(values)} values; {axes[0].key} has {len(listed[0])}, and zipped axes must have as many"
            raise InputError.at(axis.place, text)
    yield list(zip(*listed, strict=True))


def _drawn(design: Design, is_whole: IsWhole) -> list[Values]:
    """Return the values that are drawn."""
    points = design.points or 0
    whole = [is_whole(axis) for axis in design.drawn]
    return [
        tuple(
            axis.drawn(share, whole=one) for axis, share, one in zip(design.drawn, shares.tolist(), whole, strict=True)
        )
        for shares in _shares(design.sample, len(design.drawn), points, design.seed)
    ]


def _shares(sample: Sample, axes: int, points: int, seed: int) -> Any:
    """Return points in the unit cube, one row each."""
    import numpy as np  # noqa: PLC0415 - few designs draw, and scipy.stats loads slowly
    from scipy.stats import qmc  # noqa: PLC0415 - same

    generator = np.random.default_rng(seed)
    if sample == "random":
        return generator.random((points, axes))
    if sample == "lhs":
        return qmc.LatinHypercube(axes, seed=generator).random(points)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # on numbers that are no power of 2: there is a note on them
        return qmc.Sobol(axes, seed=generator).random(points)


def _notes(design: Design, duplicates: int) -> Iterator[str]:
    if duplicates:
        cells = "1 cell is a duplicate" if duplicates == 1 else f"{duplicates:,} cells are duplicates"
        yield f"{cells} of others and left out"
    points = design.points or 0
    if design.drawn and design.sample == "sobol" and points & (points - 1):
        lower = 1 << (points.bit_length() - 1)
        yield f"{points} is no power of 2: {lower} or {2 * lower} Sobol points cover the space more evenly"


def identity_of(values: Values) -> str:
    """Return a text that is the same for values that a scenario cannot tell apart, such as 8 and 8.0."""
    return json.dumps([_comparable(plain_value(value)) for value in values], sort_keys=True, default=repr)


def _comparable(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _comparable(inner) for key, inner in value.items()}
    return [_comparable(inner) for inner in value] if isinstance(value, list) else value
