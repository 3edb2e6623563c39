"""The one place that touches SimPy's insides: events at absolute times, ordered within an instant, movable.

SimPy orders events by (time, priority, insertion) and schedules by delay; but ``now + (t - now)`` rounds, so an event
meant for the very instant of another one can miss it. Here an event is put at `t` itself, and the priority says what
comes first within one instant:

1. steps end: finished requests leave, seats and blocks are freed, clients react;
2. requests arrive, in order of arrival, then of their place in the workload;
3. clients time out;
4. the horizon: what happens at it is included;
5. idle replicas plan, once, having seen all of that.

Three shortcuts keep that order and save the way through SimPy's heap: `leap` goes to a time before which nothing
happens, `happen` lets those who wait for something go on at once, `begin` starts a process within what happens now.
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
    ARRIVAL = 2
    TIMEOUT = 3
    HORIZON = 4
    PLAN = 5


def next_s(env: simpy.Environment) -> float:
    """Return when the next thing happens that somebody waits for; infinity if nothing does.

    What would pass without effect is taken out on the way: the end of a process, a moved event. Whoever makes an event
    must therefore wait for it before time goes on.
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
    """Return whether anything else is still to happen at this very instant."""
    return next_s(env) <= env._now


def leap(env: simpy.Environment, time_s: float) -> bool:
    """Let it be `time_s` at once, if nothing happens before or then; return whether nothing does.

    The same as to wait for an event at `time_s`, which would be the next one, without the way through the heap.
    """
    if next_s(env) <= time_s:
        return False
    env._now = time_s
    return True


def at(env: simpy.Environment, time_s: float, order: Order) -> Event:
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
    successor = at(event.env, time_s, order)
    successor.callbacks, event.callbacks = event.callbacks, []
    return successor


def happen(event: Event, value: Any) -> None:
    """Let a pending `event` happen now, within what happens at this moment: who waits for it goes on at once."""
    env = event.env
    active = env._active_proc
    event._ok = True
    event._value = value
    callbacks, event.callbacks = event.callbacks or [], None  # type: ignore[assignment] # None: it has happened
    for callback in callbacks:
        callback(event)
    env._active_proc = active


def begin(env: simpy.Environment, generator: Generator[Event, Any, Any]) -> Process:
    """Return a new process whose first part, up to what it waits for, runs at once and not by an event of its own."""
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
