"""What clients do: wait for their turn to send, give up, ask again, think, ask the next thing.

Each request, user and session is a SimPy process. What a client sees at the end of a step it reacts to at once, before
new arrivals of the same instant; timeouts come after these.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import simpy
from simpy.events import Event

from simqueue.errors import RunError
from simqueue.request import Request, Status
from simqueue.simulation import clock
from simqueue.simulation.clock import Order
from simqueue.traffic import Rules, Session, SessionGroup

PATIENCE_WITH_REFUSALS = 10_000
"""How often in a row a user may be refused at one instant before the run is given up: it would never end."""

Life = Generator[Event, Any, Status]


class Server(Protocol):
    """Where requests are sent."""

    def serve(self, request: Request) -> Life:
        """Send `request` now and wait until it is finished, refused, or given up at `gives_up_s`."""

    def turned_away(self, request: Request, status: Status) -> None:
        """Record a request that ends now at its client, without having been sent."""


class Gate:
    """At most `limit` requests of one workload at the server; the others wait at the client in order."""

    def __init__(self, env: simpy.Environment, limit: int) -> None:
        self._env = env
        self._free = limit
        self._queue: deque[tuple[Request, Event]] = deque()

    def enter(self, request: Request) -> Generator[Event, Any, bool]:
        """Wait until `request` may be sent; return False if its client has given up before."""
        env = self._env
        if self._free and not _over(request, env.now):
            self._free -= 1
            return True
        if _over(request, env.now):
            return False
        ticket = Event(env)
        place = (request, ticket)
        self._queue.append(place)
        if request.gives_up_s is not None:
            timer = clock.at(env, request.gives_up_s, Order.TIMEOUT)
            timer.callbacks.append(lambda _: self._give_up(place))
        sent: bool = yield ticket
        return sent

    def leave(self) -> None:
        """Let the next one in."""
        while self._queue:
            request, ticket = self._queue.popleft()
            sent = not _over(request, self._env.now)
            ticket.succeed(sent)
            if sent:
                return
        self._free += 1

    def waiting(self) -> list[Request]:
        """Return who waits, in order."""
        return [request for request, _ in self._queue]

    def _give_up(self, place: tuple[Request, Event]) -> None:
        if not place[1].triggered:
            self._queue.remove(place)
            place[1].succeed(False)


class Clients:
    """All clients of one run.

    Parameters
    ----------
    env : simpy.Environment
    server : Server
    rules : mapping of str to Rules
        By `Request.pool`.
    """

    def __init__(self, env: simpy.Environment, server: Server, rules: Mapping[str, Rules]) -> None:
        self._env = env
        self._server = server
        self._rules = rules
        self._gates = {
            pool: Gate(env, found.max_concurrency) for pool, found in rules.items() if found.max_concurrency is not None
        }

    def ask(self, request: Request) -> Life:
        """Live through a request that is wanted now, with all its attempts; return how the last one ended."""
        env = self._env
        rules = self._rules.get(request.pool, _NO_RULES) if request.pool is not None else _NO_RULES
        wanted_s = request.arrival_s if request.wanted_s is None else request.wanted_s
        patience_s = None if request.gives_up_s is None else request.gives_up_s - env.now
        first = request
        while True:
            status = yield from self._attempt(request)
            attempt = request.attempt + 1
            if status is not Status.TIMED_OUT or rules.retry is None or attempt > rules.retry.limit:
                return status
            wait_s = rules.retry.wait_s(first.request_id, attempt)
            if wait_s > 0:
                yield clock.at(env, env.now + wait_s, Order.ARRIVAL)
            request = replace(
                first,
                request_id=f"{first.request_id}~{attempt}",
                arrival_s=env.now,
                wanted_s=wanted_s,
                gives_up_s=None if patience_s is None else env.now + patience_s,
                attempt=attempt,
            )

    def _attempt(self, request: Request) -> Life:
        env = self._env
        gate = self._gates.get(request.pool) if request.pool is not None else None
        if gate is None:
            return (yield from self._server.serve(request))
        sent = yield from gate.enter(request)
        if env.now > request.arrival_s:
            wanted_s = request.arrival_s if request.wanted_s is None else request.wanted_s
            request = replace(request, arrival_s=env.now, wanted_s=wanted_s)
        if not sent:
            self._server.turned_away(request, Status.TIMED_OUT)
            return Status.TIMED_OUT
        status = yield from self._server.serve(request)
        gate.leave()
        return status

    def start(self, group: SessionGroup) -> None:
        """Let the people of a group come, each at its time."""
        self._env.process(_Asking(self._env, self, group).everybody())

    def waiting(self) -> bool:
        """Return whether anybody waits at its client for its turn to send."""
        return any(gate.waiting() for gate in self._gates.values())

    def never_sent(self, now_s: float) -> list[Request]:
        """Return the requests that still wait at their clients when the run ends at `now_s`."""
        return [
            replace(
                request, arrival_s=now_s, wanted_s=request.arrival_s if request.wanted_s is None else request.wanted_s
            )
            for gate in self._gates.values()
            for request in gate.waiting()
        ]


_NO_RULES = Rules()


class _Asking:
    """A group at work."""

    def __init__(self, env: simpy.Environment, clients: Clients, group: SessionGroup) -> None:
        self._env, self._clients, self._group = env, clients, group
        self._asked = 0

    def everybody(self) -> Generator[Event, Any, None]:
        """Start each session at its time."""
        env = self._env
        for session in self._group.sessions:
            if session.start_s > env.now or env.now == 0:
                yield clock.at(env, session.start_s, Order.ARRIVAL)
            env.process(self._person(session))

    def _person(self, session: Session) -> Generator[Event, Any, None]:
        env, refused = self._env, 0
        for turn in session.turns:
            if turn.think_s > 0:
                refused = 0
                yield clock.at(env, env.now + turn.think_s, Order.ARRIVAL)
            if not self._may_ask():
                return
            self._asked += 1
            request = moved(turn.request, env.now)
            if self._group.stream_offset:
                request = request.with_streams_moved(self._group.stream_offset)
            status = yield from self._clients.ask(request)
            if status is Status.FINISHED:
                refused = 0
                continue
            if self._group.ends_on_failure:
                return
            refused += status is Status.REJECTED
            if refused > PATIENCE_WITH_REFUSALS:
                raise RunError(
                    f"{turn.request.client}: {refused} requests in a row are refused at {env.now:g} s; with a think "
                    "time of 0 this would never end"
                )

    def _may_ask(self) -> bool:
        group = self._group
        if group.until_s is not None and self._env.now >= group.until_s:
            return False
        return group.max_requests is None or self._asked < group.max_requests


def moved(request: Request, now_s: float) -> Request:
    """Return a request that was described as if asked at time 0, asked at `now_s`."""
    return replace(
        request,
        arrival_s=now_s,
        deadline_s=None if request.deadline_s is None else request.deadline_s + now_s,
        gives_up_s=None if request.gives_up_s is None else request.gives_up_s + now_s,
    )


def _over(request: Request, now_s: float) -> bool:
    """Whether its client's patience is over: it is not sent any more."""
    return request.gives_up_s is not None and request.gives_up_s <= now_s
