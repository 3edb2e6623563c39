"""A fleet: several replicas behind a router, as one server that clients see.

A request that arrives is a `Trip`: it goes to the router, to a replica, and if that replica fails to another one. Its
present stay is a `Job`; the client sees one request. It is always in one of these places:

=============  ======================================================================================================
at the router  in its queue for work (`_desk`), waiting for a choice (`_held`), or for the next attempt
on its way     sent to a replica that it has not reached (with a latency of the router)
at a replica   as with one replica: in its front end, queue or batch
=============  ======================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import simpy

from simqueue.errors import RunError
from simqueue.frontend import FrontEnd, FrontEndTimes
from simqueue.request import QUEUE_FULL, Job, Request, Status, Trip
from simqueue.routing.base import answer
from simqueue.simulation import clock
from simqueue.simulation.clients import Life
from simqueue.simulation.clock import Order
from simqueue.simulation.fleet_rules import FleetRules
from simqueue.simulation.member import Member, State
from simqueue.simulation.request_log import RequestLog
from simqueue.simulation.requestrows import FrontEndOf
from simqueue.simulation.server import OneServer
from simqueue.simulation.stays import follow, whole

ARRIVAL, FINISHED, REJECTED = Order.ARRIVAL, Status.FINISHED, Status.REJECTED
NOT_READY = "no replica is ready"


class Fleet(OneServer):
    """Serves requests at several replicas.

    Parameters
    ----------
    env : simpy.Environment
    log : RequestLog
    rules : FleetRules
    members : sequence of Member
        All replicas that there ever are, by number.
    front_end : callable or None
        As for `OneServer`.
    on_end : callable or None
        As for `OneServer`.

    Attributes
    ----------
    views : list of Member
        The replicas that the router knows, in its own order.
    stays : list of (Trip, Job, Member, end in seconds)
        Stays that failed.
    on_left, on_attempt : callable
        Told of each replica that a request has left, and of each attempt and whether it went well.
    """

    def __init__(
        self,
        env: simpy.Environment,
        log: RequestLog,
        rules: FleetRules,
        members: Sequence[Member],
        front_end: FrontEndOf | None,
        on_end: Callable[[int], None] | None,
    ) -> None:
        super().__init__(env, log, front_end, on_end)
        self.members = members
        self.views: list[Member] = []
        self.stays: list[tuple[Trip, Job, Member, float]] = []
        self.on_left: Callable[[Member], None] = _ignored
        self.on_attempt: Callable[[Member, bool], None] = _ignored
        self._router = rules.router
        self._latency_s = rules.router_latency_s
        self._mode = rules.in_flight
        self._recovery = rules.recovery
        self._random = rules.random("retries")
        self._desk = FrontEnd(FrontEndTimes(request_s=rules.router_request_s)) if rules.router_request_s else None
        self._order = rules.order or range(len(members))
        self._healthy = 0
        """How many of the views are healthy."""
        self._held: dict[Trip, None] = {}
        """Requests that wait for the router's choice, in order of arrival."""
        self._asks_again = False
        self._sent = 0
        if self._router.wants_first_tokens:
            for member in members:
                member.log.on_first_token = self._first_token

    # -- the way of a request ------------------------------------------------------------------------------------

    def serve(self, request: Request) -> Life:
        """Send one request to the fleet and wait until it ends; return how it ended."""
        if not self.arriving and len(self.members) > 1:
            # its client reacts to something; all steps of this instant end before the next choice
            yield clock.at(self.env, clock.now(self.env), ARRIVAL)
        return (yield from super().serve(request))

    def _refusal(self, job: Job, now_s: float) -> str | None:
        """Return why a new request is rejected at once, or None; without a wait at the router it is chosen for now."""
        trip = job.trip = Trip(job)
        if self._desk is not None:
            return None
        reason = self._choose(trip, now_s)
        member = _member(trip)
        if reason is None and member is not None and not self._latency_s and member.site is not None:
            reason = member.site.rejection(job.request)
            if reason is not None and self._can_go_elsewhere(reason):
                return None
            if reason is not None:
                self._leaves(trip, served=False)
        return reason

    def _send(self, job: Job, now_s: float) -> None:
        """Send a new request on its way."""
        trip = cast("Trip", job.trip)
        if self._desk is not None:
            passed_s = self._desk.passed_s(now_s, job.request.prompt_tokens, 0)
            passed = clock.at(self.env, passed_s, ARRIVAL)
            passed.callbacks.append(lambda _: self._place(trip))
        elif trip.member is not None:
            self._dispatch(trip)
        elif trip not in self._held:
            self._attempt_failed(trip, NOT_READY)

    def _place(self, trip: Trip) -> None:
        """Choose a replica for a request that is at the router, and send it there."""
        if trip.job not in self._done:
            return
        reason = self._choose(trip, clock.now(self.env))
        if reason is not None:
            self._reject(trip, reason)
        elif trip.member is not None:
            self._dispatch(trip)
        elif trip not in self._held:
            self._attempt_failed(trip, NOT_READY)

    def _choose(self, trip: Trip, now_s: float) -> str | None:
        """Ask the router; return why the request is refused, or None.

        Then it has a replica, or is held at the router. It has neither if no replica is ready.
        """
        views = self.views
        if self._held and trip not in self._held:
            self._held[trip] = None  # requests do not overtake each other
            return None
        if not self._healthy:
            if self._router.holds:
                self._held[trip] = None
            return None
        request = trip.job.request
        number, reason, refused = answer(self._router, request, views, now_s)
        trip.reason = reason
        if refused:
            return f"refused by the router: {reason}"
        if number is None:
            self._held[trip] = None
            return None
        self._held.pop(trip, None)
        self.last_event_s = now_s
        trip.sent += 1
        self._sent += 1
        member = self._chosen(number, request)
        trip.member = trip.last_member = member
        if trip.routed_s is None:
            trip.routed_s = now_s
        member.took(trip.job)
        self._router.dispatched(request, member, now_s)
        return None

    def _chosen(self, number: object, request: Request) -> Member:
        """Return the replica that the router chose; RunError if it is none that it can choose."""
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(self.members):
            member = self.members[number]
            if member.healthy:
                return member
        able = ", ".join(str(view.number) for view in self.views if view.healthy)
        chosen = f"{type(self._router).__name__}: chooses {number!r} for '{request.request_id}'"
        raise RunError(f"{chosen} at {clock.now(self.env):g} s: must be a healthy replica, one of {able}")

    def _dispatch(self, trip: Trip) -> None:
        """Let a request go to the replica that was chosen."""
        if not self._latency_s:
            self._reach(trip, trip.job)
            return
        job = trip.job
        reached = clock.at(self.env, clock.now(self.env) + self._latency_s, ARRIVAL)
        reached.callbacks.append(lambda _: self._reach(trip, job))

    def _reach(self, trip: Trip, job: Job) -> None:
        """Hand a request to its replica, unless its client has gone on the way."""
        member = _member(trip)
        if job not in self._done or trip.job is not job or member is None:
            return
        site = member.site
        if site is None:
            self._leaves(trip, served=False)
            self.on_attempt(member, False)
            self._attempt_failed(trip, f"{member.name} is down")
            return
        reason = site.rejection(job.request)
        if reason is None:
            trip.reached, trip.reached_s = True, clock.now(self.env)
            site.send(job, clock.now(self.env))
        else:
            self._turned_away(trip, reason)

    def _turned_away(self, trip: Trip, reason: str) -> None:
        """Deal with a request that its replica does not take."""
        self._leaves(trip, served=False)
        if self._can_go_elsewhere(reason):
            self._attempt_failed(trip, reason)
        else:
            self._reject(trip, reason)  # as with one replica: none had it

    def _can_go_elsewhere(self, reason: str) -> bool:
        return self._recovery.retries_refused and reason.startswith(QUEUE_FULL)

    # -- further attempts ----------------------------------------------------------------------------------------

    def fail(self, member: Member) -> None:
        """Lose what a replica has, or send it again elsewhere. It no longer runs after that."""
        now_s = clock.now(self.env)
        trips = [cast("Trip", job.trip) for job in member.jobs]
        trips = [trip for trip in trips if trip.reached]
        member.close(now_s, [trip.job for trip in trips])
        for trip in trips:
            job = trip.job
            self._leaves(trip, served=False)
            self.stays.append((trip, job, member, now_s))
            self.on_attempt(member, False)
            trip.lost_at = member.number
            reason = f"lost: {member.name} {'failed' if member.state is State.FAILED else 'went at its deadline'}"
            if job.tokens_emitted >= job.output_tokens:
                self._end_answered(trip, job, member)
            elif self._mode == "lose" or (self._mode == "resend" and job.tokens_emitted):
                self._reject(trip, reason, member)
            else:
                self._follow(trip, job)
                self._attempt_failed(trip, reason)

    def _end_answered(self, trip: Trip, job: Job, member: Member) -> None:
        """End a request whose tokens had all been made when its replica failed.

        A client that will give up before it sees the first one still waits.
        """
        if not self.log.unseen(job):
            self.log.left(job, clock.now(self.env), FINISHED, replica=member.number)
            super().ended(job, FINISHED)

    def _follow(self, trip: Trip, job: Job) -> None:
        """Let another stay follow one that failed."""
        successor = follow(trip, job, keeps_tokens=self._mode == "resume")
        self.log.goes_on(job, successor)
        self._done[successor] = self._done.pop(job)

    def _attempt_failed(self, trip: Trip, reason: str) -> None:
        """Try again after a wait, or give up."""
        trip.attempts += 1
        if trip.attempts > self._recovery.retries:
            self._reject(trip, reason)
            return
        wait_s = self._recovery.wait_s(trip.attempts, self._random)
        again = clock.at(self.env, clock.now(self.env) + wait_s, ARRIVAL)
        again.callbacks.append(lambda _: self._place(trip))

    def _reject(self, trip: Trip, reason: str, member: Member | None = None) -> None:
        """End a request with an error, at the router or at a replica."""
        self._held.pop(trip, None)
        number = trip.lost_at if member is None else member.number
        self.log.left(trip.job, clock.now(self.env), REJECTED, reason, replica=number)
        super().ended(trip.job, REJECTED)

    # -- how requests leave a replica ----------------------------------------------------------------------------

    def ended(self, job: Job, status: Status) -> None:
        """Tell router and client of a request that is served or ended with an error."""
        trip = cast("Trip", job.trip)
        member = _member(trip)
        self._leaves(trip, served=status is FINISHED)
        if member is not None:
            self.on_attempt(member, True)
        super().ended(job, status)

    def refused(self, job: Job, reason: str) -> None:
        """Deal with a request that a full queue refuses behind a front end."""
        self._turned_away(cast("Trip", job.trip), reason)

    def _leaves(self, trip: Trip, *, served: bool) -> None:
        """Tell the router that a request has left its replica."""
        member = _member(trip)
        if member is None:
            return
        trip.member, trip.reached = None, False
        job = trip.job
        member.left(job)
        now_s = clock.now(self.env)
        self._router.finished(job.request, member, now_s, tokens=job.tokens_emitted, served=served)
        self.ask_again()
        self.on_left(member)

    def _cancel(self, job: Job) -> list[Job]:
        """Cancel a request wherever it is."""
        trip = cast("Trip", job.trip)
        member, now_s = _member(trip), clock.now(self.env)
        if member is None or member.site is None or not trip.reached:
            self._held.pop(trip, None)
            self.log.left(job, now_s, Status.TIMED_OUT, replica=trip.lost_at)
            self._leaves(trip, served=False)
            return []
        served = member.site.cancel(job)
        self._leaves(trip, served=False)
        return served

    def _present(self, job: Job) -> Job:
        return cast("Trip", job.trip).job

    def _first_token_s(self, job: Job) -> float | None:
        return whole(self._present(job)).first_token_s

    @property
    def progress(self) -> int:
        """A number that grows whenever a request comes, is sent to a replica or ends."""
        return self._arrived + self.log.ended_count + self._sent

    # -- the replicas --------------------------------------------------------------------------------------------

    def know(self, member: Member, *, healthy: bool) -> None:
        """Let the router know that a replica is up or down."""
        if member.healthy != healthy:
            member.healthy = healthy
            self._healthy += 1 if healthy else -1
            self.ask_again()

    def join(self, member: Member) -> None:
        """Put a replica, or one that is back, on the router's list."""
        if member not in self.views:
            known = {one.number for one in self.views} | {member.number}
            self.views = [self.members[number] for number in self._order if number in known]
        self._router.joined(member, clock.now(self.env))

    def drop(self, member: Member) -> None:
        """Take a replica off the router's list for good."""
        self.know(member, healthy=False)
        self.views = [one for one in self.views if one is not member]
        self._router.left(member, clock.now(self.env))

    # -- what the router learns ----------------------------------------------------------------------------------

    def _first_token(self, job: Job) -> None:
        member = _member(cast("Trip", job.trip))
        if member is not None:
            self._router.first_token(job.request, member, clock.now(self.env))
            self.ask_again()

    @property
    def holds(self) -> bool:
        """Whether requests wait for the router's choice."""
        return bool(self._held)

    def ask_again(self) -> None:
        """Ask the router again for the requests that it holds, when everything else of this instant is known."""
        if self._held and not self._asks_again:
            self._asks_again = True
            again = clock.at(self.env, clock.now(self.env), ARRIVAL)
            again.callbacks.append(lambda _: self._place_held())

    def _place_held(self) -> None:
        self._asks_again = False
        while self._held:
            first = next(iter(self._held))
            self._place(first)
            if first in self._held:
                return

    def close(self, end_s: float) -> None:
        """Log the end of the run for all requests that are inside."""
        for member in self.members:
            if member.site is not None:
                member.site.close(end_s)
        for job in list(self.log.inside):
            trip = cast("Trip", job.trip)
            here = _member(trip)
            if here is None:
                self.log.left(job, end_s, Status.UNFINISHED, replica=trip.lost_at)
            else:
                here.log.unfinished(job, end_s)


def _member(trip: Trip) -> Member | None:
    return cast("Member | None", trip.member)


def _ignored(*_: object) -> None:
    """Do nothing with what is told."""
