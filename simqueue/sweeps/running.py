"""Runs the cells that are missing, and says of every cell of a design what became of it."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice

from simqueue.errors import InputError, Problem, SimqueueError
from simqueue.execution import Executor, Failed
from simqueue.execution.here import done
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.sweeps.cells import FLAG, Cells, own_problems
from simqueue.sweeps.design import Points, Values
from simqueue.sweeps.keys import Keys
from simqueue.sweeps.outcome import played, replications_of
from simqueue.sweeps.store import Store

Progress = Callable[[str, int, int], None]
"""Called with ``cells``, the number of cells that were run, and the number of those to run, as far as it is known."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a cell.

    Attributes
    ----------
    values : tuple
        What the axes have, with rates instead of shares of the capacity if the cell could be settled.
    key : str or None
        Under which its outcome is stored; None if it could not be settled.
    error : str
        Why it failed; empty if it is done.
    """

    values: Values
    key: str | None
    error: str = ""


@dataclass(slots=True)
class _Course:
    """A sweep under way."""

    cells: Cells
    points: Points
    store: Store
    keys: Keys = field(default_factory=Keys)
    fates: dict[int, Fate] = field(default_factory=dict)
    sent: list[int] = field(default_factory=list)
    """Number of the cell of each task, in the order of the tasks."""
    skipped: int = 0
    on_way: set[str] = field(default_factory=set)

    def left(self, count: int) -> int:
        """Return how many cells are to be run, as far as it is known, after so many tasks."""
        return len(self.points.values) - self.skipped - count

    def missing(self) -> Iterator[ResolvedScenario]:
        """Yield the cells that are to be run, settled.

        They come in a random order, which is another one in each sweep: so several sweeps into one folder share the
        work, and the time that is left can be told from the cells that are done.
        """
        order = list(range(len(self.points.values)))
        random.SystemRandom().shuffle(order)
        for number in order:
            scenario = self.settled(number)
            key = self.fates[number].key
            if scenario is None or key is None or key in self.on_way or self.store.has(key):
                self.skipped += 1
                continue
            self.on_way.add(key)
            self.sent.append(number)
            yield scenario

    def settled(self, number: int) -> ResolvedScenario | None:
        """Return a settled cell and note its key, or note why it cannot be settled."""
        values = self.points.values[number]
        try:
            cell = self.cells.settled(values)
            self.fates[number] = Fate(cell.values, self.keys.key(cell.scenario))
        except Exception as error:  # a cell that fails is a row of the table, and the others go on
            self.fates[number] = Fate(values, None, error_text(error))
            return None
        return cell.scenario

    def note(self, number: int, outcome: str | Failed) -> None:
        """Store the outcome of a cell, or note why it failed."""
        fate = self.fates[number]
        if isinstance(outcome, Failed):
            text = error_text(outcome.exception) if outcome.exception is not None else outcome.error
            self.fates[number] = Fate(fate.values, fate.key, text)
        elif fate.key is not None:
            self.store.add(fate.key, outcome)


def run_missing(
    cells: Cells,
    points: Points,
    store: Store,
    executor: Executor,
    *,
    progress: Progress | None = None,
    check: bool | None = None,
) -> list[Fate]:
    """Run the cells of a design that the store does not have, store them, and return what became of each cell.

    A cell that fails does not end the others. Cells with the same settled values run once.

    Parameters
    ----------
    cells : Cells
    points : Points
    store : Store
    executor : Executor
        Where cells run. If they are short, or so few that this takes less time, they run one after the other, and their
        replications there.
    progress : callable, optional
        See `Progress`.
    check : bool, optional
        As for `simqueue.experiment.run`.

    Raises
    ------
    InputError
        If no cell can be settled for a reason that has nothing to do with values of axes.
    RunError
        If the store cannot be written, or the executor can do nothing any more.
    """
    reject_hopeless(cells, points)
    course = _Course(cells, points, store)
    for number, (task, outcome) in enumerate(_outcomes(course, executor, check), start=1):
        course.note(course.sent[task], outcome)
        if progress is not None:
            progress("cells", number, course.left(0))
    return _shared(course)


def _outcomes(course: _Course, executor: Executor, check: bool | None) -> Iterator[tuple[int, str | Failed]]:
    """Yield the outcome of each task: of one after the other as long as that is short, then of many at a time."""
    waiting = course.missing()
    one = partial(played, check=check, workers=executor)  # its replications can run elsewhere
    began, count = time.perf_counter(), 0
    while not executor.pays(course.left(count) * (time.perf_counter() - began) / max(count, 1)):
        scenario = next(waiting, None)
        if scenario is None:
            return
        yield count, done(one, scenario)
        count += 1
    first = list(islice(waiting, executor.workers))
    if _apart(first, executor.workers):
        yield from enumerate((done(one, scenario) for scenario in first), start=count)
        return
    tasks = executor.unordered(partial(played, check=check), chain(first, waiting))
    yield from ((count + number, outcome) for number, outcome in tasks)


def _apart(cells: Sequence[ResolvedScenario], workers: int) -> bool:
    """Return whether cells that are fewer than workers end earlier one after the other, each with all workers.

    The time is counted in replications, which are taken to be of the same length.
    """
    if len(cells) >= workers:
        return False
    each = [replications_of(cell) for cell in cells]
    return sum(math.ceil(count / workers) for count in each) < max(each, default=1)


def _shared(course: _Course) -> list[Fate]:
    """Return what became of each cell; of several with one key only one was run."""
    errors = {fate.key: fate.error for fate in course.fates.values() if fate.key and fate.error}
    ordered = (course.fates[number] for number in range(len(course.points.values)))
    return [replace(fate, error=fate.error or errors.get(fate.key or "", "")) for fate in ordered]


def reject_hopeless(cells: Cells, points: Points) -> None:
    """Raise `InputError` if no cell can be settled, and that for a reason that has nothing to do with their values."""
    errors: list[InputError] = []
    for values in points.values:
        try:
            cells.settled(values)
        except InputError as error:
            errors.append(error)
        else:
            return
    if problems := own_problems(errors, cells.axes):
        raise InputError.of(problems)


def error_text(error: Exception) -> str:
    """Return an error in one line, without the flags that only name what the axes give."""
    if isinstance(error, InputError):
        error = InputError.of(map(_without_flag, error.problems))
    text = "; ".join(str(error).splitlines()) or "no message"
    return text if isinstance(error, SimqueueError) else f"unexpected {type(error).__name__}: {text}"


def _without_flag(problem: Problem) -> Problem:
    if not problem.place.startswith(FLAG):
        return problem
    return replace(problem, place="" if problem.path else problem.place.removeprefix(FLAG))
