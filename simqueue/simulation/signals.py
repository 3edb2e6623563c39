"""Signals with an age: the engines are looked at from time to time, and the router learns of it later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import simpy

from simqueue.routing import Age, Signal
from simqueue.simulation import clock
from simqueue.simulation.clock import Order
from simqueue.simulation.member import Member, Reading, Undeclared
from simqueue.simulation.watching import stand_by


class Asked(Protocol):
    """Who can hold requests until signals change.

    Attributes
    ----------
    last_event_s : float
        When anything happened to a request last.
    """

    last_event_s: float

    @property
    def holds(self) -> bool:
        """Whether it holds requests."""

    def ask_again(self) -> None:
        """Choose for them again at this instant."""


def look_from_time_to_time(
    env: simpy.Environment,
    members: Sequence[Member],
    ages: Mapping[Signal, Age],
    reads: frozenset[Signal],
    asked: Asked,
) -> None:
    """Look at the signals that are read and have an age, from time 0 on; tell `asked` of news if it holds requests.

    Others that have an age are not looked at; a router that reads one all the same ends the run with a `RunError`.
    """
    by_age: dict[Age, list[Signal]] = {}
    for signal in Signal:
        age = ages.get(signal, Age())
        if signal is Signal.CACHED or age.every_s <= 0:
            continue
        if signal in reads:
            by_age.setdefault(age, []).append(signal)
        for member in members:
            member.readings[signal] = Reading() if signal in reads else Undeclared(signal)
    for age, signals in by_age.items():
        _Looks(env, members, age, signals, asked)


class _Looks:
    """Looks at some signals of all replicas, at multiples of a period.

    Its length is 1 if the next look could help a request that is held, so that the run is not over.
    """

    def __init__(
        self, env: simpy.Environment, members: Sequence[Member], age: Age, signals: Sequence[Signal], asked: Asked
    ) -> None:
        self._env, self._members, self._age, self._signals, self._asked = env, members, age, signals, asked
        self._count = 0
        self._looked_s = -1.0
        self._values: list[float] = []
        self._wait()

    def __len__(self) -> int:
        return int(self._asked.holds and self._asked.last_event_s >= self._looked_s)

    def _wait(self) -> None:
        stand_by(self._env, self._count * self._age.every_s, Order.SIGNALS, self._look, self)

    def _look(self) -> None:
        now_s = self._count * self._age.every_s
        known_s = now_s + self._age.delay_s
        values = []
        for member in self._members:
            if member.site is not None:
                for signal in self._signals:
                    values.append(member.live(signal))
                    member.readings[signal].add(now_s, values[-1], known_s)
        if self._asked.holds and (len(self) or values != self._values):
            clock.at(self._env, known_s, Order.ARRIVAL).callbacks.append(lambda _: self._asked.ask_again())
        self._values, self._looked_s = values, now_s
        self._count += 1
        self._wait()
