"""Options of a run, and what an observer sees of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simqueue.frontend import FrontEndTimes
from simqueue.schedulers.base import Plan
from simqueue.steptime.base import made_again

NEVER_S = float("inf")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run.

    Attributes
    ----------
    horizon_s : float
        When the run ends (inclusive); infinity: when nothing is left to do.
    fast : bool
        Whether equal steps in a row become one event. The tables are the same, byte for byte.
    check : bool
        Whether the policy's invariants are verified after every commit.
    ticks_per_s : int or None
        Step ends are rounded to this many ticks per second; None: not rounded.
    max_queued_requests : int or None
        Requests that arrive while no seat is free and this many are waiting are rejected; None: no limit.
    front_end : FrontEndTimes or None
        What requests go through before the scheduler; None: nothing.
    """

    horizon_s: float = NEVER_S
    fast: bool = True
    check: bool = False
    ticks_per_s: int | None = None
    max_queued_requests: int | None = None
    front_end: FrontEndTimes | None = None

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return made_again(self)


@dataclass(frozen=True, slots=True)
class SeenStep:
    """A step that has ended, as an observer sees it.

    Attributes
    ----------
    plan : Plan
    planned_s, start_s, end_s : float
    free_blocks : int
        After the requests that leave with the step have given back theirs.
    """

    plan: Plan
    planned_s: float
    start_s: float
    end_s: float
    free_blocks: int


Observer = Callable[[SeenStep], None]
