"""Tasks done by this process, one after the other."""

from __future__ import annotations

import signal
import traceback as tracebacks
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Self

from simqueue.execution.contract import Failed, R, T


class ThisProcess:
    """The executor without any other process."""

    workers = 1

    def pays(self, seconds: float) -> bool:
        """Return False: the caller is as fast."""
        return False

    def unordered(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[tuple[int, R | Failed]]:
        """Do each task when its outcome is asked for; see `Executor`."""
        for number, task in enumerate(tasks):
            yield number, done(function, task)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do nothing: there are no processes to end."""


def done(function: Callable[[T], R], task: T, *, elsewhere: bool = False) -> R | Failed:
    """Return the outcome of a task. With `elsewhere`, a failure says where it was raised: its frames do not travel."""
    try:
        return function(task)
    except Exception as error:
        text = tracebacks.format_exc() if elsewhere else ""
        return Failed(str(error), type(error).__name__, exception=error, traceback=text)
    except SystemExit as error:  # of a program's own scheduler: it ends the task, not everything
        if _by_signal(error):
            raise
        return Failed(f"exit with {error.code!r}", type(error).__name__)


def _by_signal(error: SystemExit) -> bool:
    """Return whether a handler of a signal, which can come in the middle of any task, has raised it."""
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = [getattr(handler, "__code__", None) for handler in handlers]
    found: BaseException | None = error
    while found is not None:  # SimPy raises it again, as the cause of another one
        if any(frame.f_code in codes for frame, _ in tracebacks.walk_tb(found.__traceback__)):
            return True
        found = found.__cause__
    return False
