"""Steps under way: equal ones in a row, as one event that can be moved forward."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from simpy.events import Event

from simqueue.schedulers.base import Plan


class RowPart(NamedTuple):
    """Steps of a flight that are alike in the steps table."""

    past: int
    start_s: float
    ends_s: Sequence[float]
    waiting: int
    blocks_used: int


class Flight:
    """A plan that runs `n` times in a row.

    Step i (from 0) of a flight is planned anew, if it must be, when step ``i - depth`` ends: with depth 1 when the
    step before it ends, with depth 2 when that one starts.

    Attributes
    ----------
    plan : Plan
    planned_at_s, start_s, ends_s : float, float, list of float
        When the first step was planned and starts, and when each step ends.
    n : int
        Steps that run; fewer than planned once something is told that changes the plan.
    more : int
        Repeats of the plan beyond these, whose ends are still to be computed: nobody knows yet whether they run.
    event : Event or None
        When the step after the last one is planned; None if that is now.
    waiting : list of (step, requests)
        From which step on a longer queue is seen.
    rows : list of RowPart
        Filled in where the queue changed under way; else all steps are alike.
    """

    __slots__ = ("depth", "ends_s", "event", "more", "n", "plan", "planned_at_s", "rows", "start_s", "waiting")

    def __init__(
        self, plan: Plan, planned_at_s: float, start_s: float, ends_s: list[float], more: int, depth: int
    ) -> None:
        self.plan = plan
        self.planned_at_s = planned_at_s
        self.start_s = start_s
        self.depth = depth
        self.ends_s = ends_s
        self.n = len(ends_s)
        self.more = more
        self.event: Event | None = None
        self.waiting: list[tuple[int, int]] = []
        self.rows: list[RowPart] = []

    @property
    def end_s(self) -> float:
        """When the last step ends."""
        return self.ends_s[self.n - 1]

    def planned_s(self, step: int) -> float:
        """Return when step `step` (>= 1) is planned."""
        return self.ends_s[step - self.depth] if step >= self.depth else self.start_s

    def first_to_see(self, now_s: float) -> int:
        """Return the first step (>= 1) that is planned at `now_s` or later."""
        if self.depth > 1 and now_s <= self.start_s:
            return 1
        return bisect_left(self.ends_s, now_s, 0, self.n) + self.depth
