"""How a run is played, beside what is played, and what an observer sees of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simqueue.schedulers.base import Plan

NEVER_S = float("inf")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is played, beside what is played.

    Attributes
    ----------
    horizon_s : float
        The run ends here (inclusive); infinity: when nothing is left to do.
    fast : bool
        Whether equal steps in a row become one event. The tables are the same, byte for byte.
    check : bool
        Whether the policy's invariants are verified after every commit.
    ticks_per_s : int or None
        Step ends are rounded to this many ticks a second.
    max_queued_requests : int or None
        Who arrives when no seat is free and so many wait is turned away; None: the queue has no limit.
    """

    horizon_s: float = NEVER_S
    fast: bool = True
    check: bool = False
    ticks_per_s: int | None = None
    max_queued_requests: int | None = None


@dataclass(frozen=True, slots=True)
class SeenStep:
    """A step as an observer sees it when it has ended.

    Attributes
    ----------
    plan : Plan
    planned_s, start_s, end_s : float
    free_blocks : int
        Once its finished requests have given theirs back.
    """

    plan: Plan
    planned_s: float
    start_s: float
    end_s: float
    free_blocks: int


Observer = Callable[[SeenStep], None]
