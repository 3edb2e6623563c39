"""Events at absolute times, ordered within an instant, movable."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st
from simpy.events import Event

from simqueue.simulation import clock
from simqueue.simulation.clock import Order

times_s = st.floats(0, 1e9, allow_nan=False)


@given(times_s, times_s)
def test_time_is_absolute_and_never_rounded(one_s: float, other_s: float) -> None:
    """An event put at t happens at t to the last bit, though now + (t - now) may differ from t."""
    now_s, then_s = sorted((one_s, other_s))
    env = simpy.Environment(initial_time=now_s)
    happened_s = []
    clock.at(env, then_s, Order.ARRIVAL).callbacks.append(lambda _: happened_s.append(env.now))  # type: ignore[union-attr] # pending events have callbacks
    env.run()
    assert happened_s == [then_s]


def test_a_delay_would_miss_the_instant() -> None:
    """The rounding is real: there are times that SimPy's own timeout, a delay from now, does not hit."""
    env = simpy.Environment(initial_time=0.3)
    env.run(env.timeout(0.9 - env.now))
    assert env.now != 0.9


@given(st.permutations(list(Order)))
def test_order_within_an_instant(order: list[Order]) -> None:
    """At one instant: steps end, requests arrive, clients time out, the horizon, idle replicas plan."""
    env = simpy.Environment()
    happened: list[Order] = []
    for kind in order:
        clock.at(env, 2.0, kind).callbacks.append(lambda _, kind=kind: happened.append(kind))  # type: ignore[union-attr] # pending events have callbacks
    env.run()
    assert happened == [Order.STEP_END, Order.ARRIVAL, Order.TIMEOUT, Order.HORIZON, Order.PLAN]


def test_equal_events_keep_the_order_in_which_they_were_put() -> None:
    """Two arrivals of one instant happen first come first."""
    env = simpy.Environment()
    happened: list[str] = []
    for name in ("first", "second", "third"):
        clock.at(env, 1.0, Order.ARRIVAL).callbacks.append(lambda _, name=name: happened.append(name))  # type: ignore[union-attr] # pending events have callbacks
    env.run()
    assert happened == ["first", "second", "third"]


@pytest.mark.parametrize("new_s", [1.0, 3.0, 9.0])
def test_moved_event_wakes_its_process_at_the_new_time_only(new_s: float) -> None:
    """Whoever waits for an event that is moved goes on once, at the new time, earlier or later."""
    env = simpy.Environment()
    happened_s: list[float] = []
    event = clock.at(env, 5.0, Order.STEP_END)

    def process() -> Generator[Event, Any, None]:
        yield event
        happened_s.append(env.now)

    env.process(process())

    def mover() -> Generator[Event, Any, None]:
        yield clock.at(env, 1.0, Order.ARRIVAL)
        moved = clock.move(event, 7.0, Order.STEP_END)
        clock.move(moved, new_s, Order.STEP_END)

    env.process(mover())
    env.run()
    assert happened_s == [new_s]


def test_event_can_be_put_later_than_made() -> None:
    """An event without a time waits until it is put."""
    env = simpy.Environment()
    event = Event(env)
    clock.put(event, 4.0, Order.PLAN)
    env.run(event)
    assert env.now == 4.0


def test_the_past_is_refused() -> None:
    """An event before now is an error that says both times."""
    env = simpy.Environment(initial_time=3.0)
    with pytest.raises(ValueError, match=r"an event at 2\.5 s lies before now, 3\.0 s"):
        clock.at(env, 2.5, Order.PLAN)
