"""An executor without processes that hands outcomes over in another order than that of the tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from simqueue.execution import Failed, ThisProcess
from simqueue.execution.contract import R, T
from simqueue.execution.here import done


class Backwards(ThisProcess):
    """Does the last task first."""

    def pays(self, seconds: float) -> bool:
        """Return True: everything is done here."""
        return True

    def unordered(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[tuple[int, R | Failed]]:
        """Do the last task first; see `Executor`."""
        for number, task in reversed(list(enumerate(tasks))):
            yield number, done(function, task)
