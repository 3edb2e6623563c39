"""``simqueue sweep``: run a scenario over a design."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from simqueue import figures
from simqueue.cli.actions.common import check_figure, print_json, say
from simqueue.cli.actions.screen import print_rows, progress_bar
from simqueue.cli.failures import FAILED, print_error
from simqueue.errors import InputError
from simqueue.execution import Executor
from simqueue.experiment.metric_names import numeric_columns
from simqueue.names import unknown
from simqueue.outputs import Outputs
from simqueue.printable import shortened
from simqueue.report.lines import metric_label, number
from simqueue.results.tables import records
from simqueue.sweeps.axes import Axis, parse_axis, plain_value
from simqueue.sweeps.cells import Cells
from simqueue.sweeps.design import Design, Points
from simqueue.sweeps.designfile import table_axes
from simqueue.sweeps.plan import Plan, overrides_of
from simqueue.sweeps.preview import Preview, preview
from simqueue.sweeps.store import STORE, Store, check_folder
from simqueue.sweeps.sweep import Sweep, carry_out, plan_for
from simqueue.sweeps.table import WARNINGS

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("request_throughput", "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms")
_MOST_ROWS = 40
_MOST_FAILURES = 10
_MOST_CELLS = 8


def sweep(
    scenario: str,
    grid: list[str] | None,
    zip_: list[str] | None,
    draw: list[str] | None,
    sample: str | None,
    points: int | None,
    seed_of_design: int | None,
    design: Path | None,
    set_: list[str] | None,
    seed: int | None,
    replications: int | None,
    out: Path | None,
    metric: list[str] | None,
    figure: Path | None,
    workers: Executor,
    dry_run: bool,
    json_: bool,
    quiet: bool,
) -> None:
    """Run the cells that are missing, and print the results, or what would be done."""
    more = Design(
        _axes(grid, "--grid"),
        _axes(zip_, "--zip"),
        () if design is None else table_axes(design),
        _axes(draw, "--draw"),
    )
    plan = plan_for(scenario, more, overrides_of(set_ or (), seed, replications))
    plan = plan.drawing(sample, points, seed_of_design)
    folder = Path("results") / f"{plan.name}-sweep" if out is None else out
    if dry_run:
        _preview(plan, folder, workers.workers, json_=json_)
        return
    check_figure(figure)
    metrics = metric or list(METRICS)
    _check_metrics(plan, metrics)
    with Outputs() as outputs:
        place = None if figure is None else outputs.file(figure)
        found = _carried_out(plan, folder, workers, quiet=quiet)
        if place is not None:
            figures.write(found.figure(metrics[0]), place)
    _show(found, metrics, folder, figure, json_=json_)
    if len(found.failures):
        _name_failures(found)
        raise typer.Exit(FAILED)


def _carried_out(plan: Plan, folder: Path, workers: Executor, *, quiet: bool) -> Sweep:
    """Run the cells that are missing. If that is stopped, say what is there."""
    try:
        with progress_bar(plan.name, quiet=quiet, timed=True) as progress:
            return carry_out(plan, folder, workers, progress=progress)
    except (KeyboardInterrupt, SystemExit):
        if (folder / STORE).is_file():
            typer.echo(f"note: the cells until then are stored in {folder}; the same command goes on", err=True)
        raise


def _axes(texts: list[str] | None, option: str) -> tuple[Axis, ...]:
    return tuple(parse_axis(text, option) for text in texts or ())


def _check_metrics(plan: Plan, metrics: Sequence[str]) -> None:
    """Raise `InputError` for a metric that the first cell that can be settled does not have."""
    cells, points = plan.cells()
    for values in points.values:
        with suppress(InputError):  # of a cell that fails
            known = numeric_columns(cells.settled(values).scenario)
            break
    else:
        return
    for name in metrics:
        if name not in known:
            raise InputError(f"--metric: {unknown('metric', name, known)}")


def _show(found: Sweep, metrics: Sequence[str], folder: Path, figure: Path | None, *, json_: bool) -> None:
    """Print means of the metrics of each cell and policy, or everything as JSON."""
    if json_:
        print_json(
            {"folder": str(folder), **found.about, "notes": list(found.notes), "failures": records(found.failures)}
            | {"rows": records(found.table), "classes": records(found.classes)}
        )
        return
    for line in [*found.notes, *_about_warnings(found)]:
        say(f"note: {line}")
    shown = [name for name in metrics if name in found.table]
    means = found.means(*shown)
    if len(means):
        _print_means(found, means, shown)
    for path in sorted(folder.glob("*.parquet")) + ([] if figure is None else [figure]):
        say(f"written: {path}")


def _about_warnings(found: Sweep) -> list[str]:
    """Return how many cells have warnings, with the most frequent one."""
    texts: list[str] = found.cells[WARNINGS].dropna().tolist()
    if not texts:
        return []
    counts = Counter(line for text in texts for line in text.splitlines())
    line, _ = counts.most_common(1)[0]
    return [f"{len(texts):,} of {len(found.cells):,} cells have warnings (column {WARNINGS}), such as: {line}"]


def _print_means(found: Sweep, means: pd.DataFrame, metrics: Sequence[str]) -> None:
    policies = ["policy"] if means["policy"].nunique() > 1 else []
    names = [*found.axes, *policies]
    rows = records(means.head(_MOST_ROWS))
    columns = [_column([row[name] for row in rows]) for name in names]
    cells = [[*texts, *(number(row[name]) for name in metrics)] for *texts, row in zip(*columns, rows, strict=True)]
    titles = short_names(names)
    print_rows([*titles, *map(metric_label, metrics)], cells, left=titles)
    if len(means) > len(rows):
        say(f"and {len(means) - len(rows):,} more rows")
    if (found.table["replication"].fillna(0) > 0).any():
        say("means over the replications of each cell")


def short_names(names: Sequence[str]) -> list[str]:
    """Return the last parts of dotted names, as many as tell them apart."""
    parts = [name.split(".") for name in names]
    for depth in range(1, max(map(len, parts)) + 1):
        short = [".".join(one[-depth:]) for one in parts]
        if len(set(short)) == len(names):
            return short
    return list(names)


def _text(value: Any) -> str:
    """Return a value of an axis with all its digits."""
    return "null" if value is None else f"{value!r}".strip("'")


def _column(values: Sequence[Any]) -> list[str]:
    """Return values of an axis with 6 digits, or with all if fewer do not tell them apart."""
    texts = [_text(value) for value in values]
    short = [f"{value:.6g}" if isinstance(value, float) else text for value, text in zip(values, texts, strict=True)]
    return short if len(set(short)) == len(set(texts)) else texts


def _name_failures(found: Sweep) -> None:
    failures = records(found.failures)
    for row in failures[:_MOST_FAILURES]:
        values = ", ".join(f"{name}={shortened(_text(row[name]))}" for name in found.axes)
        print_error(f"cell {row['cell']} ({values}): {row['error']}")
    rest = len(failures) - _MOST_FAILURES
    more = f"; {rest:,} more are in the table" if rest > 0 else ""
    print_error(f"{len(failures):,} of {len(found.cells):,} cells failed{more}")


def _preview(plan: Plan, folder: Path, used: int, *, json_: bool) -> None:
    """Print what a sweep would do."""
    cells, points = plan.cells()
    where = folder if (folder / STORE).is_file() else None
    check_folder(folder)
    with Store(where, read_only=where is not None) as store:
        found = preview(cells, points, store)
    if json_:
        print_json({"folder": str(folder), "design": plan.design.written, "workers": used, **found.plain()})
        return
    for line in points.notes:
        say(f"note: {line}")
    _print_cells(cells, points)
    for line in _plan_lines(found, folder, used):
        say(line)


def _print_cells(cells: Cells, points: Points) -> None:
    """Print the first cells, with rates instead of shares of the capacity."""
    names = ["cell", *(axis.key for axis in points.axes)]
    shown = []
    for values in points.values[:_MOST_CELLS]:
        with suppress(InputError):  # a cell that fails is shown as it was given
            values = cells.settled(values).values  # noqa: PLW2901 - the same values, settled
        shown.append([plain_value(value) for value in values])
    columns = [_column(column) for column in zip(*shown, strict=True)]
    rows = [[str(place), *texts] for place, texts in enumerate(zip(*columns, strict=True))]
    titles = short_names(names)
    print_rows(titles, rows, left=titles[1:])
    rest = len(points.values) - len(rows)
    if rest > 0:
        say(f"and {rest:,} more cells")


def _plan_lines(found: Preview, folder: Path, workers: int) -> list[str]:
    least = "at least " if found.least else ""
    parts = [f"{found.stored:,} are stored in {folder}", f"{found.missing:,} are to be run"]
    parts += [f"{found.alike:,} are the same run as another"] if found.alike else []
    parts += [f"{len(found.errors):,} fail"] if found.errors else []
    which = f"{', '.join(parts[:-1])} and {parts[-1]}"
    lines = [f"cells: {found.cells:,}, of which {which}", f"rows: {least}{found.rows:,}"]
    for place, text in found.errors[:_MOST_FAILURES]:
        lines.append(f"cell {place} fails: {text}")
    if len(found.errors) > _MOST_FAILURES:
        lines.append(f"{len(found.errors):,} cells fail")
    if found.seconds is None:
        lines.append(f"time: not known: {found.basis}")
    else:
        spread = found.seconds / min(workers, max(found.missing, 1))
        lines.append(f"time: about {duration(spread)} with {workers} workers ({found.basis})")
    return lines


def duration(seconds: float) -> str:
    """Return a time in the unit in which it is read best."""
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{max(seconds, 0.1):.2g} s"
