"""A worker process of this machine as the leader sees it: how it is started, its tasks, and how it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Final

from simqueue.execution.calls import Call, Task
from simqueue.execution.packed import packed, unpacked
from simqueue.execution.worker import READY, Answer, Order

_START: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; del sys.argv[1:]; from simqueue.execution.worker import main; main()"
)
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""Environment variables with a number of threads; with several processes, all cores for each would be too many."""


@dataclass(eq=False, slots=True)
class Process:
    """A worker process; see `Member`.

    Attributes
    ----------
    popen : Popen
    connection : Connection
    tasks : deque of Task
        Those that it has been given: it does the first one, the others wait there.
    ready : bool
        Whether it has started.
    calls : set of int
        Calls whose function it has.
    """

    popen: subprocess.Popen[bytes]
    connection: Connection
    tasks: deque[Task] = field(default_factory=deque)
    ready: bool = False
    calls: set[int] = field(default_factory=set)

    def room(self, ahead: int) -> int:
        """Return how many tasks it may have: one until it has started."""
        return ahead if self.ready else 1

    def begun(self) -> list[Task]:
        """Return the task of which it may have died, if there is one."""
        return list(self.tasks)[:1] if self.ready else []

    def give(self, task: Task) -> None:
        """Send a task.

        Raises
        ------
        OSError
            If the process has ended; the task is not counted as given.
        """
        call = task.call
        if call.number not in self.calls:
            self.connection.send_bytes(packed(Order(call.number, function=call.function)))
            self.calls.add(call.number)
        self.connection.send_bytes(packed(Order(call.number, task=task.data)))
        self.tasks.append(task)

    def forget(self, call: Call) -> None:
        """Let the process forget the function of a call."""
        if call.number in self.calls:
            self.calls.remove(call.number)
            with contextlib.suppress(OSError):  # it has ended, which is seen where answers are read
                self.connection.send_bytes(packed(Order(call.number)))

    def answer(self) -> Answer | None:
        """Read what it sends; None if it says that it is ready.

        Raises
        ------
        EOFError, OSError
            If the process has ended, also in the middle of an answer.
        """
        data = self.connection.recv_bytes()
        if data == READY:
            self.ready = True
            return None
        answer: Answer = unpacked(data)
        return answer

    def end(self) -> str:
        """End the process if it has not ended, and return how it ended."""
        self.connection.close()
        if self.popen.poll() is None:
            self.popen.kill()
        return how_it_ended(self.popen.wait())


def started(threads: int) -> Process:
    """Start a worker process, in which libraries use so many threads if the environment does not say how many."""
    ours, its = Pipe()
    environment = {**dict.fromkeys(_THREADS, str(threads)), **os.environ}
    path = [folder or os.getcwd() for folder in sys.path]  # noqa: PTH109 - an empty one is the current folder
    options = [f"-W{option}" for option in sys.warnoptions]
    with its, _without_interrupts():
        process = subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, *options, "-c", _START, *path], stdin=its.fileno(), env=environment
        )
    return Process(process, ours)


def how_it_ended(code: int) -> str:
    """Return the end of a process with an exit code, in words."""
    return f"its process was killed (signal {-code})" if code < 0 else f"its process ended (exit code {code})"


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let processes that are started inside not see Ctrl-C, which goes to all of a terminal: the leader ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
