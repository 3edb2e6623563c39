"""One run of one policy: requests, the scheduler and the GPU as SimPy processes and resources."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import simpy
from simpy.events import Event

from simqueue.request import Job, Request, Status
from simqueue.schedulers.base import Policy
from simqueue.simulation import clock
from simqueue.simulation.books import prefix_statistics
from simqueue.simulation.clients import Clients
from simqueue.simulation.clock import Order
from simqueue.simulation.columns import Reordered, Sinks
from simqueue.simulation.invariants import verify
from simqueue.simulation.options import NEVER_S, Observer, RunOptions
from simqueue.simulation.recording import Recording
from simqueue.simulation.replica_log import ReplicaLog
from simqueue.simulation.request_log import RequestLog
from simqueue.simulation.server import OneServer
from simqueue.simulation.site import Site
from simqueue.steptime.base import StepTime
from simqueue.traffic import Traffic

ARRIVAL = Order.ARRIVAL  # members of an enumeration take long to look up in Python 3.11
NAMED = 10
"""How many requests a warning names before it only counts."""


class Play:
    """Traffic that is played through a server.

    Parameters
    ----------
    env : simpy.Environment
    requests : Traffic, or iterable of Request in order of arrival
    server : OneServer
    log : RequestLog
    options : RunOptions
    """

    def __init__(
        self,
        env: simpy.Environment,
        requests: Traffic | Iterable[Request],
        server: OneServer,
        log: RequestLog,
        options: RunOptions,
    ) -> None:
        self._env = env
        self._server = server
        self._log = log
        self._horizon_s = options.horizon_s
        traffic = requests if isinstance(requests, Traffic) else Traffic(list(requests))
        self._clients = Clients(env, server, traffic.rules)
        env.process(self._source(traffic.requests))
        for group in traffic.session_groups:
            self._clients.start(group)

    def to_end(self) -> float:
        """Run to the horizon, or until nothing is left to do; return when the run ended."""
        horizon_s = self._horizon_s
        with _without_garbage_collection():
            if horizon_s < NEVER_S:
                self._env.run(until=clock.at(self._env, horizon_s, Order.HORIZON))
            else:
                self._env.run()
        unfinished = self._log.inside or self._clients.waiting()
        end_s = horizon_s if horizon_s < NEVER_S and unfinished else self._server.last_event_s
        return max(end_s, self._log.last_end_s)

    def send_nothing_more(self, end_s: float) -> None:
        """Log the requests that are still waiting at their clients when the run ends."""
        for request in self._clients.never_sent(end_s):
            self._server.never_sent(request, Status.UNFINISHED)

    def _source(self, requests: Iterable[Request]) -> Generator[Event, Any, None]:
        """Start the process of each request when it arrives."""
        env, server = self._env, self._server
        first = True
        for request in requests:
            if request.arrival_s > clock.now(env) or first:
                yield clock.at(env, request.arrival_s, ARRIVAL)
                first = False
            server.arriving = True
            clock.begin(env, server.serve(request) if request.pool is None else self._clients.ask(request))
            server.arriving = False


class Simulation:
    """Plays requests through one replica.

    Parameters
    ----------
    requests : Traffic, or iterable of Request in order of arrival
    policy : Policy
        A new one; the run changes it.
    step_time : StepTime
    options : RunOptions
    on_end : callable, optional
        Called with the number of requests that have ended, each time one ends.
    observer : callable, optional
        Called with each step that ends, if steps are not folded.
    sinks : callable, optional
        Where the tables go during the run; by default they are kept in memory.
    """

    def __init__(
        self,
        requests: Traffic | Iterable[Request],
        policy: Policy,
        step_time: StepTime,
        options: RunOptions,
        on_end: Callable[[int], None] | None = None,
        observer: Observer | None = None,
        sinks: Sinks | None = None,
    ) -> None:
        self.env = simpy.Environment()
        self.policy = policy
        self.options = options
        self._step_time = step_time
        times = options.front_end
        front_end = None if times is None else lambda _: times
        self.requests = RequestLog(front_end)
        self.log = ReplicaLog(self.requests, counts_slots=policy.counts_idle_slots, policy=type(policy).__name__)
        if sinks is not None:
            self.requests.stream_to(sinks)
            self.log.stream_to(sinks("steps"), sinks("gaps"))
        self._streamed = sinks is not None
        server = OneServer(self.env, self.requests, front_end, on_end)
        self._site = Site(self.env, policy, step_time, self.log, self.requests, options, server, observer)
        server.stand_before(self._site)
        self.replica = self._site.replica
        self._play = Play(self.env, requests, server, self.requests, options)

    def run(self) -> Recording:
        """Run to the horizon, or until nothing is left to do.

        Returns
        -------
        Recording

        Raises
        ------
        RunError
            If an invariant is broken (with ``options.check``).
        """
        end_s = self._play.to_end()
        warnings = [
            *stuck_warnings(self.requests, self.options, [self.policy]),
            *not_folded(self.replica.undeclared),
            *self.policy.remarks(),
        ]
        self._site.close(end_s)
        for job in list(self.requests.inside):
            self.log.unfinished(job, end_s)
        self._play.send_nothing_more(end_s)
        recording = self._recording(end_s, warnings)
        if self.options.check:
            shortest_s = 0.0 if self.options.ticks_per_s else self._step_time.shortest_s()
            verify(recording, self.policy, self.requests, shortest_s)
        return recording

    def _recording(self, end_s: float, warnings: Sequence[str]) -> Recording:
        """Return everything as columns, requests in order of arrival."""
        kv, log, began_s = self.policy.kv, self.log, self.replica.step_began_s()
        gaps = log.tokens.gaps()
        requests = Reordered(self.requests.rows.arrays(), by="index")
        return Recording(
            requests=requests if self._streamed else dict(requests),
            steps=log.rows.arrays(),
            gaps=gaps,
            blocks_total=kv.total,
            blocks_peak=kv.peak_used,
            max_concurrent=self.requests.max_concurrent,
            slot_steps=log.slot_steps,
            idle_slot_steps=log.idle_slot_steps,
            end_s=end_s,
            warnings=tuple(warnings),
            front_end=self.options.front_end,
            special=self.requests.rows.special,
            unfinished_step_s=None if began_s is None else end_s - began_s,
            prefix=prefix_statistics(kv),
        )


def not_folded(rules: Sequence[str]) -> list[str]:
    """Return a warning if undeclared rules of a policy kept steps from being folded."""
    if not rules:
        return []
    owners = dict.fromkeys(rule.split(".")[0] for rule in rules)
    named = {owner: [rule.split(".")[1] for rule in rules if rule.startswith(f"{owner}.")] for owner in owners}
    declarations = ", ".join(f"steady_rules = {tuple(names)!r} in {owner}" for owner, names in named.items())
    return [
        f"each step was planned separately, which is slower: {', '.join(rules)} not declared as steady; if the "
        f"answers stay the same while equal steps repeat, declare it: {declarations}"
    ]


def stuck_warnings(log: RequestLog, options: RunOptions, policies: Iterable[Policy]) -> list[str]:
    """Return a warning if the run ended though requests are inside."""
    stuck: list[Job] = list(log.inside)
    if not stuck or options.horizon_s < NEVER_S:
        return []
    names = ", ".join(job.request.request_id for job in stuck[:NAMED])
    more = f" and {len(stuck) - NAMED} more" if len(stuck) > NAMED else ""
    many, verb = ("request", "is") if len(stuck) == 1 else ("requests", "are")
    reasons = dict.fromkeys(filter(None, (policy.waits_for() for policy in policies)))
    told = "".join(f"; {reason}" for reason in reasons)
    return [f"{len(stuck)} {many} can never be completed and {verb} unfinished: {names}{more}{told}"]


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector: a run makes no reference cycles, and looking for them costs a third of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
