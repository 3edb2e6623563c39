"""Tasks done by processes of this machine.

Not by a pool of loky or of the standard library. There, all processes share one pipe for outcomes: after a process was
killed while it wrote into it, both wait forever. A pool for each process waits, too: the leader itself keeps the
writing end of the pipe open, so that it never sees its end. And no one knows of which task it died, so all tasks in
flight are lost. Here each process has a connection of its own, which ends with it.
"""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import wait
from types import TracebackType
from typing import Final

from simqueue.errors import RunError
from simqueue.execution.member import Process, started
from simqueue.execution.packed import packed
from simqueue.execution.pool import Pool

_WORTH_STARTING_S: Final = 2.0
"""With less work than this (expected seconds), starting worker processes takes longer than it saves."""
_MOST_FAILED_STARTS: Final = 10
"""In a row. A few can be bad luck, as when memory runs out."""
_LOOK_AGAIN_S: Final = 1.0
"""How often is looked for processes that ended while a process of theirs keeps the connection open."""


class LocalProcesses(Pool[Process]):
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
        super().__init__()
        self.workers = workers
        self._chosen = chosen
        self._failed_starts = 0

    def pays(self, seconds: float) -> bool:
        """Return whether the work is worth starting processes; see `Executor`."""
        return self._chosen or bool(self.members) or seconds >= _WORTH_STARTING_S

    def packed(self, value: object) -> bytes:
        """Return a function or a task as bytes. What can be imported here can be imported in the processes."""
        return packed(value)

    def can_start(self) -> bool:
        """Return whether there are fewer processes than there may be."""
        return len(self.members) < self.workers

    def start(self) -> Process:
        """Start a process."""
        return started(max(1, (os.cpu_count() or 1) // self.workers))

    def receive(self) -> None:
        """Wait until a process answers, and take what has been answered."""
        ready = wait([member.connection for member in self.members], timeout=_LOOK_AGAIN_S)
        for member in list(self.members):
            if member.connection in ready:
                self._read(member)
            elif not ready and member.popen.poll() is not None and not member.connection.poll():
                self._count(member, self.bury(member))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all processes, whatever they do."""
        for member in self.members:
            member.popen.kill()
        super().__exit__(kind, error, traceback)

    def _read(self, member: Process) -> None:
        try:
            answer = member.answer()
        except (EOFError, OSError):
            self._count(member, self.bury(member))
            return
        self._failed_starts = 0
        if answer is not None:
            self.answered(member, member.tasks[0], answer)

    def _count(self, member: Process, ended: str) -> None:
        """Count processes that ended before they were ready."""
        self._failed_starts += not member.ready
        if self._failed_starts >= _MOST_FAILED_STARTS:
            raise RunError(f"worker processes cannot be started: {ended.removeprefix('its process ')}")
