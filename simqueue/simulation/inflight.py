"""Steps in flight: equal steps in a row, as one event that can be moved to an earlier time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from simpy.events import Event

from simqueue.request import Job
from simqueue.schedulers.base import Plan, Policy


class RowPart(NamedTuple):
    """Steps in a row that are alike in the steps table."""

    past: int
    start_s: float
    ends_s: Sequence[float]
    waiting: int
    blocks_used: int


class InFlight:
    """A plan that runs `n` times in a row.

    With depth 1 step i (from 0) is planned when step i - 1 ends. With depth 2 it is planned when step i - 2 ends, which
    is when step i - 1 starts::

        depth 1    | step 0 | step 1 | step 2 |        depth 2    | step 0 | step 1 | step 2 |
        planned    0        1        2                 planned    0, 1     2        3

    Attributes
    ----------
    plan : Plan
    planned_at_s, start_s, ends_s : float, float, list of float
        When the first step was planned and when it starts, and when each step ends.
    n : int
        Steps that run; fewer than planned if an event invalidates the plan.
    more : int
        Repeats of the plan after these, whose ends are not computed yet: an event may still invalidate the plan.
    taken : bool
        Whether the policy has taken blocks and moved its counters for all of the `n` steps. The first step is taken
        when it is planned, the others when their number is known or when the policy is looked at.
    steps_taken : int
        For how many of them it has done so.
    ended : bool
        Whether it has been committed.
    event : Event or None
        When the step after the last one is planned; None if that is now.
    waiting : list of (step, requests) or None
        From which step on the queue has which length; None: it did not change.
    rows : list of RowPart
        Filled in if the queue changed on the way; else all steps are alike.
    part : RowPart
        Steps taken since the queue changed last, with no ends yet.
    changes : int
        How many of `waiting` are part of `rows` and `part`.
    tail : InFlight or None
        The step after the last one, as a plan of its own: a request leaves between the two (depth 2).
    """

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
        self.taken = False
        self.steps_taken = 1
        self.ended = False
        self.event: Event | None = None
        self.waiting: list[tuple[int, int]] | None = None
        self.rows: list[RowPart] = []
        self.part = RowPart(0, start_s, (), plan.waiting, plan.blocks_used)
        self.changes = 0
        self.tail: InFlight | None = None

    @property
    def end_s(self) -> float:
        """When the last step ends."""
        return self.ends_s[self.n - 1]

    @property
    def last_start_s(self) -> float:
        """When the last step starts."""
        return self.ends_s[self.n - 2] if self.n > 1 else self.start_s

    def planned_s(self, step: int) -> float:
        """Return when step `step` (>= 1) is planned."""
        return self.ends_s[step - self.depth] if step >= self.depth else self.start_s

    def planned_before(self, now_s: float) -> int:
        """Return how many of the steps were planned before `now_s`. Precondition: the first one was."""
        if self.depth == 1:
            return 1 + bisect_left(self.ends_s, now_s, 0, self.n - 1)
        early = 2 if self.start_s < now_s else 1
        return min(self.n, early + bisect_left(self.ends_s, now_s, 0, self.n))

    def first_to_see(self, now_s: float) -> int:
        """Return the first step (>= 1) that is planned at `now_s` or later, and so sees what happens at `now_s`.

        A change at exactly the end of an inner step is seen by the step that is planned at that instant.
        """
        if self.depth > 1 and now_s <= self.start_s:
            return 1
        return bisect_left(self.ends_s, now_s, 0, self.n) + self.depth

    def started(self, now_s: float) -> int:
        """Return how many steps have started when all that ends at `now_s` has ended."""
        return bisect_right(self.ends_s, now_s, 0, self.n) + 1

    def take_all(self, policy: Policy) -> None:
        """Let the policy take all that these steps need, now that their number is known; keep their table rows."""
        if self.taken:
            return
        self.taken = True
        if len(self.ends_s) > self.n:
            del self.ends_s[self.n :]
        self.take(policy, self.n)
        if self.rows:
            self.end_rows()

    def split(self, policy: Policy, now_s: float) -> None:
        """Make a step that is planned but not under way a plan of its own: a request leaves before it starts."""
        step = self.started(now_s)
        if self.taken or step >= self.n:
            return
        end_s = self.ends_s[step]
        self.n = step
        self.take_all(policy)
        plan = self.repeat_alone(step)
        if self.steps_taken == step:
            policy.take(plan, 1)
        else:  # taken when the policy was looked at; requests end with the last repeat only
            plan.ended.extend(self.plan.ended)
            self.plan.ended.clear()
        plan.blocks_used = policy.kv.used
        self.tail = InFlight(plan, self.planned_s(step), self.end_s, [end_s], 0, self.depth)
        self.tail.taken = True

    def first_rows(self, steps: int) -> list[RowPart]:
        """Return the table rows of the first steps, if the others never end."""
        if not self.taken:
            self.end_rows()
        return [part._replace(ends_s=part.ends_s[: steps - part.past]) for part in self.rows if part.past < steps]

    def take(self, policy: Policy, steps: int) -> None:
        """Let the policy take the first `steps` steps; note a row of the steps table for each length of the queue."""
        if self.waiting is not None:
            for step, waiting in self.waiting[self.changes :]:
                if step >= steps:
                    break
                self.changes += 1
                self._take_first(policy, step + 1)
                self._begin_row(step, waiting, policy.kv.used)
        self._take_first(policy, steps)

    def end_rows(self) -> None:
        """Note the last row of the steps table. Precondition: all steps that run are taken."""
        if self.part.past < len(self.ends_s):
            self.rows.append(self.part._replace(ends_s=self.ends_s[self.part.past :]))

    def _take_first(self, policy: Policy, steps: int) -> None:
        if steps > self.steps_taken:
            policy.take(self.plan, steps - self.steps_taken)
            self.steps_taken = steps

    def _begin_row(self, step: int, waiting: int, blocks_used: int) -> None:
        """Begin a row before `step`, unless one begins there already."""
        part, ends_s = self.part, self.ends_s
        if step == part.past:
            self.part = part._replace(waiting=waiting)
            return
        self.rows.append(part._replace(ends_s=ends_s[part.past : step]))
        self.part = RowPart(step, ends_s[step - 1], (), waiting, blocks_used)

    def repeat_alone(self, step: int) -> Plan:
        """Return the plan of step `step` (>= 1) alone. Its blocks are still to be taken."""
        plan = self.plan
        changes = [] if self.waiting is None else [requests for at, requests in self.waiting if at <= step]
        ended: list[Job] = []
        return Plan(
            batch=plan.batch.later(step),
            repeat=1,
            ticking=plan.ticking,
            running=plan.running,
            waiting=changes[-1] if changes else plan.waiting,
            work=plan.work.later(step),
            blocks_used=0,
            ended=ended,
            finishing=ended if plan.finishing is plan.ended else [],
        )

    def note_waiting(self, requests: int, now_s: float) -> None:
        """Note that the queue has this many requests from `now_s` on."""
        if self.waiting is None:
            self.waiting = []
        self.waiting.append((self.first_to_see(now_s), requests))
