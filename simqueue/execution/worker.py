"""A worker process: it does the tasks that come in at its standard input, one after the other."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

from simqueue.execution.here import done
from simqueue.execution.packed import packed, packed_outcome, unpacked

READY: Final = b"ready"
"""What a worker says first, when it has been imported."""


class Order(NamedTuple):
    """What the leader sends: the function of a call (`task` is None), the end of a call (both are None), or a task.

    Attributes
    ----------
    call : int
        Number of the call of `unordered`.
    function, task : bytes or None
    """

    call: int
    function: bytes | None = None
    task: bytes | None = None


class Answer(NamedTuple):
    """The outcome of a task, and how long it took. Answers are in the order of the tasks."""

    outcome: bytes
    seconds: float


def main() -> None:
    """Serve the process at the other end of standard input, until it closes it or ends."""
    leader = Connection(os.dup(0))
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)  # tasks that read standard input find nothing
    os.close(nowhere)
    orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    # It reads all the time, so that the leader never waits, and ends the process in the middle of a task if the leader
    # has ended in whatever way.
    threading.Thread(target=_receive, args=(leader, orders), daemon=True).start()
    _send(leader, READY)
    functions: dict[int, bytes | Callable[[Any], Any]] = {}
    while True:
        order: Order = unpacked(orders.get())
        if order.task is not None:
            started = time.perf_counter()
            outcome = done(_of_call(functions, order.call), order.task, elsewhere=True)
            _flush()
            _send(leader, packed(Answer(packed_outcome(outcome), time.perf_counter() - started)))
        elif order.function is not None:
            functions[order.call] = order.function
        else:
            functions.pop(order.call, None)


def _send(leader: Connection, data: bytes) -> None:
    """Send something, or end the process without a word if the leader has ended."""
    try:
        leader.send_bytes(data)
    except OSError:
        os._exit(0)


def _receive(leader: Connection, orders: queue.SimpleQueue[bytes]) -> None:
    while True:
        try:
            orders.put(leader.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)


def _of_call(functions: dict[int, bytes | Callable[[Any], Any]], call: int) -> Callable[[bytes], Any]:
    """Return what does a packed task. The function is unpacked within the task, so that an error is its outcome."""

    def do(task: bytes) -> Any:
        function = functions[call]
        if isinstance(function, bytes):
            function = functions[call] = unpacked(function)
        return function(unpacked(task))

    return do


def _flush() -> None:
    """Let what a task has printed be seen; the process may be ended at any time."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # a closed pipe is reported by the leader
            return
