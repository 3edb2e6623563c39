"""What executors with processes share: which process gets which task, and what happens to tasks whose process died."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from types import TracebackType
from typing import Final, Generic, Protocol, Self, TypeVar

from simqueue.errors import RunError
from simqueue.execution.calls import Call, Task
from simqueue.execution.contract import Failed, R, T
from simqueue.execution.packed import outcome_of
from simqueue.execution.worker import Answer

_SHORT_S: Final = 0.5
"""A process gets the next task before it has done one if tasks take less time than this; then it does not wait for the
leader. With longer ones it would rather keep a task from a process that has nothing to do."""
_MOST_DEATHS: Final = 2


class Member(Protocol):
    """A process that does tasks, as the leader sees it."""

    tasks: deque[Task]
    """Tasks that it has been given, in the order in which it begins them."""

    def room(self, ahead: int) -> int:
        """Return how many tasks it may have, with so many for each that it does at a time."""

    def begun(self) -> list[Task]:
        """Return the tasks of which it may have died: those that it had begun and not done."""

    def give(self, task: Task) -> None:
        """Send a task, and the function of its call if it has not been sent.

        Raises
        ------
        OSError
            If the process has ended; the task is not counted as given.
        """

    def forget(self, call: Call) -> None:
        """Let the process forget a call."""

    def end(self) -> str:
        """End the process if it has not ended, and return how it ended."""


M = TypeVar("M", bound=Member)


class Pool(ABC, Generic[M]):
    """An executor with processes. Calls of `unordered` may overlap: they share the processes."""

    def __init__(self) -> None:
        self.members: list[M] = []
        self._suspects: deque[Task] = deque()  # their process died; they are done while nothing else is
        self._alone: Task | None = None
        self._calls = count()
        self._ahead = 2
        self._ended = False

    @abstractmethod
    def packed(self, value: object) -> bytes:
        """Return a function or a task as bytes."""

    @abstractmethod
    def can_start(self) -> bool:
        """Return whether `start` can be called."""

    @abstractmethod
    def start(self) -> M:
        """Return a new process."""

    @abstractmethod
    def receive(self) -> None:
        """Wait until something happens: call `answered` or `bury`, or add a process.

        Raises
        ------
        RunError
            If nothing can be done any more.
        """

    def unordered(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[tuple[int, R | Failed]]:
        """Do tasks in the processes; see `Executor`."""
        call = Call(next(self._calls), self.packed(function), enumerate(tasks))
        try:
            while True:
                self._give(call)
                if call.outcomes:
                    yield call.outcomes.popleft()  # type: ignore[misc]  # what the function returned
                elif call.exhausted and not call.open:
                    return
                else:
                    self.receive()
        finally:
            self._leave(call)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all processes."""
        self._ended = True
        while self.members:
            self.members.pop().end()

    def answered(self, member: M, task: Task, answer: Answer) -> None:
        """Take the outcome of a task."""
        self._ahead = 2 if answer.seconds < _SHORT_S else 1
        self.closed(member, task, outcome_of(answer.outcome))

    def closed(self, member: M, task: Task, outcome: object) -> None:
        """Keep the outcome of a task of a process."""
        member.tasks.remove(task)
        self._close(task, outcome)

    def bury(self, member: M) -> str:
        """Take back the tasks of a process that has ended, and return how. Those that it had begun are suspects."""
        self.members.remove(member)
        begun, ended = member.begun(), member.end()
        for task in begun:
            member.tasks.remove(task)
            self._suspect(task, ended)
        while member.tasks:
            self.take_back(member.tasks.pop())
        return ended

    def take_back(self, task: Task) -> None:
        """Keep a task that has not begun for another process."""
        if task is self._alone:
            self._alone = None
            self._suspects.appendleft(task)
        else:
            task.call.again.appendleft(task)

    def _give(self, call: Call) -> None:
        """Give tasks to processes that can take one."""
        if self._ended:
            raise RunError("the executor has ended")
        while True:
            member, can_start = self._free(), self.can_start()
            if member is None and not can_start:
                return
            task = self._next(call)
            if task is None:
                return
            if member is None or (member.tasks and can_start):
                member = self.start()
                self.members.append(member)
            try:
                member.give(task)
            except OSError:
                self.take_back(task)
                self.bury(member)

    def _free(self) -> M | None:
        """Return the process with the most room for tasks; None if none has any."""
        free = [member for member in self.members if len(member.tasks) < member.room(self._ahead)]
        return min(free, key=lambda member: len(member.tasks) / member.room(1), default=None)

    def _next(self, call: Call) -> Task | None:
        """Return the next task to be given, or None if there is none, or if one has to be done alone first."""
        if self._alone is None and self._suspects and not any(member.tasks for member in self.members):
            self._alone = self._suspects.popleft()
            return self._alone
        if self._alone is not None or self._suspects:
            return None
        return call.again.popleft() if call.again else call.pulled(self.packed)

    def _close(self, task: Task, outcome: object) -> None:
        """Keep the outcome of a task until it is taken."""
        if task is self._alone:
            self._alone = None
        task.call.open -= 1
        if task.call.wanted:
            task.call.outcomes.append((task.number, outcome))

    def _suspect(self, task: Task, ended: str) -> None:
        task.deaths += 1
        if task.deaths >= _MOST_DEATHS or not task.call.wanted:
            self._close(task, Failed(ended, died=True))
        else:
            self._suspects.append(task)

    def _leave(self, call: Call) -> None:
        """Forget a call. Its tasks in flight go on, and their outcomes are dropped."""
        call.wanted = False
        call.again.clear()
        self._suspects = deque(task for task in self._suspects if task.call.wanted)
        for member in self.members:
            member.forget(call)
