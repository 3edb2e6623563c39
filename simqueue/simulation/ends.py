"""When steps end: single steps, and repeated ones as far as they can run before the next event."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import ulp

import simpy

from simqueue.errors import InputError, RunError
from simqueue.schedulers.base import Plan
from simqueue.simulation import clock
from simqueue.simulation.inflight import InFlight
from simqueue.simulation.options import NEVER_S, RunOptions
from simqueue.steptime.base import StepTime

SURELY_COMPUTED = 32
"""This many steps in a row are priced without asking for the next event."""
MANY_ULPS = float(1 << 20)
"""If repeats take this many of the clock's smallest units on average, each of them surely moves the clock."""


class StepEnds:
    """Computes the ends of the steps of one replica.

    Parameters
    ----------
    env : simpy.Environment
    step_time : StepTime
    options : RunOptions
    one_at_a_time : bool
        Whether a step is planned only after the step before has ended.
    """

    def __init__(
        self, env: simpy.Environment, step_time: StepTime, options: RunOptions, *, one_at_a_time: bool
    ) -> None:
        self._env = env
        self._step_time = step_time
        self._fast = options.fast
        self._horizon_s = options.horizon_s
        self._ticks_per_s = options.ticks_per_s
        self._plain = one_at_a_time and options.ticks_per_s is None

    def of_single(self, plan: Plan, now_s: float) -> list[float]:
        """Return the end of `plan` if it starts now and is a plain single step; else an empty list."""
        if plan.repeat < 1:
            raise RunError(f"a plan at {now_s:g} s has repeat = {plan.repeat}: must be at least 1")
        if not self._plain or plan.preempted or plan.failed or (plan.repeat > 1 and self._fast):
            return []
        ends_s = self._step_time.ends(now_s, plan.batch, 1)
        if not now_s < ends_s[0] < NEVER_S:
            raise _impossible(now_s, ends_s[0])
        return ends_s

    def go_on(self, running: InFlight) -> None:
        """Compute the ends of further repeats: of all that are left, or of those that start before the next event.

        The next event can shorten the plan, so ends after it may be computed for nothing. Their number is estimated
        from the length of the last step.
        """
        until_s, n = NEVER_S, running.more
        if n > SURELY_COMPUTED:
            until_s = clock.next_s(self._env)
            n = SURELY_COMPUTED if until_s < NEVER_S else n
        ends_s = running.ends_s
        while True:
            ends_s += self._of_next(running, n)
            running.n += n
            running.more -= n
            if ends_s[-1] - running.start_s < running.n * MANY_ULPS * ulp(ends_s[-1]):
                _stop_where_time_stands(running)
            if ends_s[-1] > self._horizon_s:
                del ends_s[max(1, bisect_right(ends_s, self._horizon_s)) :]
                running.n, running.more = len(ends_s), 0
            if not running.more or ends_s[-1] >= until_s:
                return
            last_s = ends_s[-1] - (ends_s[-2] if len(ends_s) > 1 else running.start_s)
            n = max(SURELY_COMPUTED, int(min((until_s - ends_s[-1]) / last_s + 2, running.more)))
            n = min(n, running.more)

    def _of_next(self, running: InFlight, n: int) -> list[float]:
        """Return the ends of the next `n` repeats."""
        past, batch = running.n, running.plan.batch
        if past:
            batch = batch.later(past)
        start_s = running.ends_s[-1] if past else running.start_s
        if self._ticks_per_s is None:
            ends_s = self._step_time.ends(start_s, batch, n)
        else:
            ends_s = _on_ticks(start_s, self._step_time.durations(batch, n), self._ticks_per_s)
        moves = start_s < ends_s[0] or (past and start_s == ends_s[0])
        if not (moves and ends_s[0] <= ends_s[-1] < NEVER_S):
            raise _impossible(start_s, ends_s[0])
        return ends_s


def _stop_where_time_stands(running: InFlight) -> None:
    """Drop the repeats from the first one on that does not move the clock; planned by itself, that one ends the run."""
    ends_s = running.ends_s
    for step in range(1, len(ends_s)):
        if ends_s[step] <= ends_s[step - 1]:
            del ends_s[step:]
            running.n, running.more = step, 0
            return


def _impossible(now_s: float, end_s: float) -> InputError:
    if end_s <= now_s:
        return InputError(f"step_time: a step is too short to move the clock at {now_s:g} s")
    return InputError(f"step_time: a step that starts at {now_s:g} s takes {end_s - now_s:g} s: must be a finite time")


def _on_ticks(start_s: float, durations_s: Sequence[float], ticks_per_s: int) -> list[float]:
    """Return the ends of steps in a row, each rounded to a whole tick."""
    ends_s = []
    for duration_s in durations_s:
        end_s = round((start_s + duration_s) * ticks_per_s) / ticks_per_s
        if end_s <= start_s:
            raise InputError(
                f"clock_resolution_s = {1 / ticks_per_s:g}: must be finer than the steps, one takes {duration_s:g} s"
            )
        ends_s.append(end_s)
        start_s = end_s
    return ends_s
