"""Queues that a limit or the patience of clients keeps from growing, and how often that is seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from simqueue.statistics.overload import evidence
from simqueue.statistics.stays import Stays
from simqueue.statistics.verdict import Law, is_bounded, is_overloaded

LOADS: Final = (0.5, 0.8, 0.95, 1.05, 1.2, 2.0, 10.0)
NUMBER: Final = 500
RUNS: Final = 50


@dataclass(frozen=True, slots=True)
class Limits:
    """What keeps a queue before one server from growing; services are of mean 1.

    Attributes
    ----------
    room : float
        Most requests that wait; others are refused.
    patience : array or float
        How long each client stays, also while it is served.
    cv : float
        Coefficient of variation of the services, which have a gamma distribution.
    """

    room: float = np.inf
    patience: Any = np.inf
    cv: float = 1.0


KINDS: Final[Mapping[str, Limits]] = {
    "10 may wait": Limits(room=10),
    "none may wait": Limits(room=0),
    "patience of 5 equal services": Limits(patience=5.0, cv=0.0),
    "patience of 20 services": Limits(patience=20.0),
    "every other client has patience of 5 services": Limits(patience=np.where(np.arange(NUMBER) % 2, 5.0, np.inf)),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """Shares of the runs of a kind that are called overloaded, and bounded, and of requests without an answer."""

    kind: str
    load: float
    overloaded: float
    bounded: float
    lost: float


def played(load: float, number: int, seed: int, limits: Limits) -> Stays:
    """Play Poisson arrivals to one server, first come first served; 100 tokens are a unit of work."""
    rng = np.random.default_rng(seed)
    arrival_s = np.cumsum(rng.exponential(1 / load, number))
    work = rng.gamma(1 / limits.cv**2, limits.cv**2, number) if limits.cv else np.ones(number)
    gives_up_s = arrival_s + limits.patience
    start_s, leave_s, made = np.full(number, np.inf), np.empty(number), np.zeros(number)
    free_s = 0.0
    waiting: list[float] = []
    for i, arrives in enumerate(arrival_s.tolist()):
        waiting = [until_s for until_s in waiting if until_s > arrives]
        if len(waiting) >= limits.room and free_s > arrives:
            leave_s[i] = arrives
            continue
        start = max(free_s, arrives)
        waiting.append(min(start, float(gives_up_s[i])))
        if start >= gives_up_s[i]:
            leave_s[i] = gives_up_s[i]
        else:
            start_s[i], leave_s[i] = start, min(start + work[i], gives_up_s[i])
            free_s, made[i] = float(leave_s[i]), leave_s[i] - start
    lost = ~np.isfinite(start_s) | (made < work * (1 - 1e-9))
    refused = leave_s == arrival_s  # all clients have some patience
    tokens = (np.zeros(number), 100 * work, 100 * made)
    return Stays(arrival_s, start_s, start_s, leave_s, *tokens, lost, refused, float(leave_s.max()))


def cells(runs: int = RUNS, loads: Sequence[float] = LOADS) -> Iterator[Cell]:
    """Yield the measured cells."""
    for kind, limits in KINDS.items():
        for load in loads:
            found = [played(load, NUMBER, seed, limits) for seed in range(runs)]
            yes = [is_overloaded(Law(), evidence(run)) is True for run in found]
            lost = [float(np.mean(run.lost)) for run in found]
            yield Cell(kind, load, *(float(np.mean(one)) for one in (yes, list(map(is_bounded, found)), lost)))


def lines(found: Sequence[Cell]) -> Iterator[str]:
    """Yield the section of the page."""
    yield ""
    yield "## Bounded queues"
    yield ""
    yield (
        "One server, Poisson arrivals, services of mean 1, exponential where nothing else is said. A full queue "
        "refuses requests, and clients give up, also while they are served. Then there is a steady state at any load. "
        "Per cent of the runs that are called overloaded, and bounded; and of the requests without an answer. Where "
        "all requests of a run have an answer, there is nothing that bounds it. Half of the clients of the last queue "
        "never give up: above a load of 2 they are too many by themselves, and it grows. "
        f"Runs of a cell: {RUNS} of {NUMBER} customers."
    )
    yield ""
    loads = sorted({cell.load for cell in found})
    yield f"| queue | | {' | '.join(f'{load:g}' for load in loads)} |"
    yield f"|{'---|' * (2 + len(loads))}"
    for kind in dict.fromkeys(cell.kind for cell in found):
        row = {cell.load: cell for cell in found if cell.kind == kind}
        for name, label in (("overloaded", "**overloaded**"), ("bounded", "bounded"), ("lost", "no answer")):
            yield f"| {kind} | {label} | {' | '.join(f'{100 * getattr(row[load], name):.0f}' for load in loads)} |"
