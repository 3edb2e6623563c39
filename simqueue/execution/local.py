"""Tasks done by processes of this machine.

Not by a pool of loky or of the standard library. There, all processes share one pipe for outcomes: after a process was
killed while it wrote into it, both wait forever. And no one knows of which task it died, so all tasks in flight are
lost. Here each process has a connection of its own, which ends with it.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from multiprocessing.connection import wait
from types import TracebackType
from typing import Final, Self

from simqueue.errors import RunError
from simqueue.execution.calls import Call, Task
from simqueue.execution.contract import Failed, R, T
from simqueue.execution.member import Member, started
from simqueue.execution.packed import outcome_of, packed

_WORTH_STARTING_S: Final = 2.0
"""With less work than this (expected seconds), starting worker processes takes longer than it saves."""
_SHORT_S: Final = 0.5
"""A process gets the next task before it has done one if tasks take less time than this; then it does not wait for the
leader. With longer ones it would rather keep a task from a process that has nothing to do."""
_MOST_DEATHS: Final = 2
_MOST_FAILED_STARTS: Final = 3
_LOOK_AGAIN_S: Final = 1.0
"""How often is looked for processes that ended while a process of theirs keeps the connection open."""


class LocalProcesses:
    """The executor of this machine. Processes start when there are tasks for them, and end with the executor.

    Parameters
    ----------
    workers : int
        Number of processes.
    chosen : bool
        Whether the user chose the number; else short work is not worth starting them.
    """

    possible: Final = hasattr(signal, "pthread_sigmask")
    """Whether the system has what they need: Windows does not; there, this process does all tasks."""

    def __init__(self, workers: int, *, chosen: bool = True) -> None:
        self.workers = workers
        self._chosen = chosen
        self._members: list[Member] = []
        self._suspects: deque[Task] = deque()  # their process died; they are done while nothing else is
        self._alone: Task | None = None
        self._calls = count()
        self._ahead = 2
        self._failed_starts = 0

    def pays(self, seconds: float) -> bool:
        """Return whether the work is worth starting processes; see `Executor`."""
        return self._chosen or bool(self._members) or seconds >= _WORTH_STARTING_S

    def unordered(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[tuple[int, R | Failed]]:
        """Do tasks in the processes; see `Executor`. Calls may overlap: they share the processes."""
        call = Call(next(self._calls), packed(function), enumerate(tasks))
        try:
            while True:
                self._give(call)
                if call.outcomes:
                    yield call.outcomes.popleft()  # type: ignore[misc]  # what the function returned
                elif call.exhausted and not call.open:
                    return
                else:
                    self._receive()
        finally:
            self._leave(call)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all processes."""
        for member in self._members:
            member.connection.close()
            member.process.kill()
        while self._members:
            self._members.pop().end()

    def _give(self, call: Call) -> None:
        """Give tasks to processes that can take one."""
        while True:
            member = self._free()
            can_start = len(self._members) < self.workers
            if member is None and not can_start:
                return
            task = self._next(call)
            if task is None:
                return
            if member is None or (member.tasks and can_start):
                member = started(max(1, (os.cpu_count() or 1) // self.workers))
                self._members.append(member)
            try:
                member.give(task)
            except OSError:
                self._take_back(task)
                self._bury(member)

    def _free(self) -> Member | None:
        """Return the process with the fewest tasks that can take another one."""
        free = [member for member in self._members if len(member.tasks) < (self._ahead if member.ready else 1)]
        return min(free, key=lambda member: len(member.tasks), default=None)

    def _next(self, call: Call) -> Task | None:
        """Return the next task to be given, or None if there is none, or if one has to be done alone first."""
        if self._alone is None and self._suspects and not any(member.tasks for member in self._members):
            self._alone = self._suspects.popleft()
            return self._alone
        if self._alone is not None or self._suspects:
            return None
        return call.again.popleft() if call.again else call.pulled()

    def _receive(self) -> None:
        """Wait until a process answers, and take what has been answered."""
        ready = wait([member.connection for member in self._members], timeout=_LOOK_AGAIN_S)
        for member in list(self._members):
            if member.connection in ready:
                self._answered(member)
            elif not ready and member.process.poll() is not None and not member.connection.poll():
                self._bury(member)

    def _answered(self, member: Member) -> None:
        try:
            answer = member.answer()
        except (EOFError, OSError):
            self._bury(member)
            return
        self._failed_starts = 0
        if answer is not None:
            self._ahead = 2 if answer.seconds < _SHORT_S else 1
            self._close(member.tasks.popleft(), answer.outcome)

    def _close(self, task: Task, outcome: bytes | Failed) -> None:
        """Keep the outcome of a task until it is taken."""
        if task is self._alone:
            self._alone = None
        task.call.open -= 1
        if task.call.wanted:
            task.call.outcomes.append((task.number, outcome_of(outcome) if isinstance(outcome, bytes) else outcome))

    def _bury(self, member: Member) -> None:
        """Take back the tasks of a process that has ended: the first one, which it did, is suspected of it."""
        self._members.remove(member)
        ended = member.end()
        if member.ready and member.tasks:
            self._suspect(member.tasks.popleft(), ended)
        elif not member.ready:
            self._failed_starts += 1
        for task in reversed(member.tasks):
            self._take_back(task)
        if self._failed_starts >= _MOST_FAILED_STARTS:
            raise RunError(f"worker processes cannot be started: {ended.removeprefix('its process ')}")

    def _take_back(self, task: Task) -> None:
        """Keep a task that has not begun for another process."""
        if task is self._alone:
            self._alone = None
            self._suspects.appendleft(task)
        else:
            task.call.again.appendleft(task)

    def _suspect(self, task: Task, ended: str) -> None:
        task.deaths += 1
        if task.deaths >= _MOST_DEATHS or not task.call.wanted:
            self._close(task, Failed(ended, died=True))
        else:
            self._suspects.append(task)

    def _leave(self, call: Call) -> None:
        """Forget a call. Its tasks in flight go on, and nobody takes their outcomes."""
        call.wanted = False
        call.again.clear()
        self._suspects = deque(task for task in self._suspects if task.call.wanted)
        for member in self._members:
            member.forget(call)
