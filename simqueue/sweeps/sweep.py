"""``sq.sweep``: run a scenario over a design, and the tables that come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from simqueue.errors import InputError, show
from simqueue.execution import Workers, opened
from simqueue.scenario.overrides import Override
from simqueue.sweeps.axes import axes_of
from simqueue.sweeps.design import Design, Sample
from simqueue.sweeps.designfile import listed_axes, read_plan, table_axes
from simqueue.sweeps.files import CLASSES, ROWS, read_table, write_table
from simqueue.sweeps.plan import Plan, Swept, overrides_of, source_of
from simqueue.sweeps.running import Progress, run_missing
from simqueue.sweeps.store import Store
from simqueue.sweeps.table import CELL, ERROR, FAILED, STATUS, WARNINGS, axis_columns, tables
from simqueue.sweeps.view import axes_drawn, means, pivoted, rows_where

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Sweep:
    """What came of a sweep.

    Attributes
    ----------
    table : DataFrame
        One row per cell, policy and replication: the number of the cell, the axes, policy, replication, status
        (``done`` or ``failed``), error, and the columns of the summary. A cell that failed is one row with its error.
    classes : DataFrame
        The same for each class of requests; empty without classes.
    about : mapping
        Version, name and keys of the scenario, seed, and the design.
    folder : Path or None
        Where its files are.
    notes : tuple of str
        What a reader should know about the design.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        classes: pd.DataFrame,
        about: Mapping[str, Any],
        folder: Path | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.table, self.classes, self.about = table, classes, dict(about)
        self.folder, self.notes = folder, tuple(notes)

    @property
    def axes(self) -> tuple[str, ...]:
        """The columns of the axes."""
        return tuple(self.about["axes"])

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row per cell: its number, the axes, status, error, and the warnings of its run."""
        columns = [CELL, *self.axes, STATUS, ERROR, WARNINGS]
        return self.table[columns].drop_duplicates(CELL).reset_index(drop=True)

    @property
    def failures(self) -> pd.DataFrame:
        """The cells that failed, with their errors."""
        found = self.cells[self.cells[STATUS] == FAILED]
        return found[[CELL, *self.axes, ERROR]].reset_index(drop=True)

    def means(self, *metrics: str) -> pd.DataFrame:
        """Return one row per cell that is done and policy, with means of columns over replications.

        A mean is missing if the column is undefined in one of the replications.

        Raises
        ------
        InputError
            If a column has no numbers.
        """
        return means(self.table, self.axes, metrics)

    def pivot(self, values: str, index: str, columns: str = "policy", **where: Any) -> pd.DataFrame:
        """Return the means of a column by two others, for example by two axes.

        Parameters
        ----------
        values : str
            A column of numbers; means are over replications.
        index, columns : str
            Axes, or ``policy``.
        **where
            Only rows with these values, such as ``policy="vllm"``; for names with dots, ``**{"a.b": 1}``.

        Raises
        ------
        InputError
            If a column does not exist, no row is left, or several values of another axis would be mixed.
        """
        return pivoted(self.table, self.axes, values, index, columns, where)

    def where(self, **values: Any) -> Sweep:
        """Return the rows with these values, for example to draw them; parameters as those of `pivot`.

        Raises
        ------
        InputError
            If a column does not exist, or no row is left.
        """
        return Sweep(rows_where(self.table, values), rows_where(self.classes, values), self.about, self.folder)

    def plot(self, x: str, y: str, hue: str | Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
        """Draw a column over an axis: means over replications, with 95 % intervals where there are several.

        Parameters
        ----------
        x : str
            An axis.
        y : str
            A column of numbers, such as ``p99_ttft_ms``.
        hue : str or sequence of str, optional
            Columns with one line for each of their values. By default the other axes and the policy, as far as they
            have several values.
        ax : matplotlib Axes, optional
            By default those of a new figure.

        Raises
        ------
        InputError
            If a column does not exist, `y` has no numbers, or rows of several values of another axis would be mixed.
        """
        by = (hue,) if isinstance(hue, str) else hue
        return axes_drawn(self.table, self.axes, x, y, by, ax)

    def figure(self, y: str) -> Figure:
        """Return a figure of a column over the first axis, see `plot`."""
        drawn = self.plot(self.axes[0], y).figure
        return cast("Figure", drawn)  # a new one, and no part of one

    def __repr__(self) -> str:
        failed = len(self.failures)
        return f"Sweep(cells={len(self.cells)}, failed={failed}, axes={list(self.axes)})"

    def _repr_html_(self) -> str:
        """Return the cells and the first rows, for notebooks."""
        html: str = self.table.drop(columns=[WARNINGS]).dropna(axis=1, how="all").head(20).to_html(index=False)
        return f"<p>{len(self.cells)} cells, {len(self.failures)} failed</p>{html}"


def sweep(
    scenario: Swept,
    *,
    grid: Mapping[str, Any] | None = None,
    zipped: Mapping[str, Any] | None = None,
    cells: str | Path | Sequence[Mapping[str, Any]] | None = None,
    drawn: Mapping[str, Any] | None = None,
    sample: Sample | None = None,
    points: int | None = None,
    design_seed: int | None = None,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    replications: int | None = None,
    out: str | Path | None = None,
    workers: Workers = None,
    progress: Progress | None = None,
    check: bool | None = None,
) -> Sweep:
    """Run a scenario with many values of its keys.

    All cells have the same seed, so that they see the same random numbers. A cell that fails is a row with its error.

    Parameters
    ----------
    scenario : Scenario, ResolvedScenario, path or mapping
        As for `run`; or the path of a design file, to which the other parameters add.
    grid : mapping of str to values, optional
        Dotted keys, every value with every other. Values are a sequence, or a text such as ``"4:32:8"``,
        ``"log:1:100:5"`` or ``"capacity:0.3:1.05:6"``. ``*`` in a key stands for every name there.
    zipped : mapping of str to values, optional
        Keys whose values go together: the first ones, the second ones, ...
    cells : path or sequence of mapping, optional
        A CSV file with a column per key and a row per cell, or a mapping of keys to values for each cell.
    drawn : mapping of str to values, optional
        Keys whose values are drawn together: from a range such as ``"4:32"`` or ``"log:1:100"``, or from a sequence.
    sample : {"sobol", "lhs", "random"}, optional
        How they are drawn; by default Sobol points.
    points : int, optional
        How many are drawn.
    design_seed : int, optional
        Seed of the drawing; by default 0.
    overrides : sequence of str
        ``key.path=value`` for all cells.
    seed : int, optional
        Overrides the seed of the scenario.
    replications : int, optional
        Of each cell; overrides `replications` and `precision` of the scenario.
    out : str or Path, optional
        Folder of the files. Cells that are stored there are not run again. By default nothing is stored.
    workers : int or Executor, optional
        Number of processes, at most one per core, which is the default; or what does the work.
    progress : callable, optional
        See `Progress`.
    check : bool, optional
        As for `run`.

    Returns
    -------
    Sweep

    Raises
    ------
    InputError
        If the scenario, the design or the folder is wrong.
    RunError
        If the files cannot be written.
    """
    design = Design(
        axes_of(grid or {}, "grid"),
        axes_of(zipped or {}, "zipped"),
        _table(cells),
        axes_of(drawn or {}, "drawn"),
    )
    plan = plan_for(scenario, design, overrides_of(overrides, seed, replications))
    plan = plan.drawing(sample, points, design_seed)
    return carry_out(plan, out, workers, progress=progress, check=check)


def _table(cells: str | Path | Sequence[Mapping[str, Any]] | None) -> tuple[Any, ...]:
    if cells is None:
        return ()
    return table_axes(Path(cells)) if isinstance(cells, str | Path) else listed_axes(cells)


def plan_for(scenario: Swept, design: Design, overrides: Sequence[Override]) -> Plan:
    """Return a plan for a scenario, or for a design file to which the design and the overrides are added.

    Raises
    ------
    InputError
        If there is no such file, or a design file is wrong.
    """
    own = read_plan(scenario) if isinstance(scenario, str | Path) else Plan(source_of(scenario), (), Design())
    return own.with_(design, overrides)


def carry_out(
    plan: Plan,
    out: str | Path | None,
    workers: Workers = None,
    *,
    progress: Progress | None = None,
    check: bool | None = None,
) -> Sweep:
    """Run the cells of a plan that are not stored, write the tables, and return them; see `sweep`."""
    if out is not None and (not isinstance(out, str | Path) or out == ""):
        raise InputError(f"out = {show(out)}: must be the path of a folder")
    cells, points = plan.cells()
    folder = None if out is None else Path(out)
    with Store(folder) as store, opened(workers) as where:
        fates = run_missing(cells, points, store, where, progress=progress, check=check)
        made, classes = tables(points.axes, points.values, fates, store)
        about = plan.about() | {"axes": list(axis_columns(points.axes))}
        if folder is not None:
            _write(folder, made, classes, about)
    return Sweep(made, classes, about, folder, points.notes)


def _write(folder: Path, made: pd.DataFrame, classes: pd.DataFrame, about: Mapping[str, Any]) -> None:
    """Write the tables. That of the rows is last: it says that the sweep has ended."""
    if len(classes):
        write_table(classes, about, folder / CLASSES)
    else:
        (folder / CLASSES).unlink(missing_ok=True)  # that of an earlier design
    write_table(made, about, folder / ROWS)


def load_sweep(folder: str | Path) -> Sweep:
    """Read a sweep that has ended from its folder.

    Raises
    ------
    InputError
        If there is none.
    """
    place = Path(folder)
    made, about = read_table(place / ROWS)
    classes = read_table(place / CLASSES)[0] if (place / CLASSES).is_file() else made.iloc[:0]
    return Sweep(made, classes, about, place)
