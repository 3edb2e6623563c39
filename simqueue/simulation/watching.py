"""Events that only watch or disturb: they do not keep a run going."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import simpy
from simpy.events import Event

from simqueue.simulation import clock


class Watching(Event):
    """An event that does not keep the run going."""


def watch(env: simpy.Environment, time_s: float, order: float, act: Callable[[], None]) -> None:
    """Call `act` at exactly `time_s`, unless by then nothing else is left to happen. Precondition: as `clock.at`."""
    event = Watching(env)
    clock.put(event, time_s, order)
    event.callbacks.append(lambda _: None if _only_watched(env) else act())


def _only_watched(env: simpy.Environment) -> bool:
    queue: list[Any] = env._queue
    return all(isinstance(event, Watching) or not event.callbacks for *_, event in queue)
