"""Outcomes in the order of the tasks, for those who need all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from simqueue.execution.contract import Executor, Failed, R, T


def in_order(where: Executor, function: Callable[[T], R], tasks: Iterable[T], kind: str) -> Iterator[R]:
    """Do tasks, and yield what the function returned, in the order of the tasks.

    Parameters
    ----------
    where : Executor
    function : callable
    tasks : iterable
    kind : str
        What a task is, for errors.

    Raises
    ------
    Exception
        What the first task that failed raised. No later outcome is yielded, as if tasks were done one after the other.
    """
    early: dict[int, R | Failed] = {}
    due = 0
    for number, outcome in where.unordered(function, tasks):
        early[number] = outcome
        while due in early:
            value = early.pop(due)
            if isinstance(value, Failed):
                value.reraise(f"{kind} {due}")
            yield value
            due += 1
