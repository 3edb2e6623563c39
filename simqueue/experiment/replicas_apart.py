"""Fleets whose replicas are independent: one replica after the other, or several at a time in worker processes.

One after the other is faster than all together, too: the processor's caches hold one replica, and not all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from simqueue.simulation.apart import Share, can_be_apart, play_share, shares, together
from simqueue.simulation.fleet_rules import FleetRules, Part
from simqueue.simulation.options import RunOptions
from simqueue.simulation.recording import Recording
from simqueue.traffic import Traffic

_WORTH_STARTING_WORKERS: Final = 50_000
"""With fewer requests, starting worker processes takes longer than it saves."""
OnEnd = Callable[[int], None]


def played_apart(
    traffic: Traffic,
    parts: Sequence[Part],
    rules: FleetRules,
    options: RunOptions,
    workers: int | None,
    on_end: OnEnd | None = None,
) -> Recording | None:
    """Simulate the replicas of a fleet apart, if they are independent.

    Parameters
    ----------
    traffic, parts, rules, options, on_end
        As for `FleetSimulation`.
    workers : int or None
        Processes, at most one per core; None: as many as there are cores if the work is long, else one.

    Returns
    -------
    Recording or None
        As all of them together would give it. None: they have to be simulated together.
    """
    requests = traffic.requests
    if len(parts) < 2 or not isinstance(requests, list) or not can_be_apart(traffic, rules):
        return None
    plan = shares(requests, parts, rules, len(parts))
    processes = _processes(len(requests), len(parts), workers)
    played = list(_one_by_one(plan, options, on_end) if processes == 1 else _by_workers(plan, options, processes))
    return together(requests, plan, played, type(rules.router).__name__, options)


def _processes(requests: int, replicas: int, workers: int | None) -> int:
    useful = min(os.cpu_count() or 1, replicas)
    if workers is None:
        return useful if requests >= _WORTH_STARTING_WORKERS else 1
    return min(workers, useful)


def _one_by_one(plan: Sequence[Share], options: RunOptions, on_end: OnEnd | None) -> Iterator[Recording]:
    before = 0
    for share in plan:
        yield play_share(share, options, None if on_end is None else partial(_told, on_end, before))
        before += len(share.requests)


def _told(on_end: OnEnd, before: int, ended: int) -> None:
    on_end(before + ended)


def _by_workers(plan: Sequence[Share], options: RunOptions, processes: int) -> list[Recording]:
    from joblib import Parallel, delayed  # noqa: PLC0415 - joblib loads slowly, and most runs do without

    tasks = (delayed(play_share)(share, options) for share in plan)
    played: list[Recording] = Parallel(n_jobs=processes, max_nbytes=None)(tasks)
    return played
