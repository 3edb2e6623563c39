"""A worker of a Dask cluster: what it runs, and how the leader sees it."""

from __future__ import annotations

import contextlib
import platform
import time
from collections import deque
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from simqueue.execution.calls import Call, Task
from simqueue.execution.here import done
from simqueue.execution.packed import packed_outcome, unpacked
from simqueue.execution.worker import Answer
from simqueue.installation import VERSION, code_digest


def installed() -> dict[str, str]:
    """Return what has to be the same on the leader and on all workers for the same results."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Python": python, "NumPy": version("numpy"), "simqueue": VERSION, "code of simqueue": code_digest()[:12]}


def answer_to(function: Callable[[Any], Any], task: bytes) -> Answer:
    """Return the answer to a packed task."""
    started = time.perf_counter()
    outcome = done(lambda data: function(unpacked(data)), task, elsewhere=True)
    return Answer(packed_outcome(outcome), time.perf_counter() - started)


class ClusterWorker:
    """A worker, see `Member`. Tasks are for it alone: which one it had begun must be known when it dies.

    Parameters
    ----------
    client : distributed.Client
    address : str
    threads : int
        How many tasks it does at a time.
    on_done : callable
        Called by another thread with the worker, a task, and its future.
    """

    def __init__(
        self, client: Any, address: str, threads: int, on_done: Callable[[ClusterWorker, Task, Any], None]
    ) -> None:
        self.address, self.threads = address, threads
        self.tasks: deque[Task] = deque()
        self._client, self._on_done = client, on_done
        self._functions: dict[int, Any] = {}
        self._futures: dict[int, tuple[Task, Any]] = {}
        self._done: set[int] = set()  # only looked up

    def room(self, ahead: int) -> int:
        """Return how many tasks it may have."""
        return ahead * self.threads

    def begun(self) -> list[Task]:
        """Return the tasks of which it may have died. Outcomes that were not fetched are lost, but did no harm."""
        return [task for task in self.tasks if id(task) not in self._done][: self.threads]

    def give(self, task: Task) -> None:
        """Send a task, after the function of its call."""
        if self._client.status != "running":
            raise OSError
        call = task.call
        if call.number not in self._functions:
            self._functions[call.number] = self._submit(unpacked, call.function)
        future = self._submit(answer_to, self._functions[call.number], task.data)
        self.tasks.append(task)
        self._futures[id(task)] = (task, future)
        future.add_done_callback(lambda one: self._tell(task, one))

    def forget(self, call: Call) -> None:
        """Let the cluster forget a call. Tasks that have begun go on there."""
        self._cancel([one for one in self.tasks if one.call is call])
        self._functions.pop(call.number, None)

    def resend(self, call: Call) -> None:
        """Send the function of a call again with the next task."""
        self._functions.pop(call.number, None)

    def done(self, task: Task) -> None:
        """Let the cluster forget a task."""
        self._futures.pop(id(task), None)
        self._done.discard(id(task))

    def end(self) -> str:
        """Let the cluster forget all tasks of the worker."""
        self._cancel(list(self.tasks))
        self._functions.clear()
        return "its worker process died"

    def _tell(self, task: Task, future: Any) -> None:
        """Say that a task is done; called by another thread."""
        if future.status == "finished":
            self._done.add(id(task))
        self._on_done(self, task, future)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        import dask  # noqa: PLC0415 - an extra, and slow to load

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):  # tasks are sent as they are
            return self._client.submit(
                function, *arguments, workers=[self.address], allow_other_workers=False, pure=False, retries=0
            )

    def _cancel(self, tasks: list[Task]) -> None:
        futures = [self._futures.pop(id(task))[1] for task in tasks if id(task) in self._futures]
        if futures and self._client.status == "running":
            with contextlib.suppress(OSError, TimeoutError):  # lost, which is seen where outcomes are taken
                self._client.cancel(futures)
