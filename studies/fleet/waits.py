"""The mean wait behind each router, against its theory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from simqueue.figures.canvas import new_figure, write
from simqueue.figures.style import figure_style, line_styles
from simqueue.statistics.intervals import Estimate, student_t
from simqueue.theory.choices import shortest_of_drawn_queues, shortest_queue
from simqueue.theory.many_servers import mmc
from simqueue.theory.routing import random_split, round_robin
from studies.fleet.exact import Size, mean_waits, played

SERVERS: Final = 4
LOADS: Final = (0.5, 0.7, 0.8, 0.9)
LINE: Final = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92)
"""Loads of the lines in the figure; some take the chain a second."""
SIZE: Final = Size(requests=2_500, replications=12)
SIGNIFICANCE: Final = 0.01
"""Of all rows together."""


@dataclass(frozen=True, slots=True)
class Case:
    """A router, and what theory says of it.

    Attributes
    ----------
    router : str or mapping
        As in a scenario.
    theory : str
        Name of the model.
    wait : callable
        Load -> mean wait in services.
    """

    router: str | Mapping[str, Any]
    theory: str
    wait: Callable[[float], float]


CASES: Final[Mapping[str, Case]] = {
    "random": Case("random", "4 × M/M/1", lambda load: random_split(SERVERS, SERVERS * load, 1, 2).mean_wait_s),
    "round robin": Case("round_robin", "4 × E4/M/1", lambda load: round_robin(SERVERS, SERVERS * load, 1).mean_wait_s),
    "the shorter of two": Case(
        "power_of_two",
        "chain, 2 of 4 queues",
        lambda load: shortest_of_drawn_queues(SERVERS, 2, SERVERS * load, 1).mean_wait_s,
    ),
    "the shortest": Case(
        "join_shortest_queue",
        "chain, 4 queues",
        lambda load: shortest_queue(SERVERS, SERVERS * load, 1).mean_wait_s,
    ),
    "one queue": Case("central_queue", "M/M/4", lambda load: mmc(SERVERS, SERVERS * load, 1).mean_wait_s),
}
CONSTANT: Final[Mapping[str, Case]] = {
    "random": Case("random", "4 × M/D/1", lambda load: random_split(SERVERS, SERVERS * load, 1, 1).mean_wait_s),
}
"""The routers of which theory is known for services that take equally long."""


@dataclass(frozen=True, slots=True)
class Row:
    """A simulated mean wait beside its theory, in services."""

    service: str
    load: float
    router: str
    theory: str
    expected: float
    found: Estimate

    @property
    def errors(self) -> float:
        """How many standard errors the mean is away from theory."""
        return (self.found.value - self.expected) / (self.found.error or float("inf"))


def measured(size: Size = SIZE, loads: Sequence[float] = LOADS, workers: int = 1) -> list[Row]:
    """Simulate all routers at all loads."""
    return [
        Row(service, load, name, cases[name].theory, cases[name].wait(load), found)
        for service, cases in (("exponential", CASES), ("constant", CONSTANT))
        for load in loads
        for name, found in _found(service, cases, load, size, workers).items()
    ]


def _found(service: str, cases: Mapping[str, Case], load: float, size: Size, workers: int) -> dict[str, Estimate]:
    fleets = {_policy(name): {"replicas": SERVERS, "router": case.router} for name, case in cases.items()}
    waits = mean_waits(played(fleets, load, size, service, workers))
    return {name: waits[_policy(name)] for name in cases}


def _policy(name: str) -> str:
    return name.replace(" ", "-")


def lines(rows: Sequence[Row], figure: str) -> Iterator[str]:
    """Yield the section of the page."""
    limit = student_t(rows[0].found.n, 1 - SIGNIFICANCE / len(rows)) if rows[0].found.n > 1 else float("inf")
    differ = [row for row in rows if abs(row.errors) > limit]
    worst = max(abs(row.found.value / row.expected - 1) for row in rows)
    yield "## Waits by router"
    yield ""
    yield (
        f"{SERVERS} replicas, each serves one request after another. Arrivals are Poisson, services exponential or "
        "constant. Waits are in mean services, with 95 % intervals over the replications; a difference to theory "
        "counts if a t-test says so, with a significance of 1 % for all rows together."
    )
    yield ""
    yield (
        f"**{len(rows) - len(differ)} of {len(rows)} means agree with theory; the largest difference is {worst:.1%}. "
        f"From the longest wait to the shortest, {_order(rows)}.**"
    )
    yield ""
    yield f"![Mean wait by load behind each router, theory and simulation]({figure})"
    yield ""
    yield "| services | load | router | theory | mean wait, theory | simulated | standard errors apart |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        half = row.found.half_width
        shown = f"{row.found.value:.4f}" + ("" if half is None else f" ± {half:.4f}")
        yield (
            f"| {row.service} | {row.load:g} | {row.router} | {row.theory} | {row.expected:.4f} | {shown} "
            f"| {row.errors:+.1f} |"
        )
    yield ""


def _order(rows: Sequence[Row]) -> str:
    """Return the order of the routers by their waits, and at how many loads it is that order."""
    names = list(CASES)
    loads = {row.load: [one for one in rows if (one.service, one.load) == ("exponential", row.load)] for row in rows}
    falls = [sorted(own, key=lambda row: -row.found.value) for own in loads.values()]
    same = sum([row.router for row in own] == names for own in falls)
    return f"the order is {', '.join(names)} at {same} of {len(loads)} loads"


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the mean waits over the load."""
    with figure_style():
        figure = new_figure(8.0, 4.4)
        ax = figure.subplots()
        for (name, case), style in zip(CASES.items(), line_styles(len(CASES)), strict=True):
            own = [row for row in rows if (row.service, row.router) == ("exponential", name)]
            ax.plot(LINE, [case.wait(load) for load in LINE], **style.look, label=name)
            ax.errorbar(
                [row.load for row in own],
                [row.found.value for row in own],
                [row.found.half_width or 0 for row in own],
                color=style.color,
                fmt="o",
                markersize=4,
                capsize=3,
            )
        ax.set(yscale="log", xlabel="load of each replica", ylabel="mean wait (mean services)")
        ax.set_title(f"{SERVERS} replicas with one seat: theory (lines) and simulation (95 % intervals)")
        figure.legend(*ax.get_legend_handles_labels(), loc="outside right center")
        write(figure, path)
