"""What serves the requests of a policy: the server, the front end before it, and the clients that limit both."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simqueue.experiment.demand import Demand
from simqueue.experiment.limit import limit_of
from simqueue.frontend import FrontEndTimes
from simqueue.scenario.resolved import ResolvedPolicy, ResolvedScenario
from simqueue.schedulers import Policy
from simqueue.schedulers.declarations import declared_batching
from simqueue.steptime import StepTime
from simqueue.theory.capacity import capacity
from simqueue.theory.clients import InFlight, limited_by_clients
from simqueue.theory.front_end import behind_front_end
from simqueue.theory.limits import Capacity, Limit, Server

_WAVES_OF_CLIENTS = "clients limit the requests in flight, some are in the front end, and waves do not wait for them"


@dataclass(frozen=True, slots=True)
class Served:
    """What serves the requests of a policy.

    Attributes
    ----------
    server : Server
        With no more seats than requests in flight.
    front_end : FrontEndTimes or None
    clients : int or None
        Most requests in flight: `max_concurrency` of the workload.
    seats : int
        Of the policy, however many are in flight.
    """

    server: Server
    front_end: FrontEndTimes | None
    clients: int | None
    seats: int


@dataclass(frozen=True, slots=True)
class Limits:
    """The capacity of the server alone, and of the whole way of a request."""

    server: Limit
    whole: Limit


def served(scenario: ResolvedScenario, policy: ResolvedPolicy, built: Policy) -> Served | None:
    """Return what serves the requests of a policy; None if the policy does not declare its limits."""
    described = server(built)
    if described is None:
        return None
    clients, seats = None if scenario.workload is None else scenario.workload.max_concurrency, described.max_num_seqs
    if clients is not None:
        described = replace(described, max_num_seqs=min(seats, clients))
    return Served(described, policy.front_end, clients, seats)


def limits_of(step_time: StepTime, by: Served, asked: Demand) -> Limits:
    """Return the capacities of a policy; they do not depend on the rate.

    Raises
    ------
    InputError
        As `limit_of`.
    """
    alone = limit_of(step_time, by.server, asked)
    if by.front_end is None:
        return Limits(alone, alone)
    return Limits(alone, behind_front_end(_of_clients(alone, step_time, by, asked), by.front_end, asked.lengths))


def _of_clients(alone: Limit, step_time: StepTime, by: Served, asked: Demand) -> Limit:
    """Return the capacity of the server if requests in the front end are among those that clients have in flight."""
    if by.clients is None or by.front_end is None:
        return alone
    if by.server.batching == "static":
        return replace(alone, low_rps=None, doubt=alone.doubt or _WAVES_OF_CLIENTS)

    def with_seats(seats: int) -> Capacity:
        return capacity(step_time, asked.lengths, replace(by.server, max_num_seqs=seats))

    fastest_s, depth = with_seats(1).step_s, by.server.depth
    flight = InFlight(by.clients, by.front_end, asked.lengths, asked.sample, depth, fastest_s)
    return limited_by_clients(alone, by.seats, with_seats, flight)


def server(built: Policy) -> Server | None:
    """Return the limits of a policy, in the terms of the capacity law; None if the policy does not declare them."""
    batching, kv = declared_batching(built), built.kv
    if batching is None:
        return None
    return Server(
        batching=batching.kind,
        max_num_seqs=batching.max_num_seqs,
        max_num_batched_tokens=batching.max_num_batched_tokens,
        chunk_tokens=batching.chunk_tokens,
        kv_blocks=kv.total - kv.watermark_blocks,
        block_size=kv.block_size,
        reserve_tokens=kv.reserve_tokens,
        depth=built.depth,
        spare_blocks=kv.watermark_blocks,
        whole_context=batching.whole_context,
        keeps_evicted=kv.shares,
        fills_waves=batching.fills_waves,
        sorts_waves=batching.sorts_waves,
    )
