"""Queues of waiting requests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.request import Job, Request
from simqueue.schedulers.waiting import Order, WaitingQueue, waiting_queue

KEYS: list[tuple[Order, str]] = [
    ("shortest_prompt", "prompt_tokens"),
    ("shortest_output", "output_tokens"),
    ("priority", "priority"),
    ("deadline", "deadline_s"),
]


def job(index: int, **given: Any) -> Job:
    """Return a waiting job; what is not given is the same for all."""
    fields: dict[str, Any] = {"prompt_tokens": 8, "output_tokens": 8} | given
    return Job(Request(str(index), 0.0, **fields), index)


def drained(queue: WaitingQueue) -> list[int]:
    """Take all requests out, by index; the head is always the next one."""
    order = []
    while queue:
        head = queue.head
        assert queue.pop() is head
        order.append(head.index)
    return order


@pytest.mark.parametrize(("order", "key"), KEYS)
@given(values=st.lists(st.integers(1, 4), min_size=1, max_size=12))
def test_smallest_key_comes_first_and_ties_by_arrival(order: Order, key: str, values: list[int]) -> None:
    """Every keyed order is the stable sort of the arrivals by its key."""
    queue = waiting_queue(order)
    for index, value in enumerate(values):
        queue.push(job(index, **{key: value}))
    assert len(queue) == len(values)
    expected = sorted(range(len(values)), key=lambda index: values[index])
    assert queue.snapshot() == tuple(expected)
    assert drained(queue) == expected


def test_without_deadline_comes_last() -> None:
    """Requests that have no deadline wait for those that have one."""
    queue = waiting_queue("deadline")
    for index, deadline_s in enumerate([None, 9.0, None, 3.0]):
        queue.push(job(index, deadline_s=deadline_s))
    assert drained(queue) == [3, 1, 0, 2]


def test_preempted_go_to_the_front() -> None:
    """First come first served: the preempted go ahead of all who wait, the last of them first."""
    queue = waiting_queue("fcfs")
    for index in (5, 6):
        queue.push(job(index))
    for index in (4, 3):  # preempted from the tail
        queue.put_back(job(index))
    assert queue.snapshot() == (3, 4, 5, 6)
    assert drained(queue) == [3, 4, 5, 6]


def test_preempted_return_to_the_place_of_their_key() -> None:
    """Under a keyed order a preempted request goes ahead of its equals, not ahead of smaller keys."""
    queue = waiting_queue("priority")
    queue.push(job(7, priority=1))
    queue.push(job(8, priority=0))
    queue.put_back(job(2, priority=1))
    assert drained(queue) == [8, 2, 7]


@pytest.mark.parametrize("order", ["fcfs", "shortest_prompt", "priority"])
def test_a_removed_request_does_not_come(order: Order) -> None:
    """A request taken out of the middle is gone; the others keep their order."""
    queue = waiting_queue(order)
    jobs = [job(index, prompt_tokens=5 - index, priority=-index) for index in range(4)]
    for one in jobs:
        queue.push(one)
    before = list(queue.snapshot())
    queue.remove(jobs[2])
    assert len(queue) == 3
    assert drained(queue) == [index for index in before if index != 2]
