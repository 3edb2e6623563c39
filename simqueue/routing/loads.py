"""What routers compare replicas by, and draws among replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from random import Random
from typing import Literal, NamedTuple

from simqueue.routing.base import Signal, View, below, healthy

LoadName = Literal[
    "in_flight",
    "in_flight_prompt_tokens",
    "in_flight_tokens",
    "running",
    "waiting",
    "running_and_waiting",
    "kv_used",
    "tokens",
]


class Load(NamedTuple):
    """A quantity of a replica, less of which is better.

    Attributes
    ----------
    of : callable
        Its value for a replica.
    reads : frozenset of Signal
        The signals that it needs; none for a router's own counts.
    """

    of: Callable[[View], float]
    reads: frozenset[Signal] = frozenset()


def _running_and_waiting(replica: View) -> float:
    return replica.running + replica.waiting


def _own(name: str) -> Load:
    return Load(attrgetter(name))


def _signal(signal: Signal) -> Load:
    return Load(attrgetter(signal.value), frozenset({signal}))


LOADS: dict[str, Load] = {
    "in_flight": _own("in_flight"),
    "in_flight_prompt_tokens": _own("in_flight_prompt_tokens"),
    "in_flight_tokens": _own("in_flight_tokens"),
    "running": _signal(Signal.RUNNING),
    "waiting": _signal(Signal.WAITING),
    "running_and_waiting": Load(_running_and_waiting, frozenset({Signal.RUNNING, Signal.WAITING})),
    "kv_used": _signal(Signal.KV_USED),
    "tokens": _signal(Signal.TOKENS),
}
"""The loads by the names that scenarios use; see `View`."""

IN_FLIGHT = LOADS["in_flight"]


def least(replicas: Sequence[View], load: Load) -> list[View]:
    """Return the replicas with the smallest load, in their order."""
    loads = list(map(load.of, replicas))
    smallest = min(loads)
    return [replica for replica, value in zip(replicas, loads, strict=True) if value == smallest]


def measured(replicas: Sequence[View], load: Load) -> dict[int, float]:
    """Return the load of each replica by its number."""
    return {replica.number: float(load.of(replica)) for replica in replicas}


def one_of(random: Random, replicas: Sequence[View]) -> View:
    """Draw a replica, all with the same probability; no random number is used if there is only one."""
    return replicas[0] if len(replicas) == 1 else replicas[below(random, len(replicas))]


def some_healthy(random: Random, replicas: Sequence[View], n: int) -> list[View]:
    """Draw `n` different healthy replicas in random order, or all of them if there are fewer.

    The work grows with `n` and not with the number of replicas, while most of them are healthy. Replicas are drawn
    from all, and those that are down or drawn already are drawn again. All choices are equally likely whether that
    ends in time or not, so that starting afresh among the healthy ones keeps them so.
    """
    found: list[View] = []
    for _ in range(4 * n + 4 if 2 * n < len(replicas) else 0):
        one = replicas[below(random, len(replicas))]
        if one.healthy and one not in found:
            found.append(one)
            if len(found) == n:
                return found
    return _shuffled(random, healthy(replicas), n)


def _shuffled(random: Random, replicas: list[View], n: int) -> list[View]:
    """Return the first `n` of a random order."""
    n = min(n, len(replicas))
    for i in range(n):
        j = i + below(random, len(replicas) - i)
        replicas[i], replicas[j] = replicas[j], replicas[i]
    return replicas[:n]
