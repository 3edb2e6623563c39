"""The only module that uses SimPy's internals: events at absolute times, ordered within an instant, movable.

SimPy orders events by (time, priority, insertion) and schedules by delay. But ``now + (t - now)`` rounds, so an event
meant for the same instant as another one can miss it. Here an event is put at `t` itself. Its priority says what comes
first within one instant:

1. steps end: finished requests leave, seats and blocks are freed, clients react;
2. replicas fail, come back, drain, start;
3. requests arrive, in order of arrival, then of their place in the workload;
4. clients time out;
5. signals of the engines are looked at;
6. the horizon: what happens at it is included;
7. replicas plan, each once, after all of that.

Several replicas do the same thing in the order of their numbers (`of_replica`).

Three shortcuts keep that order and avoid SimPy's heap: `leap` goes to a time before which nothing happens, `happen`
triggers an event and runs its callbacks at once, `begin` starts a process at once.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import IntEnum
from heapq import heappop, heappush
from math import inf
from typing import Any

import simpy
from simpy.events import Event, Process


class Order(IntEnum):
    """What comes first within one instant. SimPy's own priorities are 0 (urgent) and 1 (normal)."""

    STEP_END = 1
    LIFE = 2
    ARRIVAL = 3
    TIMEOUT = 4
    SIGNALS = 5
    HORIZON = 6
    PLAN = 7


MOST_REPLICAS = 1 << 20


def of_replica(order: Order, number: int) -> float:
    """Return the place of a replica's event among those of its kind. Precondition: ``0 <= number < MOST_REPLICAS``."""
    return order + number / MOST_REPLICAS


def now(env: simpy.Environment) -> float:
    """Return the time, as ``env.now`` does, in half the time."""
    return float(env._now)


def next_s(env: simpy.Environment) -> float:
    """Return the time of the next event that has callbacks; infinity if there is none.

    Events without callbacks (the end of a process, a moved event) are removed on the way. So code that makes an event
    must wait for it before time goes on.
    """
    queue: list[Any] = env._queue
    while queue:
        time_s, _, _, event = queue[0]
        if event.callbacks or not event._ok:
            return float(time_s)
        heappop(queue)
        event.callbacks = None
    return inf


def shared(env: simpy.Environment) -> bool:
    """Return whether another event is still to happen at this instant."""
    return next_s(env) <= env._now


def leap(env: simpy.Environment, time_s: float) -> bool:
    """Set the time to `time_s` if no event happens before or then; return whether it was set.

    The same as waiting for an event at `time_s` that would be the next one, without the heap.
    """
    if next_s(env) <= time_s:
        return False
    env._now = time_s
    return True


def at(env: simpy.Environment, time_s: float, order: float) -> Event:
    """Return a new event that happens at exactly `time_s`. Precondition: ``time_s >= env.now``."""
    if time_s < env._now:
        raise ValueError(f"an event at {time_s} s lies before now, {env.now} s")
    event = Event.__new__(Event)
    event.env = env
    event.callbacks = []
    event._ok = True
    event._value = None
    queue: list[Any] = env._queue
    heappush(queue, (time_s, order, next(env._eid), event))
    return event


def put(event: Event, time_s: float, order: float) -> None:
    """Schedule a pending `event` at exactly `time_s`. Precondition: it is neither scheduled nor triggered."""
    env = event.env
    if time_s < env._now:
        raise ValueError(f"an event at {time_s} s lies before now, {env.now} s")
    event._ok = True
    event._value = None
    queue: list[Any] = env._queue
    heappush(queue, (time_s, order, next(env._eid), event))


def move(event: Event, time_s: float, order: float) -> Event:
    """Return an event at `time_s` that replaces a scheduled one and has its callbacks.

    The old event stays in SimPy's heap without callbacks.
    """
    successor = at(event.env, time_s, order)
    successor.callbacks, event.callbacks = event.callbacks, []
    return successor


def happen(event: Event, value: Any) -> None:
    """Trigger a pending `event` now and run its callbacks at once."""
    env = event.env
    active = env._active_proc
    event._ok = True
    event._value = value
    callbacks, event.callbacks = event.callbacks or [], None  # type: ignore[assignment] # None: it has happened
    for callback in callbacks:
        callback(event)
    env._active_proc = active


def begin(env: simpy.Environment, generator: Generator[Event, Any, Any]) -> Process:
    """Return a new process whose first part, up to its first event, runs at once and not by an event of its own."""
    active = env._active_proc
    process = Process.__new__(Process)
    process.env = env
    process.callbacks = []
    process._generator = generator
    process._resume(_BEGINNING)
    env._active_proc = active
    return process


_BEGINNING = Event.__new__(Event)
_BEGINNING._ok = True
_BEGINNING._value = None
