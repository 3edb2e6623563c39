"""Queues of waiting requests: first come first served, or by a key."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sized
from heapq import heapify, heappop, heappush
from typing import Any, ClassVar, Literal

from mypy_extensions import mypyc_attr

from simqueue.request import Job

Order = Literal["fcfs", "shortest_prompt", "shortest_output", "priority", "deadline"]


@mypyc_attr(allow_interpreted_subclasses=True)
class WaitingQueue:
    """Requests that wait for a seat; `head` is the next to be admitted.

    Attributes
    ----------
    line : sized collection
        One entry per waiting request: its length is the length of the queue.
    steady_rules : tuple of str
        See `simqueue.schedulers.declarations`: a queue whose order moves with time is not steady.
    """

    line: Sized

    def __len__(self) -> int:
        return len(self.line)

    @property
    @abstractmethod
    def head(self) -> Job:
        """The next to be admitted. Precondition: the queue is not empty."""
        raise NotImplementedError

    @abstractmethod
    def snapshot(self) -> tuple[int, ...]:
        """Return the indices of the waiting requests, in an order that decides which comes first."""
        raise NotImplementedError

    @abstractmethod
    def push(self, job: Job) -> None:
        """Queue a `job` that has arrived."""
        raise NotImplementedError

    @abstractmethod
    def put_back(self, job: Job) -> None:
        """Queue a preempted `job` again, before its equals."""
        raise NotImplementedError

    @abstractmethod
    def remove(self, job: Job) -> None:
        """Take `job` out. Precondition: it is in the queue."""
        raise NotImplementedError

    @abstractmethod
    def pop(self) -> Job:
        """Take the head out."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class FirstComeFirstServed(WaitingQueue):
    """In order of arrival; preempted requests go to the front, the one preempted last first."""

    steady_rules: ClassVar[tuple[str, ...]] = ("*",)

    def __init__(self) -> None:
        self.line = self._jobs = deque[Job]()

    @property
    def head(self) -> Job:
        """The request at the front."""
        return self._jobs[0]

    def snapshot(self) -> tuple[int, ...]:
        """Return the indices from front to back."""
        return tuple(job.index for job in self._jobs)

    def push(self, job: Job) -> None:
        """Append at the back."""
        self._jobs.append(job)

    def put_back(self, job: Job) -> None:
        """Insert at the front."""
        self._jobs.appendleft(job)

    def remove(self, job: Job) -> None:
        """Take `job` out; cost: one pass over the queue."""
        self._jobs.remove(job)

    def pop(self) -> Job:
        """Take the request at the front out."""
        return self._jobs.popleft()


@mypyc_attr(allow_interpreted_subclasses=True)
class ByKey(WaitingQueue):
    """Smallest key first; ties by arrival. A preempted request returns to the position of its key.

    Parameters
    ----------
    key : callable
        Job -> something that can be compared. Asked each time a request is queued.
    """

    steady_rules: ClassVar[tuple[str, ...]] = ("*",)

    def __init__(self, key: Callable[[Job], Any]) -> None:
        self._key = key
        self._heap: list[tuple[Any, int, Job]] = []
        self.line = self._heap

    @property
    def head(self) -> Job:
        """The request with the smallest key."""
        return self._heap[0][2]

    def snapshot(self) -> tuple[int, ...]:
        """Return the indices by key."""
        return tuple(index for _, index, _ in sorted(self._heap))

    def push(self, job: Job) -> None:
        """Insert by key, then by order of arrival."""
        heappush(self._heap, (self._key(job), job.index, job))

    def put_back(self, job: Job) -> None:
        """Insert by key, as at its arrival."""
        self.push(job)

    def remove(self, job: Job) -> None:
        """Take `job` out; cost: one pass over the queue."""
        self._heap[:] = [entry for entry in self._heap if entry[-1] is not job]
        heapify(self._heap)

    def pop(self) -> Job:
        """Take the request with the smallest key out."""
        return heappop(self._heap)[2]


def _deadline(job: Job) -> float:
    deadline_s = job.request.deadline_s
    return math.inf if deadline_s is None else deadline_s


KEYS: dict[str, Callable[[Job], float]] = {
    "shortest_prompt": lambda job: job.request.prompt_tokens,
    "shortest_output": lambda job: job.request.output_tokens,
    "priority": lambda job: job.request.priority,
    "deadline": _deadline,
}


def waiting_queue(order: Order) -> WaitingQueue:
    """Return an empty queue with the given order."""
    return FirstComeFirstServed() if order == "fcfs" else ByKey(KEYS[order])
