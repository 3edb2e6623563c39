"""The one place that touches SimPy's insides: events at absolute times, ordered within an instant, movable.

SimPy orders events by (time, priority, insertion) and schedules by delay; but ``now + (t - now)`` rounds, so an event
meant for the very instant of another one can miss it. Here an event is put at `t` itself, and the priority says what
comes first within one instant:

1. steps end: finished requests leave, seats and blocks are freed, clients react;
2. requests arrive, in order of arrival, then of their place in the workload;
3. clients time out;
4. the horizon: what happens at it is included;
5. idle replicas plan, once, having seen all of that.
"""

from __future__ import annotations

from enum import IntEnum
from heapq import heappush
from typing import Any

import simpy
from simpy.events import Event


class Order(IntEnum):
    """What comes first within one instant. SimPy's own priorities are 0 (urgent) and 1 (normal)."""

    STEP_END = 1
    ARRIVAL = 2
    TIMEOUT = 3
    HORIZON = 4
    PLAN = 5


def shared(env: simpy.Environment) -> bool:
    """Return whether anything else is still to happen at this very instant."""
    queue = env._queue
    return bool(queue) and queue[0][0] <= env._now


def at(env: simpy.Environment, time_s: float, order: Order) -> Event:
    """Return a new event that happens at exactly `time_s`. Precondition: ``time_s >= env.now``."""
    if time_s < env._now:
        raise ValueError(f"an event at {time_s} s lies before now, {env.now} s")
    event = Event(env)
    event._ok = True
    event._value = None
    queue: list[Any] = env._queue
    heappush(queue, (time_s, order, next(env._eid), event))
    return event


def put(event: Event, time_s: float, order: Order) -> None:
    """Let a pending `event` happen at exactly `time_s`. Precondition: it has not been put or triggered before."""
    env = event.env
    if time_s < env._now:
        raise ValueError(f"an event at {time_s} s lies before now, {env.now} s")
    event._ok = True
    event._value = None
    queue: list[Any] = env._queue
    heappush(queue, (time_s, order, next(env._eid), event))


def move(event: Event, time_s: float, order: Order) -> Event:
    """Return the event that takes the place of a pending one, with everybody who waits for it, at `time_s`.

    The old event stays in SimPy's heap, where it will pass without effect.
    """
    successor = Event(event.env)
    successor.callbacks, event.callbacks = event.callbacks, []
    put(successor, time_s, order)
    return successor
