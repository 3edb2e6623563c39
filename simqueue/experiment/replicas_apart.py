"""Fleets whose replicas are independent: one replica after the other, or several at a time by an executor.

One after the other is faster than all together, too: the processor's caches hold one replica, and not all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from simqueue.execution import Executor, in_order
from simqueue.simulation.apart import Share, can_be_apart, play_share, shares, together
from simqueue.simulation.fleet_rules import FleetRules, Part
from simqueue.simulation.options import RunOptions
from simqueue.simulation.recording import Recording
from simqueue.traffic import Traffic

_REQUESTS_PER_S: Final = 25_000
"""What one process plays in a second, roughly: enough to say whether the work is short."""
OnEnd = Callable[[int], None]


def played_apart(
    traffic: Traffic,
    parts: Sequence[Part],
    rules: FleetRules,
    options: RunOptions,
    where: Executor,
    on_end: OnEnd | None = None,
) -> Recording | None:
    """Simulate the replicas of a fleet apart, if they are independent.

    Parameters
    ----------
    traffic, parts, rules, options, on_end
        As for `FleetSimulation`.
    where : Executor
        Plays the replicas, if that is faster than here.

    Returns
    -------
    Recording or None
        As all of them together would give it. None: they have to be simulated together.
    """
    requests = traffic.requests
    if len(parts) < 2 or not isinstance(requests, list) or not can_be_apart(traffic, rules):
        return None
    plan = shares(requests, parts, rules, len(parts))
    if where.pays(len(requests) / _REQUESTS_PER_S):
        played = list(in_order(where, partial(play_share, options=options), plan, "replica"))
    else:
        played = list(_one_by_one(plan, options, on_end))
    return together(requests, plan, played, type(rules.router).__name__, options)


def _one_by_one(plan: Sequence[Share], options: RunOptions, on_end: OnEnd | None) -> Iterator[Recording]:
    before = 0
    for share in plan:
        yield play_share(share, options, None if on_end is None else partial(_told, on_end, before))
        before += len(share.requests)


def _told(on_end: OnEnd, before: int, ended: int) -> None:
    on_end(before + ended)
