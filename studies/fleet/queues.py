"""How long the queues of many replicas are, against the limit of ever more replicas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simqueue.figures.canvas import new_figure, write
from simqueue.figures.style import figure_style, line_styles
from simqueue.statistics.intervals import Estimate, mean_interval
from simqueue.theory.routing import supermarket_tail
from studies.fleet.exact import Played, Size, played

SERVERS: Final = 100
LOAD: Final = 0.8
CHOICES: Final = (1, 2, 5)
LONGEST: Final = 8
SIZE: Final = Size(requests=600, replications=6)


@dataclass(frozen=True, slots=True)
class Row:
    """The share of replicas with at least `length` requests, waiting and served."""

    choices: int
    length: int
    expected: float
    found: Estimate


def measured(size: Size = SIZE, servers: int = SERVERS, workers: int = 1) -> list[Row]:
    """Simulate routers that draw 1, 2 and 5 replicas, and count queues over time."""
    fleets = {f"of-{d}": {"replicas": servers, "router": {"kind": "power_of_two", "choices": d}} for d in CHOICES}
    runs = played(fleets, LOAD, size, workers=workers)
    rows = []
    for d in CHOICES:
        shares = np.array([tails(run, servers) for run in runs[f"of-{d}"]])
        rows += [
            Row(d, k, supermarket_tail(d, LOAD, 1, k), mean_interval(shares[:, k - 1].tolist()))
            for k in range(1, LONGEST + 1)
        ]
    return rows


def tails(run: Played, servers: int) -> NDArray[Any]:
    """Return the share of replicas with at least 1, 2, ... requests, from the warm-up to the last arrival."""
    until_s = float(run.arrival_s[-1])
    above = np.zeros(LONGEST)
    for number in range(servers):
        own = run.replica == number
        times = np.concatenate((run.arrival_s[own], run.end_s[own]))
        order = np.argsort(times, kind="stable")
        inside = np.cumsum(np.repeat([1, -1], own.sum())[order])
        lasts = np.diff(np.clip(np.append(times[order], np.inf), run.warmup_s, until_s))
        above += [lasts[inside >= k].sum() for k in range(1, LONGEST + 1)]
    return np.asarray(above / (servers * (until_s - run.warmup_s)))


def lines(rows: Sequence[Row], figure: str) -> Iterator[str]:
    """Yield the section of the page."""
    yield "## Queues of many replicas"
    yield ""
    yield (
        f"{SERVERS} replicas at a load of {LOAD:g}, exponential services. A request joins the shortest of d queues "
        "that are drawn at random. Theory is the limit of ever more replicas (Vvedenskaya and others 1996, "
        "Mitzenmacher 1996): the share of replicas with at least k requests is ρ^((d^k − 1)/(d − 1)). Rare queues "
        f"are the last to come close to it: with {SERVERS} replicas, those that at most one in 100 replicas has in the "
        f"limit are {_rare(rows)} times as frequent."
    )
    yield ""
    yield f"![Share of replicas with at least k requests]({figure})"
    yield ""
    yield "| d | k | share, limit | simulated |"
    yield "|---|---|---|---|"
    for row in rows:
        if row.expected > 1e-5:
            half = row.found.half_width
            shown = f"{row.found.value:.5f}" + ("" if half is None else f" ± {half:.5f}")
            yield f"| {row.choices} | {row.length} | {row.expected:.5f} | {shown} |"
    yield ""


def _rare(rows: Sequence[Row]) -> str:
    """Return how much more frequent rare queues are than in the limit."""
    ratios = [row.found.value / row.expected for row in rows if 1e-5 < row.expected <= 0.01]
    return " and ".join(f"{ratio:.1f}" for ratio in ratios)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the tails."""
    with figure_style():
        figure = new_figure(8.0, 4.2)
        ax = figure.subplots()
        for d, style in zip(CHOICES, line_styles(len(CHOICES)), strict=True):
            own = [row for row in rows if row.choices == d]
            lengths = [row.length for row in own]
            ax.plot(lengths, [row.expected for row in own], **style.look, label=f"d = {d}, limit")
            ax.errorbar(
                lengths,
                [row.found.value for row in own],
                [row.found.half_width or 0 for row in own],
                color=style.color,
                fmt="o",
                markersize=4,
                capsize=3,
                label=f"d = {d}, {SERVERS} replicas",
            )
        ax.set(yscale="log", ylim=(1e-5, 1.5), xlabel="k (requests at a replica)")
        ax.set_ylabel("share of replicas with at least k")
        ax.set_title(f"Load {LOAD:g}: the shortest of d queues that are drawn")
        figure.legend(*ax.get_legend_handles_labels(), loc="outside right center")
        write(figure, path)
