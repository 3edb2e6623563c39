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
    """At one instant: steps end, replicas fail, requests arrive, time out, signals, the horizon, idle replicas plan."""
    env = simpy.Environment()
    happened: list[Order] = []
    for kind in order:
        clock.at(env, 2.0, kind).callbacks.append(lambda _, kind=kind: happened.append(kind))  # type: ignore[union-attr] # pending events have callbacks
    env.run()
    first, last = [Order.STEP_END, Order.LIFE, Order.ARRIVAL], [Order.HORIZON, Order.PLAN]
    assert happened == [*first, Order.TIMEOUT, Order.SIGNALS, *last]


@given(st.permutations([0, 1, 2, 1000, clock.MOST_REPLICAS - 1]))
def test_replicas_act_in_the_order_of_their_numbers(numbers: list[int]) -> None:
    """However their events were put: each kind of event in the order of the numbers, before the next kind."""
    env = simpy.Environment()
    happened: list[tuple[Order, int]] = []
    for number in numbers:
        for kind in (Order.PLAN, Order.STEP_END):
            event = clock.at(env, 2.0, clock.of_replica(kind, number))
            event.callbacks.append(lambda _, one=(kind, number): happened.append(one))  # type: ignore[union-attr] # pending events have callbacks
    env.run()
    assert happened == [(kind, number) for kind in (Order.STEP_END, Order.PLAN) for number in sorted(numbers)]


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
    """A process that waits for a moved event continues once, at the new time, earlier or later."""
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


def waited_for(env: simpy.Environment, time_s: float, happened: list[float]) -> None:
    """Return an event at a time, with a process that waits for it."""
    clock.at(env, time_s, Order.ARRIVAL).callbacks.append(lambda _: happened.append(env.now))  # type: ignore[union-attr] # pending events have callbacks


@pytest.mark.parametrize(("to_s", "possible"), [(2.5, True), (3.0, False), (4.0, False)])
def test_a_leap_passes_nothing_that_somebody_waits_for(to_s: float, possible: bool) -> None:
    """Up to the next event time moves at once; at its instant or beyond it stays, and the event happens as ever."""
    env, happened = simpy.Environment(), []  # type: tuple[simpy.Environment, list[float]]
    waited_for(env, 3.0, happened)
    assert clock.leap(env, to_s) is possible
    assert env.now == (to_s if possible else 0.0)
    env.run()
    assert happened == [3.0]


def test_what_nobody_waits_for_is_no_reason_to_stop() -> None:
    """A moved event leaves nothing behind that counts as happening: not next, not at this instant, not under way."""
    env, happened = simpy.Environment(), []  # type: tuple[simpy.Environment, list[float]]
    waited_for(env, 9.0, happened)
    clock.at(env, 0.0, Order.STEP_END)
    clock.at(env, 2.0, Order.STEP_END)
    assert not clock.shared(env)
    assert clock.next_s(env) == 9.0
    assert clock.leap(env, 8.0)
    assert not clock.leap(env, 9.0)
    env.run()
    assert (happened, clock.next_s(env)) == ([9.0], float("inf"))


def test_a_begun_process_runs_at_once_and_those_who_wait_go_on_at_once() -> None:
    """Begin and happen work within the moment, without events of their own, and leave the active process active."""
    env = simpy.Environment()
    told: list[Any] = []
    answer = Event(env)

    def asks(name: str) -> Generator[Event, Any, str]:
        told.append((name, "asks", env.now))
        told.append((name, (yield answer), env.now))
        return name

    def serves() -> Generator[Event, Any, None]:
        yield clock.at(env, 5.0, Order.STEP_END)
        process = env.active_process
        begun = [clock.begin(env, asks(name)) for name in ("first", "second")]
        told.append("begun")
        clock.happen(answer, 42)
        told.append("done")
        assert env.active_process is process
        assert [one.value for one in begun] == ["first", "second"]

    env.process(serves())
    env.run()
    asked = [("first", "asks", 5.0), ("second", "asks", 5.0)]
    assert told == [*asked, "begun", ("first", 42, 5.0), ("second", 42, 5.0), "done"]
