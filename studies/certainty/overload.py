"""How often runs are flagged as overloaded, by load, length, burstiness and policy, now and by the rule before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from simqueue.figures.canvas import new_figure, write
from simqueue.figures.style import figure_style, line_styles
from simqueue.statistics.overload import evidence
from simqueue.statistics.stays import Stays
from simqueue.statistics.verdict import Law, is_overloaded
from studies.certainty import bounded
from studies.certainty.queues import Served, per_server, run_of, shared, shortest_first

KINDS: Final[Mapping[str, Served]] = {
    "one server": per_server(1),
    "32 servers": per_server(32),
    "shortest first": shortest_first,
    "sharing": shared(0.0, 1.0),
    "batching": shared(10.0, 1.0),
}
LOADS: Final = (0.5, 0.8, 0.9, 0.95, 1.05, 1.2, 1.5, 2.0, 10.0)
CVS: Final = (1.0, 3.0)
RUNS: Final[Mapping[int, int]] = {500: 100, 5000: 20}
"""Number of customers -> runs of a cell."""


@dataclass(frozen=True, slots=True)
class Cell:
    """How many of the runs of one kind get which answer.

    Attributes
    ----------
    kind : str
    number : int
        Customers of a run.
    cv : float
        Coefficient of variation of the gaps.
    load : float
    yes, no, unknown : float
        Shares of the runs.
    before : float
        Share of the runs that the rule before flagged.
    """

    kind: str
    number: int
    cv: float
    load: float
    yes: float
    no: float
    unknown: float
    before: float


def write_page(folder: Path) -> list[Path]:
    """Measure all cells, write the page and its figure, and return their paths."""
    return written(folder, list(cells(RUNS)), list(bounded.cells()))


def cells(runs: Mapping[int, int], loads: Sequence[float] = LOADS) -> Iterator[Cell]:
    """Yield the measured cells; `runs` says how many runs there are for each number of customers."""
    for kind in KINDS:
        for number, repeats in runs.items():
            for cv in CVS:
                yield from (_cell(kind, number, cv, load, repeats) for load in loads)


def _cell(kind: str, number: int, cv: float, load: float, repeats: int) -> Cell:
    rng = np.random.default_rng([20_261_130, number, round(100 * load), round(cv)])
    played = [run_of(KINDS[kind], load, number, rng, cv) for _ in range(repeats)]
    answers = [is_overloaded(Law(), evidence(run)) for run in played]
    yes, no, unknown = (sum(one is answer for one in answers) / repeats for answer in (True, False, None))
    return Cell(kind, number, cv, load, yes, no, unknown, sum(map(flagged_before, played)) / repeats)


def flagged_before(run: Stays) -> bool:
    """Return whether the rule before flags a run: a rising number in the system and 2 % in it at the last arrival.

    It needed 200 requests, and a run of 20 stays of the first tenth of its requests.
    """
    arrival_s, leave_s = run.arrival_s, run.leave_s
    start_s, end_s = float(arrival_s.min()), float(arrival_s.max())
    first_stay_s = float(np.median((leave_s - arrival_s)[: len(arrival_s) // 10]))
    if len(arrival_s) < 200 or end_s - start_s < 20 * first_stay_s:
        return False
    edges = np.linspace(start_s, end_s, 21)
    inside = [
        float(np.sum(np.clip(leave_s, low, high) - np.clip(arrival_s, low, high))) for low, high in pairwise(edges)
    ]
    x = np.arange(20) - 9.5
    y = np.array(inside) - np.mean(inside)
    slope = x @ y / (x @ x)
    error = np.sqrt(np.sum((y - slope * x) ** 2) / 18 / (x @ x))
    return bool(slope > 2.55 * error and np.mean(leave_s > end_s) > 0.02)


def written(folder: Path, found: Sequence[Cell], limited: Sequence[bounded.Cell]) -> list[Path]:
    """Write the page of measured cells, also of bounded queues, and its figure to a folder, and return their paths."""
    page, figure = folder / "overload.md", folder / "overload.png"
    page.write_text("\n".join((*_lines(found), *bounded.lines(limited))) + "\n", encoding="utf-8", newline="\n")
    _draw(found, figure)
    return [page, figure]


def _lines(found: Sequence[Cell]) -> Iterator[str]:
    yield "<!-- written by: python -m studies.certainty overload -->"
    yield "# How often an overload is seen"
    yield ""
    yield (
        "Queues of which the load is known are played, and each run is judged by itself, without a capacity law: the "
        "hardest case. Gaps between arrivals have a gamma distribution (CV 1: Poisson), work is exponential. `sharing` "
        "serves all requests at once and slows all of them down; so does `batching`, where a unit of work of each "
        "takes 10 + n with n requests, so that together they get at most 1 per unit of time. Shares of runs that are "
        "flagged, called stable, and left open, in per cent; *before* is the rule of version 0.1 (the trend of the "
        "number in the system, and the backlog at the end; an answer was left out if the run was short against its own "
        "stays)."
    )
    yield ""
    yield (
        "A load of 0.8 or less should hardly be flagged, and one of 1.5 or more always; near 1 a short run cannot "
        "tell. "
        f"Runs of a cell: {', '.join(f'{repeats} of {number:,}' for number, repeats in RUNS.items())} customers."
    )
    yield ""
    yield "![Share of runs that are flagged, by load](overload.png)"
    for kind in dict.fromkeys(cell.kind for cell in found):
        yield from _table(kind, [cell for cell in found if cell.kind == kind])


def _table(kind: str, found: Sequence[Cell]) -> Iterator[str]:
    loads = sorted({cell.load for cell in found})
    yield ""
    yield f"## {kind.capitalize()}"
    yield ""
    yield f"| customers | CV | | {' | '.join(f'{load:g}' for load in loads)} |"
    yield f"|{'---|' * (3 + len(loads))}"
    for number, cv in dict.fromkeys((cell.number, cell.cv) for cell in found):
        row = {cell.load: cell for cell in found if (cell.number, cell.cv) == (number, cv)}
        for name, label in (("yes", "**flagged**"), ("no", "stable"), ("unknown", "unknown"), ("before", "before")):
            values = " | ".join(f"{100 * getattr(row[load], name):.0f}" for load in loads)
            yield f"| {number:,} | {cv:g} | {label} | {values} |"


def _draw(found: Sequence[Cell], path: Path) -> None:
    kinds = list(dict.fromkeys(cell.kind for cell in found))
    number = 500 if any(cell.number == 500 for cell in found) else found[0].number
    now, before = line_styles(2)
    with figure_style():
        figure = new_figure(9.0, 5.6)
        axes = figure.subplots(2, len(kinds), sharex=True, sharey=True, squeeze=False)
        for row, cv in zip(axes, CVS, strict=True):
            for ax, kind in zip(row, kinds, strict=True):
                own = [cell for cell in found if (cell.kind, cell.number, cell.cv) == (kind, number, cv)]
                loads = [cell.load for cell in own]
                ax.plot(loads, [100 * cell.yes for cell in own], marker="o", markersize=3, **now.look, label="now")
                ax.plot(loads, [100 * cell.before for cell in own], **before.look, label="before")
                ax.axvline(1.0, color="0.6", linewidth=1)
                ax.set(xscale="log", ylim=(-3, 103), title=f"{kind}, CV {cv:g}")
                ax.set_xticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
                ax.minorticks_off()
        for ax in axes[-1]:
            ax.set(xlabel="load")
        for ax in axes[:, 0]:
            ax.set(ylabel="flagged runs (%)")
        figure.suptitle(f"Runs of {number} customers, judged without a capacity law")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        write(figure, path)
