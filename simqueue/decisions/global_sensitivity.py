"""Which inputs move the answer: Morris' and Sobol's indices of a scenario over ranges of its keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from simqueue.decisions.factors import Factor, check_varies, error_factors
from simqueue.decisions.point_outputs import PointOutputs
from simqueue.decisions.screening import POINTS, Index, Method, check_screening, indices, shares_of
from simqueue.errors import InputError
from simqueue.execution import Workers, opened
from simqueue.experiment.metric_names import check_names, numeric_columns
from simqueue.experiment.sensitivity import DEFAULT_METRICS
from simqueue.report.lines import metric_label
from simqueue.sweeps.axes import Axis, axes_of
from simqueue.sweeps.cells import Cells
from simqueue.sweeps.design import Design, identity_of
from simqueue.sweeps.plan import Plan, Swept, overrides_of, source_of
from simqueue.sweeps.store import check_folder
from simqueue.sweeps.sweep import carry_out

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from simqueue.execution import Executor
    from simqueue.experiment.replication import Progress
    from simqueue.scenario.resolved import ResolvedScenario
    from simqueue.sweeps.sweep import Sweep

REPLICATIONS: Final = 4
"""Replications of each point, if the scenario asks for a single run."""


@dataclass(frozen=True, slots=True)
class Moved:
    """How much one factor moves a metric of a policy.

    Attributes
    ----------
    policy, metric, factor : str
    indices : tuple of Index
    """

    policy: str
    metric: str
    factor: str
    indices: tuple[Index, ...]

    def plain(self) -> dict[str, Any]:
        """Return plain values: each index by its name, with the ends of its interval."""
        made: dict[str, Any] = {"policy": self.policy, "metric": self.metric, "factor": self.factor}
        for one in self.indices:
            made |= {one.name: one.value, f"ci_low_{one.name}": one.low, f"ci_high_{one.name}": one.high}
        return made


@dataclass(frozen=True)
class GlobalSensitivity:
    """The indices of a scenario.

    Attributes
    ----------
    method : {"morris", "sobol"}
    points : int
        Trajectories of Morris, base points of Sobol.
    replications : int
        Of each point.
    factors : mapping of str to str
        Name -> range.
    rows : tuple of Moved
        By policy, metric and factor.
    notes : tuple of str
    sweep : Sweep
        All points that were run, and their summaries.
    """

    method: Method
    points: int
    replications: int
    factors: Mapping[str, str]
    rows: tuple[Moved, ...]
    notes: tuple[str, ...]
    sweep: Sweep

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per policy, metric and factor, with the indices and their 95 % intervals."""
        from pandas import DataFrame  # noqa: PLC0415 - pandas loads slowly, and the command prints another table

        return DataFrame([row.plain() for row in self.rows])

    def plot(self) -> Figure:
        """Draw the indices as bars with intervals, one panel per policy and metric."""
        from simqueue import figures  # noqa: PLC0415 - matplotlib loads slowly

        labels = {row.metric: metric_label(row.metric) for row in self.rows}
        drawn: Figure = figures.sensitivity_figure(self.rows, self.method, labels)
        return drawn

    def plain(self) -> dict[str, Any]:
        """Return plain values, as ``simqueue sensitivity --over ... --json`` prints them."""
        rows = [row.plain() for row in self.rows]
        head = {"method": self.method, "points": self.points, "replications": self.replications}
        return {**head, "factors": dict(self.factors), "notes": list(self.notes), "indices": rows}


def global_sensitivity(
    scenario: Swept,
    over: Mapping[str, Any],
    *,
    method: Method = "morris",
    metrics: Sequence[str] = DEFAULT_METRICS,
    points: int | None = None,
    model_error: bool = True,
    replications: int | None = None,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    design_seed: int = 0,
    out: str | Path | None = None,
    progress: Progress | None = None,
    workers: Workers = None,
) -> GlobalSensitivity:
    """Return how much the metrics of a scenario are moved by keys, over the ranges of all of them.

    Every point is a scenario with values for all keys. All points see the same random numbers, and the output is the
    mean over the replications.

    Parameters
    ----------
    scenario, overrides, seed, workers
        As for `run`.
    over : mapping of str to values
        Dotted key -> range: ``"4:32"``, ``"log:1:100"``, or a list of values, each equally likely. Ranges of keys that
        are whole numbers have all whole numbers in them. The error of the step times is added, unless a
        `step_time_factor` is among the keys.
    method : {"morris", "sobol"}
        Morris finds the inputs that matter with few points; Sobol says which share of the variance each one makes.
    metrics : sequence of str
        Columns of the summary.
    points : int, optional
        Trajectories of Morris (20), base points of Sobol (128, a power of 2): with d inputs, points times d + 1, or
        times d + 2, are run.
    model_error : bool
        Whether the published error of the presets of the step times is one of the inputs: uniform from 1 - e to 1 + e.
    replications : int, optional
        Of each point; by default those of the scenario, and 4 if it has one.
    design_seed : int
        Seed of the points and of the bootstrap.
    out : str or Path, optional
        Folder in which the points are stored as a sweep, so that a stopped analysis goes on.
    progress : callable, optional
        See `Progress`.

    Raises
    ------
    InputError
        If the scenario, a range or a name is wrong, there is no input, or SALib is not installed.
    RunError
        If a point cannot be run, or a metric is undefined at a point; it names the point.
    """
    wanted = POINTS.get(method, 0) if points is None else points
    check_screening(method, wanted)
    source, given = source_of(scenario), overrides_of(overrides, seed, None)
    cells = Cells(source, given, _checked(axes_of(over, "--over")))
    base = source.scenario(given).resolve()
    check_names(base.policy_names, None, metrics, numeric_columns(base))
    runs = _replications(base, replications)
    if out is not None:
        check_folder(Path(out))  # before the run that tells which error applies
    with opened(workers) as where:
        factors, notes = _factors(base, cells, where, model_error=model_error)
        shares = shares_of(method, len(factors), wanted, design_seed)
        points_made = _Points.of(factors, shares.tolist())
        plan = Plan(source, (*given, *overrides_of((), None, runs)), Design(table=points_made.axes))
        done = carry_out(plan, out, where, progress=progress)
    outputs = PointOutputs(done, points_made.different)
    rows = []
    for policy, metric in product(base.policy_names, metrics):
        values = outputs.of(policy, metric)
        found = indices(method, shares, [values[place] for place in points_made.places], design_seed)
        rows += [Moved(policy, metric, factor.name, own) for factor, own in zip(factors, found, strict=True)]
    ranges = {factor.name: factor.written for factor in factors}
    return GlobalSensitivity(method, wanted, runs, ranges, tuple(rows), (*notes, *done.notes), done)


def _checked(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    for axis in axes:
        check_varies(axis)
    return axes


def _factors(
    base: ResolvedScenario, cells: Cells, where: Executor, *, model_error: bool
) -> tuple[list[Factor], tuple[str, ...]]:
    """Return all inputs, and notes on what is left out."""
    given = [Factor(axis.key, (axis,), (cells.is_whole(axis),)) for axis in cells.axes]
    added, notes = error_factors(base, cells.axes, where) if model_error else ((), ())
    if not given and not added:
        raise InputError("--over: give a key and its range; there is no input to vary")
    return [*given, *added], notes


def _replications(scenario: ResolvedScenario, wanted: int | None) -> int:
    if wanted is not None:
        return wanted
    return REPLICATIONS if scenario.replications == 1 else scenario.replications


@dataclass(frozen=True, slots=True)
class _Points:
    """The points of a design as cells of a sweep.

    Attributes
    ----------
    axes : tuple of Axis
        All keys, with the values of each different point.
    places : tuple of int
        For each point of the design, which of the different ones it is.
    """

    axes: tuple[Axis, ...]
    places: tuple[int, ...]

    @property
    def different(self) -> int:
        """How many different points there are."""
        return max(self.places) + 1

    @classmethod
    def of(cls, factors: Sequence[Factor], shares: Sequence[Sequence[float]]) -> _Points:
        """Return the points at these shares of the ranges."""
        found: dict[str, int] = {}
        unique, places = list[tuple[Any, ...]](), list[int]()
        for row in shares:
            point = tuple(value for factor, at in zip(factors, row, strict=True) for value in factor.values(at))
            identity = identity_of(point)
            if identity not in found:
                found[identity] = len(unique)
                unique.append(point)
            places.append(found[identity])
        axes = [axis for factor in factors for axis in factor.axes]
        columns = zip(*unique, strict=True)
        made = (replace(axis, values=column) for axis, column in zip(axes, columns, strict=True))
        return cls(tuple(made), tuple(places))
