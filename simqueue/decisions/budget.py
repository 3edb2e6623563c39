"""What a search may take, and what is used of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from simqueue.errors import RunError

BUDGET: Final = "budget"
"""With this word starts what is said of a search that its budget ended."""

T = TypeVar("T")


class BudgetSpentError(RunError):
    """The next runs would exceed what was allowed. The text says which limit it is."""


@dataclass(slots=True)
class Budget:
    """What one search or several searches together may take, and what is used of it.

    Attributes
    ----------
    max_runs : int or None
        None: no limit.
    seconds : float or None
        Of the clock on the wall, from when this was made. None: no limit.
    runs : int
        That were begun.
    """

    max_runs: int | None = None
    seconds: float | None = None
    runs: int = 0
    _began_s: float = field(default_factory=time.monotonic)

    @property
    def elapsed_s(self) -> float:
        """Time since this was made, in seconds."""
        return time.monotonic() - self._began_s

    def used_up(self, more: int = 1) -> str:
        """Return in words which limit does not allow so many more runs; an empty text if none."""
        if self.max_runs is not None and self.runs + more > self.max_runs:
            return f"{BUDGET} of {self.max_runs} runs"
        if self.seconds is not None and self.elapsed_s > self.seconds:
            return f"{BUDGET} of {self.seconds:g} s"
        return ""

    def check(self, more: int) -> None:
        """Raise `BudgetSpentError` if so many more runs are not allowed."""
        if said := self.used_up(more):
            raise BudgetSpentError(said)

    def allowed(self, tasks: Sequence[T]) -> Iterator[T]:
        """Yield tasks, which are a run each, until the budget is used up. It is looked at before each task."""
        for task in tasks:
            if self.used_up():
                return
            self.runs += 1
            yield task

    @contextmanager
    def used(self, runs: int) -> Iterator[None]:
        """Count so many runs that are made inside; raise `BudgetSpentError` if they are not allowed."""
        self.check(runs)
        yield
        self.runs += runs
