"""The search: from cheap to dear, or among all systems for the best value of a metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from simqueue.decisions.budget import BudgetSpentError
from simqueue.decisions.tuning.candidates import System
from simqueue.decisions.tuning.contender import Contender
from simqueue.decisions.tuning.question import Question
from simqueue.decisions.tuning.race import Race
from simqueue.decisions.tuning.runs import Runs, Spent


@dataclass(frozen=True, slots=True)
class Searched:
    """A search that was made.

    Attributes
    ----------
    best : Contender or None
    contenders : tuple of Contender
        All that could be run; those without runs are dearer than the best one.
    stopped : str
        Empty, or why the search ended before it had an answer.
    pruned : mapping of int to str
        Why other systems cannot serve the load, by number.
    spent : Spent
    priced : bool
        Whether the cost is in USD per hour.
    """

    best: Contender | None
    contenders: tuple[Contender, ...]
    stopped: str
    pruned: Mapping[int, str]
    spent: Spent
    priced: bool


def search(
    systems: Sequence[System], question: Question, runs: Runs, pruned: Mapping[int, str], *, priced: bool
) -> Searched:
    """Return the best of several systems.

    Parameters
    ----------
    systems : sequence of System
        That may serve the load, as far as the law can tell.
    question : Question
    runs : Runs
    pruned : mapping of int to str
        Why others cannot, by number.
    priced : bool
        Whether the cost is in USD per hour; else it is in GPUs.
    """
    contenders = tuple(Contender(system, question) for system in systems)
    race = Race(question, runs, len(contenders))
    best, stopped = None, ""
    try:
        for group in _groups(contenders, question, priced=priced):
            best = race.best(group)
            if best is not None:
                break
    except BudgetSpentError as error:
        best, stopped = race.leading(contenders), str(error)
    return Searched(best, contenders, stopped, pruned, runs.spent, priced)


def _groups(contenders: Sequence[Contender], question: Question, *, priced: bool) -> Iterator[list[Contender]]:
    """Yield the contenders that cost the same, from cheap to dear; all together if the cost does not matter."""
    if not question.by_cost:
        if contenders:
            yield list(contenders)
        return
    ordered = sorted(contenders, key=lambda one: (cost_key(one.system, priced=priced), one.number))
    for _, group in groupby(ordered, key=lambda one: cost_key(one.system, priced=priced)):
        yield list(group)


def cost_key(system: System, *, priced: bool) -> float:
    """Return what a system costs, in USD per hour or in GPUs, so that sums that differ by rounding are the same."""
    usd = system.cost.usd_per_hour
    return float(f"{usd:.9g}") if priced and usd is not None else float(system.cost.gpus)
