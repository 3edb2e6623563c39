"""A fleet whose replicas know nothing of each other, simulated in parts that are put together again.

A router that follows from the requests before alone sends each request to the same replica, whatever happens there. So
it can be asked for all of them beforehand, and any set of replicas can be simulated without the others. The tables are
the same, byte for byte, as of all replicas together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any

import numpy as np

from simqueue.errors import RunError
from simqueue.request import Request, Status
from simqueue.routing import Choice, Ranking, Router, View
from simqueue.schedulers import Policy
from simqueue.simulation.books import most_inside, sum_or_none, sum_prefix
from simqueue.simulation.fleet_rules import FleetRules, Part
from simqueue.simulation.options import NEVER_S, RunOptions
from simqueue.simulation.recording import Column, FleetRecord, KeptTable, Recording, ReplicaFacts, Table
from simqueue.simulation.simulate_fleet import FleetSimulation
from simqueue.traffic import Traffic


def can_be_apart(traffic: Traffic, rules: FleetRules) -> bool:
    """Return whether replicas can be simulated without the others."""
    requests = traffic.requests
    fixed = isinstance(requests, list) and not traffic.session_groups
    fixed = fixed and not any(one.gives_up_s is not None and one.gives_up_s <= one.arrival_s for one in requests)
    free = all(found.retry is None and found.max_concurrency is None for found in traffic.rules.values())
    steady = not rules.events and rules.failures is None and not rules.router_request_s and not rules.router_latency_s
    return fixed and free and steady and not rules.recovery.retries_refused and rules.router.is_independent


@dataclass(frozen=True, slots=True)
class Share:
    """Some replicas in a row, and the requests that they get.

    Attributes
    ----------
    first : int
        Number of the first of them.
    parts : sequence of Part
    requests : sequence of Request
        In order of arrival.
    sent : sequence of (int, str)
        For each request its replica, counted from `first`, and why.
    """

    first: int
    parts: Sequence[Part]
    requests: Sequence[Request]
    sent: Sequence[tuple[int, str]]


def shares(requests: Sequence[Request], parts: Sequence[Part], rules: FleetRules, number: int) -> list[Share]:
    """Return a fleet cut into at most `number` shares of nearly as many replicas. Precondition: `can_be_apart`."""
    router, places = rules.router, [_Place(i, part) for i, part in enumerate(parts)]
    views: list[View] = [places[i] for i in rules.order or range(len(parts))]
    for place in places:
        router.joined(place, 0.0)
    edges = [len(parts) * i // number for i in range(number + 1)]
    owner = np.repeat(np.arange(number), np.diff(edges))
    asked: list[list[Request]] = [[] for _ in range(number)]
    sent: list[list[tuple[int, str]]] = [[] for _ in range(number)]
    for request in requests:
        choice = router.choose(request, views, request.arrival_s)
        chosen = choice.replica if choice.replica is not None else 0  # an independent router never waits
        router.dispatched(request, places[chosen], request.arrival_s)
        share = int(owner[chosen])
        asked[share].append(request)
        sent[share].append((chosen - edges[share], choice.reason))
    return [Share(edges[i], parts[edges[i] : edges[i + 1]], asked[i], sent[i]) for i in range(number)]


def play_share(share: Share, options: RunOptions, on_end: Callable[[int], None] | None = None) -> Recording:
    """Simulate some replicas without the others; `on_end` is as for `FleetSimulation`."""
    sent = {request.request_id: to for request, to in zip(share.requests, share.sent, strict=True)}
    rules = FleetRules(router=_Sent(sent), random=Random)
    return FleetSimulation(Traffic(list(share.requests)), share.parts, rules, options, on_end).run()


def together(
    requests: Sequence[Request], plan: Sequence[Share], played: Sequence[Recording], router: str, options: RunOptions
) -> Recording | None:
    """Return the recordings of all shares as that of the whole fleet.

    None if a request can never be completed: what is said of it is about the whole fleet.
    """
    stuck = any((one.requests["status"] == Status.UNFINISHED.value).any() for one in played)
    if stuck and options.horizon_s == NEVER_S:
        return None
    end_s = max(one.end_s for one in played)
    fleets = [one.fleet for one in played if one.fleet is not None]
    facts = tuple(
        _until(one, end_s, played_one.end_s)
        for fleet, played_one in zip(fleets, played, strict=True)
        for one in fleet.replicas
    )
    table = _requests(requests, plan, played)
    return Recording(
        requests=table,
        steps=_numbered(plan, [one.steps for one in played]),
        gaps=_joined([one.gaps for one in played]),
        blocks_total=sum(one.blocks_total for one in facts),
        blocks_peak=sum(one.blocks_peak for one in facts),
        max_concurrent=most_inside(table, {request.request_id: request.gives_up_s for request in requests}),
        slot_steps=sum_or_none(one.slot_steps for one in facts),
        idle_slot_steps=sum_or_none(one.idle_slot_steps for one in facts),
        end_s=end_s,
        warnings=tuple(dict.fromkeys(line for one in played for line in one.warnings)),
        front_end=next((one.front_end for one in played if one.front_end is not None), None),
        special={name: request for one in played for name, request in one.special.items()},
        unfinished_step_s=sum_or_none(one.lost_step_s for one in facts),
        prefix=sum_prefix(one.prefix for one in facts),
        fleet=FleetRecord(
            replicas=facts,
            router=router,
            lives=dict(_numbered(plan, [fleet.lives for fleet in fleets])),
            stays=fleets[0].stays,  # without failures there are none
        ),
    )


def _until(facts: ReplicaFacts, end_s: float, own_end_s: float) -> ReplicaFacts:
    """Return the facts of a replica up to the end of the whole fleet; a step in flight goes on till then."""
    lost_s = facts.lost_step_s
    return replace(facts, ready_s=end_s, lost_step_s=None if lost_s is None else lost_s + (end_s - own_end_s))


def _requests(requests: Sequence[Request], plan: Sequence[Share], played: Sequence[Recording]) -> dict[str, Column]:
    """Return the requests of all shares in order of arrival, with the numbers of replicas in the whole fleet."""
    place = {request.request_id: index for index, request in enumerate(requests)}
    tables = [dict(one.requests) for one in played]
    for share, table in zip(plan, tables, strict=True):
        table["replica"] = np.where(table["replica"] < 0, -1, table["replica"] + share.first)
    table = {name: np.concatenate([one[name] for one in tables]) for name in tables[0]}
    order = np.argsort([place[name] for name in table["request_id"]], kind="stable")
    return {name: column[order] for name, column in table.items()}


def _numbered(plan: Sequence[Share], tables: Sequence[Mapping[str, Column]]) -> Table:
    """Return tables about replicas as one, with their numbers in the whole fleet."""
    moved = zip(plan, tables, strict=True)
    return _joined([KeptTable({**table, "replica": table["replica"] + share.first}) for share, table in moved])


def _joined(tables: Sequence[Table]) -> Table:
    return KeptTable({name: np.concatenate([table[name] for table in tables]) for name in tables[0]})


class _Unseen:
    """What a router that looks at no replica must not read: the answer would come from the replicas' pasts."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, place: object, owner: type) -> Any:
        raise RunError(f"the router reads {self._name}, so it is not independent: `is_independent` must be False")


class _Place:
    """A replica as a router sees it that looks at none: always ready."""

    healthy = True
    in_flight = _Unseen()
    in_flight_prompt_tokens = _Unseen()
    in_flight_tokens = _Unseen()
    free_seats = _Unseen()
    running = _Unseen()
    waiting = _Unseen()
    tokens = _Unseen()
    kv_used = _Unseen()
    seen_s = _Unseen()
    cached_tokens = _Unseen()

    def __init__(self, number: int, part: Part) -> None:
        self.number, self.name, self.group, self.weight = number, part.name, part.group, part.weight
        self._make_policy = part.make_policy

    @cached_property
    def _policy(self) -> Policy:
        return self._make_policy()

    @cached_property
    def block_size(self) -> int:
        """Tokens in a block of its KV cache."""
        return self._policy.kv.block_size

    @cached_property
    def kv_tokens(self) -> int:
        """Tokens that its KV pool holds."""
        return self._policy.kv.total * self._policy.kv.block_size

    @cached_property
    def max_num_batched_tokens(self) -> int | None:
        """Token budget of a step."""
        batching = self._policy.batching()
        return None if batching is None else batching.max_num_batched_tokens


class _Sent(Router):
    """Sends each request where it was sent before."""

    def __init__(self, sent: dict[str, tuple[int, str]]) -> None:
        self._sent = sent

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return where it was sent."""
        number, reason = self._sent[request.request_id]
        return Ranking({number: 1.0}, reason)

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Return where it was sent."""
        return Choice(*self._sent[request.request_id])
