"""One run of a fleet: several replicas behind a router."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import simpy

from simqueue.frontend import FrontEndTimes
from simqueue.request import Job, Request
from simqueue.schedulers.base import Policy
from simqueue.simulation.books import lives_of, prefix_statistics, ready_s, stays_of, sum_or_none, sum_prefix
from simqueue.simulation.columns import ROWS_AT_ONCE, STREAMED_ROWS, Reordered, SharedSink, Sinks
from simqueue.simulation.fleet import Fleet
from simqueue.simulation.fleet_rules import FleetRules, Part
from simqueue.simulation.invariants import verify_fleet
from simqueue.simulation.lives import Lives
from simqueue.simulation.member import Member
from simqueue.simulation.options import RunOptions
from simqueue.simulation.recording import Column, FleetRecord, KeptTable, Recording, ReplicaFacts, Table
from simqueue.simulation.replica_log import ReplicaLog
from simqueue.simulation.request_log import RequestLog
from simqueue.simulation.signals import look_from_time_to_time
from simqueue.simulation.simulate import Play, not_folded, stuck_warnings
from simqueue.simulation.site import Site
from simqueue.traffic import Traffic


class FleetSimulation:
    """Plays requests through a fleet.

    Parameters
    ----------
    requests : Traffic, or iterable of Request in order of arrival
    parts : sequence of Part
        The replicas, by number.
    rules : FleetRules
    options : RunOptions
    on_end : callable, optional
        Called with the number of requests that have ended, each time one ends.
    sinks : callable, optional
        Where the tables go during the run; by default they are kept in memory. Steps of all replicas are then one table
        in the order in which they were written: in order of time for each replica.
    """

    def __init__(
        self,
        requests: Traffic | Iterable[Request],
        parts: Sequence[Part],
        rules: FleetRules,
        options: RunOptions,
        on_end: Callable[[int], None] | None = None,
        sinks: Sinks | None = None,
    ) -> None:
        self.env = simpy.Environment()
        self.options = options
        front_end = _front_end if any(part.front_end for part in parts) else None
        self.requests = RequestLog(front_end, routed=True)
        self._parts, self._rules = parts, rules
        self.members = [self._member(number, part) for number, part in enumerate(parts)]
        self.fleet = Fleet(self.env, self.requests, rules, self.members, front_end, on_end)
        self._streamed = sinks is not None
        if sinks is not None:
            self._stream_to(sinks)
        look_from_time_to_time(self.env, self.members, rules.ages, rules.router.reads, self.fleet)
        self._lives = Lives(self.env, self.fleet, rules)
        self._play = Play(self.env, requests, self.fleet, self.requests, options)

    def _member(self, number: int, part: Part) -> Member:
        policy = part.make_policy()
        name = type(policy).__name__
        log = ReplicaLog(self.requests, counts_slots=policy.counts_idle_slots, policy=name, number=number)
        return Member(self.env, number, part, log, partial(self._site, part, log))

    def _site(self, part: Part, log: ReplicaLog, policy: Policy) -> Site:
        options = replace(self.options, front_end=part.front_end)
        return Site(self.env, policy, part.step_time, log, self.requests, options, self.fleet)

    def _stream_to(self, sinks: Sinks) -> None:
        self.requests.stream_to(sinks)
        steps, gaps = (SharedSink(sinks(name), len(self.members)) for name in ("steps", "gaps"))
        rows = max(ROWS_AT_ONCE, STREAMED_ROWS // len(self.members))
        for member in self.members:
            member.log.stream_to(steps.writer(replica=member.number), gaps.writer(), rows)

    def run(self) -> Recording:
        """Run to the horizon, or until nothing is left to do.

        Returns
        -------
        Recording
            With a `FleetRecord`.

        Raises
        ------
        RunError
            If an invariant is broken (with ``options.check``).
        """
        end_s = self._play.to_end()
        policies = [policy for member in self.members for policy in member.policies]
        running = [member.site.replica for member in self.members if member.site is not None]
        undeclared = dict.fromkeys(rule for replica in running for rule in replica.undeclared)
        warnings = [
            *stuck_warnings(self.requests, self.options, policies),
            *not_folded(list(undeclared)),
            *dict.fromkeys(remark for policy in policies for remark in policy.remarks()),
        ]
        self.fleet.close(end_s)
        self._play.send_nothing_more(end_s)
        recording = self._recording(end_s, warnings)
        if self.options.check:
            shortest_s = [0.0 if self.options.ticks_per_s else part.step_time.shortest_s() for part in self._parts]
            present = [None if member.site is None else member.site.policy for member in self.members]
            may_stay = any(policy.keeps_finished for policy in policies)
            verify_fleet(recording, present, self.requests, shortest_s, may_stay=may_stay)
        return recording

    def _recording(self, end_s: float, warnings: Sequence[str]) -> Recording:
        """Return everything as columns: requests in order of arrival, steps replica after replica."""
        gaps = self._together([member.log.tokens.gaps() for member in self.members])
        steps = self._together([self._numbered(member) for member in self.members])
        requests = Reordered(self.requests.rows.arrays(), by="index")
        lives = lives_of(self._lives.rows, end_s)
        facts = tuple(self._facts(member, lives, end_s) for member in self.members)
        record = FleetRecord(
            replicas=facts,
            router=type(self._rules.router).__name__,
            lives=lives,
            stays=stays_of(self.fleet.stays),
        )
        return Recording(
            requests=requests if self._streamed else dict(requests),
            steps=steps,
            gaps=gaps,
            blocks_total=sum(one.blocks_total for one in facts),
            blocks_peak=sum(one.blocks_peak for one in facts),
            max_concurrent=self.requests.max_concurrent,
            slot_steps=sum_or_none(one.slot_steps for one in facts),
            idle_slot_steps=sum_or_none(one.idle_slot_steps for one in facts),
            end_s=end_s,
            warnings=tuple(warnings),
            front_end=next((part.front_end for part in self._parts if part.front_end is not None), None),
            special=self.requests.rows.special,
            unfinished_step_s=sum_or_none(one.lost_step_s for one in facts),
            prefix=sum_prefix(one.prefix for one in facts),
            fleet=record,
        )

    def _facts(self, member: Member, lives: Mapping[str, Column], end_s: float) -> ReplicaFacts:
        began_s = None if member.site is None else member.site.replica.step_began_s()
        lost_s = [*member.lost_steps_s, *([] if began_s is None else [end_s - began_s])]
        kvs = [policy.kv for policy in member.policies]
        return ReplicaFacts(
            name=member.name,
            group=member.group,
            front_end=member.front_end,
            blocks_total=member.kv_tokens // member.block_size,
            blocks_peak=max((kv.peak_used for kv in kvs), default=0),
            ready_s=ready_s(lives, member.number, end_s),
            lost_step_s=sum(lost_s) if lost_s else None,
            slot_steps=member.log.slot_steps,
            idle_slot_steps=member.log.idle_slot_steps,
            prefix=sum_prefix(map(prefix_statistics, kvs)),
        )

    def _numbered(self, member: Member) -> Table:
        """Return the steps of a replica with its number."""
        steps = member.log.rows.arrays()
        if self._streamed:
            return steps
        return KeptTable({"replica": np.full(len(steps["start_s"]), member.number, dtype=np.int64), **steps})

    def _together(self, tables: Sequence[Table]) -> Table:
        """Return tables with the same columns as one."""
        if self._streamed:
            return tables[-1]
        return KeptTable({name: np.concatenate([table[name] for table in tables]) for name in tables[0]})


def _front_end(job: Job) -> FrontEndTimes | None:
    """Return the front end of the replica where the first token of a request was made, or where it is."""
    trip = job.trip
    member = None if trip is None else trip.first_token_at or trip.last_member
    return member.front_end if isinstance(member, Member) else None
