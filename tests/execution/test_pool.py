"""Which process gets which task: members that answer, die and are replaced in any order, without real processes."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from simqueue.execution.calls import Call, Task
from simqueue.execution.contract import Failed
from simqueue.execution.packed import packed_outcome
from simqueue.execution.pool import Pool
from simqueue.execution.worker import Answer

from ..helpers.profiles import examples


class Member:
    """A process that does nothing by itself."""

    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()
        self.alive = True

    def room(self, ahead: int) -> int:
        """Return how many tasks it may have."""
        return ahead

    def begun(self) -> list[Task]:
        """Return the first task, which it does."""
        return list(self.tasks)[:1]

    def give(self, task: Task) -> None:
        """Take a task; a dead member cannot."""
        if not self.alive:
            raise OSError
        self.tasks.append(task)

    def forget(self, call: Call) -> None:
        """Do nothing."""

    def end(self) -> str:
        """Die."""
        self.alive = False
        return "it died"


class Played(Pool[Member]):
    """A pool whose events are drawn: a member answers, dies of its task, or dies with nothing to do."""

    def __init__(self, workers: int, rng: random.Random, deadly: Callable[[bytes], bool], short: bool) -> None:
        super().__init__()
        self.workers, self._rng, self._deadly = workers, rng, deadly
        self._seconds = 0.0 if short else 10.0
        self.deaths: dict[bytes, int] = {}

    def packed(self, value: object) -> bytes:
        """Return the name of a task."""
        return str(value).encode()

    def can_start(self) -> bool:
        """Return whether there may be more."""
        return len(self.members) < self.workers

    def start(self) -> Member:
        """Return another one."""
        return Member()

    def receive(self) -> None:
        """Let something happen; there must be something."""
        busy = [member for member in self.members if member.tasks]
        assert busy, "it would wait for ever"
        assert max(len(member.tasks) for member in busy) <= 2
        member = self._rng.choice(busy)
        task = member.tasks[0]
        if task.deaths:
            assert sum(len(one.tasks) for one in busy) == 1, "a suspect is done alone"
        for idle in [one for one in self.members if not one.tasks and self._rng.random() < 0.3]:
            idle.alive = False  # noticed when it is given a task
        if self._deadly(task.data):
            self.deaths[task.data] = self.deaths.get(task.data, 0) + 1
            self.bury(member)
        else:
            self.answered(member, task, Answer(packed_outcome(task.data), self._seconds))


@given(st.integers(1, 4), st.integers(0, 14), st.integers(0, 2**32), st.floats(0, 1), st.booleans())
@examples(60)
def test_every_task_has_one_outcome(workers: int, tasks: int, seed: int, share: float, short: bool) -> None:
    """Two calls at a time. A task fails if two processes died of it, and no other does."""
    rng = random.Random(seed)
    with Played(workers, rng, lambda _: rng.random() < share, short) as pool:
        calls: dict[str, Any] = {
            name: pool.unordered(len, [f"{name}{number}" for number in range(tasks)]) for name in ("a", "b")
        }
        seen: dict[str, list[tuple[int, object]]] = {"a": [], "b": []}
        while calls:
            name = rng.choice(list(calls))
            outcome = next(calls[name], None)
            if outcome is None:
                del calls[name]
            else:
                seen[name].append(outcome)
    for name, outcomes in seen.items():
        assert sorted(number for number, _ in outcomes) == list(range(tasks))
        for number, outcome in outcomes:
            data = f"{name}{number}".encode()
            died = pool.deaths.get(data, 0)
            assert outcome == (Failed("it died", died=True) if died == 2 else data)
            assert died <= 2


@given(st.integers(1, 3), st.integers(1, 6), st.integers(0, 2**32))
@examples(30)
def test_a_call_that_is_left_leaves_nothing(workers: int, taken: int, seed: int) -> None:
    """Its tasks in flight end, even with their process, and the next call has its own outcomes only."""
    rng = random.Random(seed)
    with Played(workers, rng, lambda data: data.startswith(b"left") and rng.random() < 0.5, short=True) as pool:
        left = pool.unordered(len, (f"left{number}" for number in range(20)))
        for _ in range(taken):
            next(left)
        left.close()
        found = sorted(pool.unordered(len, ["x", "y", "z"]))
    assert found == [(0, b"x"), (1, b"y"), (2, b"z")]
