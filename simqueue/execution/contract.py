"""What every executor promises, and the outcome of a task that could not be done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import NoReturn, Protocol, Self, TypeVar, runtime_checkable

from simqueue.errors import RunError

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Failed:
    """A task that could not be done.

    Attributes
    ----------
    error : str
        What is wrong, as a reader sees it; the text of the exception if there is one.
    kind : str
        Name of the type of the exception; empty if the process died.
    died : bool
        Whether the process of the task died, such as for want of memory.
    exception : Exception or None
        What the task raised; None if its process died, or if the exception cannot be pickled.
    traceback : str
        Where it was raised, if another process did the task.
    """

    error: str
    kind: str = ""
    died: bool = False
    exception: Exception | None = None
    traceback: str = ""

    def reraise(self, subject: str = "") -> NoReturn:
        """Raise what the task raised, with its type and its text.

        Parameters
        ----------
        subject : str
            Which task it was, for a process that died.

        Raises
        ------
        Exception
            That of the task. `RunError` if its process died, or if its exception could not be sent here.
        """
        if self.exception is None:
            raise RunError(": ".join(part for part in (subject, self.kind, self.error) if part))
        if self.traceback:
            self.exception.add_note(f"In another process:\n{self.traceback}")
        raise self.exception


@runtime_checkable
class Executor(Protocol):
    """Does tasks, and hands their outcomes over as they come. A context manager; its end ends all its processes."""

    @property
    def workers(self) -> int:
        """How many tasks are done at a time."""

    def pays(self, seconds: float) -> bool:
        """Return whether tasks that take so long altogether, one after the other, are done earlier here.

        Where the caller has no choice of its own, it does short work itself: processes take time to start.
        """

    def unordered(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[tuple[int, R | Failed]]:
        """Do tasks, and yield each outcome as soon as it is there.

        An outcome depends on the function and the task alone, not on the executor.

        Parameters
        ----------
        function : callable
            Called with each task. It is sent to each process once: what all tasks share belongs to it, such as by
            `functools.partial`.
        tasks : iterable
            Pulled as they are needed: a few per worker are in flight.

        Yields
        ------
        int
            Number of the task, from 0.
        object or Failed
            What the function returned. `Failed` if it raised an exception, or if processes died of it: a task whose
            process dies is done once more while nothing else is.

        Raises
        ------
        RunError
            If nothing can be done any more: processes do not start, or a cluster is lost.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


Workers = int | Executor | None
"""Processes of this machine, at most one per core; an executor that is open; or None: one process per core if the work
is not short."""
