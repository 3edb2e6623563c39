"""Calls of an executor and their tasks, as the leader keeps them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from simqueue.execution.contract import Failed


@dataclass(eq=False, slots=True)
class Call:
    """One call of `unordered`.

    Attributes
    ----------
    number : int
    function : bytes
    source : iterator of (int, object)
        The tasks and their numbers.
    outcomes : deque of (int, object)
        Numbers of tasks and their outcomes, not yet handed over.
    again : deque of Task
        Tasks whose process died before they had begun.
    open : int
        Tasks that are in flight, or have to be done again.
    exhausted : bool
        Whether there are no more tasks to be pulled.
    wanted : bool
        Whether outcomes are still taken.
    """

    number: int
    function: bytes
    source: Iterator[tuple[int, object]]
    outcomes: deque[tuple[int, object]] = field(default_factory=deque)
    again: deque[Task] = field(default_factory=deque)
    open: int = 0
    exhausted: bool = False
    wanted: bool = True

    def pulled(self, packed: Callable[[object], bytes]) -> Task | None:
        """Return the next task; None if there is none, or if it cannot be sent, which is its outcome."""
        try:
            number, task = next(self.source)
        except StopIteration:
            self.exhausted = True
            return None
        try:
            data = packed(task)
        except Exception as error:  # whatever the objects raise
            self.outcomes.append((number, Failed(f"it cannot be sent: {error}", type(error).__name__)))
            return None
        self.open += 1
        return Task(self, number, data)


@dataclass(eq=False, slots=True)
class Task:
    """A task, and how many processes have died of it."""

    call: Call
    number: int
    data: bytes
    deaths: int = 0
