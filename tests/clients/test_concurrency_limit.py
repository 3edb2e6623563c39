"""A concurrency limit by itself: who is sent, in which order, and who is not sent any more."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from simqueue.request import Request, Status
from simqueue.simulation.clients import Clients, ConcurrencyLimit
from simqueue.traffic import Rules


def request(name: str, gives_up_s: float | None = None) -> Request:
    """Return a request with a timeout at `gives_up_s`."""
    return Request(name, 0.0, 1, 1, gives_up_s=gives_up_s)


def entering(env: simpy.Environment, limit: ConcurrencyLimit, asked: list[Request]) -> list[tuple[str, float, bool]]:
    """Let requests ask for a place now, in order; return a list that fills with (name, time, sent)."""
    seen: list[tuple[str, float, bool]] = []

    def enter(one: Request) -> Generator[Any, Any, None]:
        sent = yield from limit.enter(one)
        seen.append((one.request_id, env.now, sent))

    for one in asked:
        env.process(enter(one))
    return seen


def leave_at(env: simpy.Environment, limit: ConcurrencyLimit, *times_s: float) -> None:
    """Give places back at these times."""

    def leave() -> Generator[Any, Any, None]:
        for time_s in times_s:
            yield env.timeout(time_s - env.now)
            limit.leave()

    env.process(leave())


def test_waiting_requests_are_sent_in_order_as_places_are_given_back() -> None:
    """Two places: a and b are sent at once, c and d when a place is given back."""
    env = simpy.Environment()
    limit = ConcurrencyLimit(env, 2)
    seen = entering(env, limit, [request(name) for name in "abcd"])
    env.run(until=0.5)
    assert [one.request_id for one in limit.waiting()] == ["c", "d"]
    leave_at(env, limit, 1.0, 3.0)
    env.run()
    assert seen == [("a", 0.0, True), ("b", 0.0, True), ("c", 1.0, True), ("d", 3.0, True)]
    assert limit.waiting() == []


def test_a_request_whose_timeout_has_come_is_not_sent() -> None:
    """The place given back at 2 s passes over b, which times out then, and goes to c."""
    env = simpy.Environment()
    limit = ConcurrencyLimit(env, 1)
    seen = entering(env, limit, [request("a"), request("b", 2.0), request("c", 2.5)])
    leave_at(env, limit, 2.0)
    env.run()
    assert seen == [("a", 0.0, True), ("b", 2.0, False), ("c", 2.0, True)]


def test_a_request_that_times_out_while_it_waits_leaves_the_queue_then() -> None:
    """b times out at 1 s and takes no place when one is given back at 2 s."""
    env = simpy.Environment()
    limit = ConcurrencyLimit(env, 1)
    seen = entering(env, limit, [request("a"), request("b", 1.0), request("c")])
    env.run(until=1.5)
    assert [one.request_id for one in limit.waiting()] == ["c"]
    leave_at(env, limit, 2.0)
    env.run()
    assert seen == [("a", 0.0, True), ("b", 1.0, False), ("c", 2.0, True)]


def test_a_request_without_time_left_takes_no_place() -> None:
    """A request whose timeout is now is not sent, with places free or not."""
    env = simpy.Environment()
    limit = ConcurrencyLimit(env, 1)
    seen = entering(env, limit, [request("a", 0.0), request("b"), request("c", 0.0)])
    env.run()
    assert seen == [("a", 0.0, False), ("b", 0.0, True), ("c", 0.0, False)]
    assert limit.waiting() == []


def test_places_given_back_while_no_request_waits_stay_free() -> None:
    """After two places were given back, two requests are sent at once and the third waits."""
    env = simpy.Environment()
    limit = ConcurrencyLimit(env, 2)
    entering(env, limit, [request("a"), request("b")])
    leave_at(env, limit, 1.0, 2.0)
    env.run()
    seen = entering(env, limit, [request(name) for name in "cde"])
    env.run()
    assert seen == [("c", 2.0, True), ("d", 2.0, True)]
    assert [one.request_id for one in limit.waiting()] == ["e"]


class SlowServer:
    """Answers after 10 s and notes what never reached it."""

    def __init__(self, env: simpy.Environment) -> None:
        self.env = env
        self.missed: list[tuple[str, Status, float]] = []

    def serve(self, request: Request) -> Generator[Any, Any, Status]:
        """Answer."""
        yield self.env.timeout(10.0)
        return Status.FINISHED

    def never_sent(self, request: Request, status: Status) -> None:
        """Note the request."""
        self.missed.append((request.request_id, status, self.env.now))


def test_a_request_that_times_out_at_its_client_has_timed_out() -> None:
    """b waits at its client behind a until 2 s; its client is told, and the server knows of it."""
    env = simpy.Environment()
    server = SlowServer(env)
    clients = Clients(env, server, {"pool": Rules(max_concurrency=1)})
    asked = [Request("a", 0.0, 1, 1, pool="pool"), Request("b", 0.0, 1, 1, gives_up_s=2.0, pool="pool")]
    ends = [env.process(clients.ask(one)) for one in asked]
    env.run()
    assert [one.value for one in ends] == [Status.FINISHED, Status.TIMED_OUT]
    assert server.missed == [("b", Status.TIMED_OUT, 2.0)]
