"""Events that do not keep a run going: those that only watch or disturb, and those that may yet help a request.

A run is over when nothing else is left to happen. What would happen to the replicas after that does not happen.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

import simpy
from simpy.events import Event

from simqueue.simulation import clock


class _Watching(Event):
    """An event that does not keep the run going."""


class _Standby(Event):
    """An event that keeps the run going as long as requests are inside: a replica that comes back can serve them."""

    inside: Sized


def watch(env: simpy.Environment, time_s: float, order: float, act: Callable[[], None]) -> None:
    """Call `act` at exactly `time_s`, unless the run is over by then. Precondition: as `clock.at`."""
    _put(_Watching(env), time_s, order, act)


def stand_by(env: simpy.Environment, time_s: float, order: float, act: Callable[[], None], inside: Sized) -> None:
    """As `watch`, but the run is not over as long as there are requests `inside`."""
    event = _Standby(env)
    event.inside = inside
    _put(event, time_s, order, act)


def _put(event: Event, time_s: float, order: float, act: Callable[[], None]) -> None:
    env = event.env
    clock.put(event, time_s, order)
    event.callbacks.append(lambda _: None if _is_over(env, event) else act())


def _is_over(env: simpy.Environment, event: Event) -> bool:
    """Return whether nothing is left to happen that keeps a run going; `event` happens now."""
    queue: list[Any] = env._queue
    return not _keeps(event) and not any(_keeps(other) for *_, other in queue if other.callbacks)


def _keeps(event: Event) -> bool:
    if isinstance(event, _Standby):
        return bool(event.inside)
    return not isinstance(event, _Watching)
