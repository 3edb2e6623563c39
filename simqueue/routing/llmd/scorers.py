"""What each scorer of llm-d says of the candidates: from 0, avoid, to 1, prefer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from simqueue.routing.base import Signal, View
from simqueue.routing.llmd.keys import LlmDSettings

Scores = dict[int, float]


class Seen(NamedTuple):
    """What scorers know of a request.

    Attributes
    ----------
    matched : mapping of int to int
        By replica, blocks of the prompt that it has; those without any are left out.
    blocks : int
        Blocks of the prompt.
    cold_order : sequence of int
        Replicas in the order in which they last got a request that no replica had a block of, the oldest first.
    settings : LlmDSettings
    """

    matched: Mapping[int, int]
    blocks: int
    cold_order: Sequence[int]
    settings: LlmDSettings


def queue(able: Sequence[View], _: Seen) -> Scores:
    """Return 1 for the shortest queue, 0 for the longest, and linearly between; 1 if all are equal."""
    return _from_least_to_most({one.number: one.waiting for one in able})


def running(able: Sequence[View], _: Seen) -> Scores:
    """Return the same for running requests."""
    return _from_least_to_most({one.number: one.running for one in able})


def kv_cache(able: Sequence[View], _: Seen) -> Scores:
    """Return the free share of the KV pool."""
    return {one.number: 1 - one.kv_used for one in able}


def load_aware(able: Sequence[View], seen: Seen) -> Scores:
    """Return 0.5 for an empty queue, falling to 0 at the threshold."""
    threshold = seen.settings.threshold
    return {one.number: 0.5 * (1 - min(one.waiting, threshold) / threshold) for one in able}


def active_request(able: Sequence[View], seen: Seen) -> Scores:
    """Return 1 for idle replicas; for the others what they have less than the most, as a share of it."""
    idle, best = seen.settings.idle_threshold, seen.settings.max_busy_score
    most = max(one.in_flight for one in able)
    return {one.number: 1.0 if one.in_flight <= idle else (most - one.in_flight) / most * best for one in able}


def token_load(able: Sequence[View], seen: Seen) -> Scores:
    """Return 1 for no tokens in flight, falling to 0 at the threshold."""
    threshold = seen.settings.queue_threshold_tokens
    return {one.number: 1 - min(one.in_flight_tokens, threshold) / threshold for one in able}


def prefix_cache(able: Sequence[View], seen: Seen) -> Scores:
    """Return the share of the prompt's blocks that a replica has."""
    return {one.number: seen.matched.get(one.number, 0) / seen.blocks if seen.blocks else 0.0 for one in able}


def no_hit_lru(able: Sequence[View], seen: Seen) -> Scores:
    """Return 0.5 for all if a candidate has a block; else a rank: never used for a cold request first, then by age."""
    if any(seen.matched.get(one.number) for one in able):
        return {one.number: 0.5 for one in able}
    if len(able) == 1:
        return {able[0].number: 1.0}
    place = {number: i for i, number in enumerate(seen.cold_order)}
    new = [one.number for one in able if one.number not in place]
    ranks = {number: i for i, number in enumerate(new)}
    ranks |= {one.number: len(new) + place[one.number] for one in able if one.number in place}
    return {one.number: max(0.0, 1 - ranks[one.number] / (len(able) - 1)) for one in able}


def _from_least_to_most(values: Mapping[int, int]) -> Scores:
    least, most = min(values.values()), max(values.values())
    return {number: (most - value) / (most - least) if most > least else 1.0 for number, value in values.items()}


class Scorer(NamedTuple):
    """A scorer and the signals that it reads."""

    of: Callable[[Sequence[View], Seen], Scores]
    reads: frozenset[Signal] = frozenset()


BY_NAME: Mapping[str, Scorer] = {
    "queue-scorer": Scorer(queue, frozenset({Signal.WAITING})),
    "running-requests-size-scorer": Scorer(running, frozenset({Signal.RUNNING})),
    "kv-cache-utilization-scorer": Scorer(kv_cache, frozenset({Signal.KV_USED})),
    "load-aware-scorer": Scorer(load_aware, frozenset({Signal.WAITING})),
    "active-request-scorer": Scorer(active_request),
    "token-load-scorer": Scorer(token_load),
    "prefix-cache-scorer": Scorer(prefix_cache),
    "no-hit-lru-scorer": Scorer(no_hit_lru),
}
"""By the product's names."""
