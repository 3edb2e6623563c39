"""What clients do: keep a concurrency limit, time out, retry, think, send the next turn of a session.

Each request, user and session is a SimPy process. A client reacts at once to what it sees at the end of a step, before
the arrivals of the same instant. Timeouts come after the arrivals.
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

MOST_REJECTIONS_IN_A_ROW = 10_000
"""Rejections of one session in a row, at one instant, after which the run fails: it would never end."""

Life = Generator[Event, Any, Status]


class Server(Protocol):
    """The place that requests are sent to."""

    def serve(self, request: Request) -> Life:
        """Send `request` now and wait until it is finished, rejected, or timed out at `gives_up_s`."""

    def never_sent(self, request: Request, status: Status) -> None:
        """Record a request that ends now at its client and was never sent."""


class ConcurrencyLimit:
    """At most `limit` requests of one workload at the server; others wait at the client, in order."""

    def __init__(self, env: simpy.Environment, limit: int) -> None:
        self._env = env
        self._free = limit
        self._queue: deque[tuple[Request, Event]] = deque()

    def enter(self, request: Request) -> Generator[Event, Any, bool]:
        """Wait until `request` can be sent; return False if it timed out before."""
        env = self._env
        if self._free and not _timed_out(request, env.now):
            self._free -= 1
            return True
        if _timed_out(request, env.now):
            return False
        turn = Event(env)
        entry = (request, turn)
        self._queue.append(entry)
        if request.gives_up_s is not None:
            timer = clock.at(env, request.gives_up_s, Order.TIMEOUT)
            timer.callbacks.append(lambda _: self._time_out(entry))
        sent: bool = yield turn
        return sent

    def leave(self) -> None:
        """Send the next waiting request."""
        while self._queue:
            request, turn = self._queue.popleft()
            sent = not _timed_out(request, self._env.now)
            turn.succeed(sent)
            if sent:
                return
        self._free += 1

    def waiting(self) -> list[Request]:
        """Return the waiting requests, in order."""
        return [request for request, _ in self._queue]

    def _time_out(self, entry: tuple[Request, Event]) -> None:
        if not entry[1].triggered:
            self._queue.remove(entry)
            entry[1].succeed(False)


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
        self._limits = {
            pool: ConcurrencyLimit(env, found.max_concurrency)
            for pool, found in rules.items()
            if found.max_concurrency is not None
        }

    def ask(self, request: Request) -> Life:
        """Play a request that is wanted now, with all its retries; return how the last attempt ended."""
        env = self._env
        rules = self._rules.get(request.pool, _NO_RULES) if request.pool is not None else _NO_RULES
        wanted_s = request.arrival_s if request.wanted_s is None else request.wanted_s
        timeout_s = None if request.gives_up_s is None else request.gives_up_s - env.now
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
                gives_up_s=None if timeout_s is None else env.now + timeout_s,
                attempt=attempt,
            )

    def _attempt(self, request: Request) -> Life:
        env = self._env
        limit = self._limits.get(request.pool) if request.pool is not None else None
        if limit is None:
            return (yield from self._server.serve(request))
        sent = yield from limit.enter(request)
        if env.now > request.arrival_s:
            wanted_s = request.arrival_s if request.wanted_s is None else request.wanted_s
            request = replace(request, arrival_s=env.now, wanted_s=wanted_s)
        if not sent:
            self._server.never_sent(request, Status.TIMED_OUT)
            return Status.TIMED_OUT
        status = yield from self._server.serve(request)
        limit.leave()
        return status

    def start(self, group: SessionGroup) -> None:
        """Start the sessions of a group, each at its time."""
        self._env.process(_Sessions(self._env, self, group).start_all())

    def waiting(self) -> bool:
        """Return whether a request waits at its client because of a concurrency limit."""
        return any(limit.waiting() for limit in self._limits.values())

    def never_sent(self, now_s: float) -> list[Request]:
        """Return the requests that are still waiting at their clients when the run ends at `now_s`."""
        return [
            replace(
                request, arrival_s=now_s, wanted_s=request.arrival_s if request.wanted_s is None else request.wanted_s
            )
            for limit in self._limits.values()
            for request in limit.waiting()
        ]


_NO_RULES = Rules()


class _Sessions:
    """Plays the sessions of one group."""

    def __init__(self, env: simpy.Environment, clients: Clients, group: SessionGroup) -> None:
        self._env, self._clients, self._group = env, clients, group
        self._sent = 0

    def start_all(self) -> Generator[Event, Any, None]:
        """Start each session at its time."""
        env = self._env
        for session in self._group.sessions:
            if session.start_s > env.now or env.now == 0:
                yield clock.at(env, session.start_s, Order.ARRIVAL)
            env.process(self._play(session))

    def _play(self, session: Session) -> Generator[Event, Any, None]:
        env, rejected = self._env, 0
        for turn in session.turns:
            if turn.think_s > 0:
                rejected = 0
                yield clock.at(env, env.now + turn.think_s, Order.ARRIVAL)
            if not self._may_send():
                return
            self._sent += 1
            request = moved(turn.request, env.now)
            if self._group.stream_offset:
                request = request.with_streams_moved(self._group.stream_offset)
            status = yield from self._clients.ask(request)
            if status is Status.FINISHED:
                rejected = 0
                continue
            if self._group.ends_on_failure:
                return
            rejected += status is Status.REJECTED
            if rejected > MOST_REJECTIONS_IN_A_ROW:
                raise RunError(
                    f"{turn.request.client}: {rejected} requests in a row are rejected at {env.now:g} s; with a think "
                    "time of 0 this would never end"
                )

    def _may_send(self) -> bool:
        group = self._group
        if group.until_s is not None and self._env.now >= group.until_s:
            return False
        return group.max_requests is None or self._sent < group.max_requests


def moved(request: Request, now_s: float) -> Request:
    """Return a request whose times count from 0, sent at `now_s`."""
    return replace(
        request,
        arrival_s=now_s,
        deadline_s=None if request.deadline_s is None else request.deadline_s + now_s,
        gives_up_s=None if request.gives_up_s is None else request.gives_up_s + now_s,
    )


def _timed_out(request: Request, now_s: float) -> bool:
    """Whether the timeout of a request has passed, so that it is not sent any more."""
    return request.gives_up_s is not None and request.gives_up_s <= now_s
