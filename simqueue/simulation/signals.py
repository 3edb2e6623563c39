"""Signals with an age: the engines are looked at from time to time, and the router learns of it later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import simpy

from simqueue.routing import Age, Signal
from simqueue.simulation.clock import Order
from simqueue.simulation.member import Member, Reading
from simqueue.simulation.watching import watch


def look_from_time_to_time(
    env: simpy.Environment, members: Sequence[Member], ages: Mapping[Signal, Age], reads: frozenset[Signal]
) -> None:
    """Look at the signals that are read and have an age, from time 0 on."""
    by_age: dict[Age, list[Signal]] = {}
    for signal in Signal:
        age = ages.get(signal, Age())
        if signal in reads and signal is not Signal.CACHED and age.every_s > 0:
            by_age.setdefault(age, []).append(signal)
            for member in members:
                member.readings[signal] = Reading()
    for age, signals in by_age.items():
        _Looks(env, members, age, signals)


class _Looks:
    """Looks at some signals of all replicas, at multiples of a period."""

    def __init__(self, env: simpy.Environment, members: Sequence[Member], age: Age, signals: Sequence[Signal]) -> None:
        self._env, self._members, self._age, self._signals = env, members, age, signals
        self._count = 0
        self._wait()

    def _wait(self) -> None:
        watch(self._env, self._count * self._age.every_s, Order.SIGNALS, self._look)

    def _look(self) -> None:
        now_s = self._count * self._age.every_s
        for member in self._members:
            if member.site is not None:
                for signal in self._signals:
                    member.readings[signal].add(now_s, member.live(signal), now_s + self._age.delay_s)
        self._count += 1
        self._wait()
