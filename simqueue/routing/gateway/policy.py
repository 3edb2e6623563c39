"""What all policies have in common. A policy is a router without a kind: a product chooses it by a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from simqueue.routing.base import Ranking, Router, View, evenly
from simqueue.routing.gateway.front import Front
from simqueue.settings import Settings


class Policy(Router):
    """A policy of these programs.

    Parameters
    ----------
    settings : Settings
    random : Random
    front : Front
        What it sees of requests.
    """

    def __init__(self, settings: Settings, random: Random, front: Front) -> None:
        super().__init__(settings, random)
        self.front = front


def least_loaded(replicas: Sequence[View]) -> View:
    """Return the first of those with the fewest requests in flight."""
    return min(replicas, key=lambda replica: replica.in_flight)


def is_healthy(replicas: Sequence[View], number: int) -> bool:
    """Return whether the replica with a number is there and healthy."""
    if number < len(replicas) and replicas[number].number == number:  # nearly always its place
        return replicas[number].healthy
    return any(replica.healthy for replica in replicas if replica.number == number)


def loads(replicas: Sequence[View]) -> dict[int, float]:
    """Return the requests in flight, for the scores of a `Ranking`."""
    return {replica.number: float(replica.in_flight) for replica in replicas}


def lowest(replicas: Sequence[View], value: Callable[[View], float]) -> list[View]:
    """Return all replicas with the lowest value."""
    values = [value(replica) for replica in replicas]
    least = min(values)
    return [replica for replica, one in zip(replicas, values, strict=True) if one == least]


def evenly_among(replicas: Sequence[View], reason: str, **scores: Mapping[int, float]) -> Ranking:
    """Return a ranking in which these are equal and no other can be chosen."""
    return Ranking(evenly(replicas), reason, scores)
