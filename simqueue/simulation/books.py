"""What is read from the parts of a run when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from simqueue.kvcache import KVCache, PrefixKVCache
from simqueue.request import Job, Status, Trip
from simqueue.simulation.columns import Columns
from simqueue.simulation.recording import Column, PrefixStatistics

if TYPE_CHECKING:
    from simqueue.simulation.member import Member

N = TypeVar("N", int, float)
_RUNS = ("ready", "draining")


def prefix_statistics(kv: KVCache) -> PrefixStatistics | None:
    """Return what a prefix cache found; None if it is none."""
    if not isinstance(kv, PrefixKVCache):
        return None
    return PrefixStatistics(kv.queried_tokens, kv.hit_tokens, kv.self_hit_tokens)


def sum_prefix(parts: Iterable[PrefixStatistics | None]) -> PrefixStatistics | None:
    """Return what several caches found together; None if none of them is a prefix cache."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    return PrefixStatistics(
        sum(part.queried_tokens for part in known),
        sum(part.hit_tokens for part in known),
        sum(part.self_hit_tokens for part in known),
    )


def sum_or_none(parts: Iterable[N | None]) -> N | int | None:
    """Return the sum of the numbers that are known; None if none is."""
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def lives_of(rows: Columns, end_s: float) -> Mapping[str, Column]:
    """Return the changes of the replicas' states up to the end of the run: those after it concern no request."""
    table = rows.arrays()
    happened = table["time_s"] <= end_s
    return {name: column[happened] for name, column in table.items()}


def ready_s(table: Mapping[str, Column], replica: int, end_s: float) -> float:
    """Return how long a replica ran up to the end of the run, from the table of lives."""
    own = table["replica"] == replica
    times_s = np.minimum(np.append(table["time_s"][own], end_s), end_s)
    runs = np.array([state in _RUNS for state in table["state"][own]], dtype=np.bool_)
    return float(np.diff(times_s)[runs].sum())


def stays_of(stays: Sequence[tuple[Trip, Job, Member, float]]) -> Mapping[str, Column]:
    """Return the table of stays that failed. The last stay of a request is not there, unless it was lost too."""
    columns = Columns(
        request="q",
        replica="q",
        submitted_s="d",
        first_scheduled_s="d",
        first_token_s="d",
        last_token_s="d",
        end_s="d",
        tokens="q",
        kept="q",
        max_itl_s="d",
    )
    for trip, job, member, end_s in stays:
        kept = trip.keeps_tokens or trip.job is job
        times_s = (job.submitted_s, job.first_scheduled_s, job.first_token_s, job.last_token_s)
        known_s = [nan if time_s is None else time_s for time_s in times_s]
        longest_s = nan if job.max_itl_s is None else job.max_itl_s
        columns.append((job.index, member.number, *known_s, end_s, job.tokens_emitted, int(kept), longest_s))
    return columns.arrays()


def most_inside(requests: Mapping[str, Column], gives_up_s: Mapping[str, float | None]) -> int:
    """Return the most requests that were inside at one time, from the requests table.

    Within one instant requests leave when steps end, then requests arrive, then clients time out.
    """
    statuses, end_s = requests["status"], requests["finish_s"]
    arrival_s = requests["arrival_s"]
    at_once = (statuses == Status.REJECTED.value) & (end_s == arrival_s)
    inside = ~at_once | ~np.isnan(requests["submitted_s"])  # refused behind a front end that takes no time
    timed_out = statuses == Status.TIMED_OUT.value
    limits_s = np.array([gives_up_s[name] or np.inf for name in requests["request_id"]])
    late = timed_out & (end_s == limits_s)
    leave_s = np.where(statuses == Status.UNFINISHED.value, np.inf, end_s)[inside]
    times_s = np.concatenate((arrival_s[inside], leave_s))
    phases = np.concatenate((np.ones(len(leave_s)), np.where(late[inside], 2, np.where(at_once[inside], 1, 0))))
    turns = 2 * np.arange(len(leave_s))
    changes = np.repeat((1, -1), len(leave_s))
    order = np.lexsort((np.concatenate((turns, turns + 1)), phases, times_s))
    return int(changes[order].cumsum().max(initial=0))
