"""Fleets whose replicas are independent, over worker processes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from simqueue.simulation.apart import can_be_apart, play_share, shares, together
from simqueue.simulation.fleet_rules import FleetRules, Part
from simqueue.simulation.options import RunOptions
from simqueue.simulation.recording import Recording
from simqueue.traffic import Traffic

_WORTH_STARTING_WORKERS: Final = 50_000
"""With fewer requests, starting worker processes takes longer than it saves."""


def played_apart(
    traffic: Traffic, parts: Sequence[Part], rules: FleetRules, options: RunOptions, workers: int | None
) -> Recording | None:
    """Simulate the replicas of a fleet in worker processes, if they are independent and it is worth it.

    Parameters
    ----------
    traffic, parts, rules, options
        As for `FleetSimulation`.
    workers : int or None
        Processes, at most one per core; None: as many as there are cores if the work is long, else one.

    Returns
    -------
    Recording or None
        As all of them together would give it. None: they have to be simulated together.
    """
    useful = min(os.cpu_count() or 1, len(parts))
    if workers is None and len(traffic.requests) < _WORTH_STARTING_WORKERS:
        return None
    number = useful if workers is None else min(workers, useful)
    if number < 2 or not isinstance(traffic.requests, list) or not can_be_apart(traffic, rules):
        return None
    from joblib import Parallel, delayed  # noqa: PLC0415 - joblib loads slowly, and most runs do without

    plan = shares(traffic.requests, parts, rules, number)
    tasks = (delayed(play_share)(share, options) for share in plan)
    played = Parallel(n_jobs=number, max_nbytes=None)(tasks)
    return together(traffic.requests, plan, played, type(rules.router).__name__, options)
