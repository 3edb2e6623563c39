"""The load of a fleet: what its replicas can serve together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from simqueue.errors import InputError
from simqueue.experiment.build import build
from simqueue.experiment.demand import Offered, asked_of
from simqueue.experiment.policy_load import PolicyLoad, loaded
from simqueue.experiment.served import served
from simqueue.scenario.resolved import ResolvedPolicy, ResolvedScenario
from simqueue.scenario.resolved_fleet import ResolvedFleet, ResolvedGroup
from simqueue.simulation.recording import Recording
from simqueue.theory.limits import Capacity, Resource

NO_ESTIMATE: Final = "no law for latencies of several replicas"
_CLIENTS: Final = "no capacity law for a fleet whose requests in flight are limited by clients"
_UNEVEN: Final = "how evenly the router spreads the work is not part of the capacity law"
_LIVES: Final = "replicas that fail, drain or start later are counted as if they were always there"


def fleet_load(
    scenario: ResolvedScenario, policy: ResolvedPolicy, load: Offered | None, recording: Recording | None
) -> PolicyLoad:
    """Return the load of a policy with a fleet.

    Parameters
    ----------
    scenario : ResolvedScenario
    policy : ResolvedPolicy
    load : Offered or None
        What the workload offers.
    recording : Recording, optional
        A run of the policy, which shows the hits of its prefix caches.
    """
    fleet = policy.fleet
    if fleet is None:
        raise InputError(f"{policy.name}: has no fleet")
    if load is None:
        return PolicyLoad(None, None, None, "the workload has no fixed rate of requests")
    try:
        groups = [_of_group(scenario, group, load, recording) for group in fleet.groups]
    except InputError as error:
        return PolicyLoad(None, None, None, str(error))
    except ArithmeticError as error:  # what is said about a run must not lose the run
        return PolicyLoad(None, None, None, f"the capacity law failed: {error}", failed=True)
    return _together(fleet, groups)


def _of_group(
    scenario: ResolvedScenario, group: ResolvedGroup, load: Offered, recording: Recording | None
) -> PolicyLoad:
    """Return the load of one replica of a group if it had all the traffic."""
    built = build(group.policy, reject_oversized=scenario.rejects_unservable)
    by = served(scenario, group.policy, built)
    if by is None:
        raise InputError(f"no capacity law for the scheduler '{group.policy.scheduler}'")
    if by.clients is not None:
        raise InputError(_CLIENTS)
    return loaded(group.policy.step_time, by, asked_of(built, load, recording), estimates=False)


def _together(fleet: ResolvedFleet, groups: Sequence[PolicyLoad]) -> PolicyLoad:
    """Return the load of all replicas from those of single ones."""
    rates = [group.capacity.max_rate_rps for group in groups if group.capacity is not None]
    factors = [_factor(fleet, number, rates) for number in range(len(groups))]
    first = groups[0].capacity
    if first is None or len(rates) < len(groups):
        return groups[0]
    total_rps = sum(map(float.__mul__, factors, rates))
    ratio = total_rps / first.max_rate_rps
    capacity = replace(
        first,
        max_rate_rps=total_rps,
        limits_rps={name: ratio * rate for name, rate in first.limits_rps.items()},
        running=ratio * first.running,
    )
    capacity = _behind_router(capacity, fleet)
    loads = [group.load for group in groups]
    offered_rps = None if loads[0] is None else loads[0] * rates[0]
    low, high = ([getattr(group, f"{end}_rps") for group in groups] for end in ("low", "high"))
    doubts = [*(group.doubt for group in groups), *_doubts(fleet)]
    return PolicyLoad(
        capacity,
        None if offered_rps is None else offered_rps / capacity.max_rate_rps,
        None,
        doubt="; ".join(dict.fromkeys(filter(None, doubts))),
        no_estimate=NO_ESTIMATE,
        low_rps=_sum(factors, low),
        high_rps=_sum(factors, high),
        alike=len(groups) == 1,
    )


def _behind_router(capacity: Capacity, fleet: ResolvedFleet) -> Capacity:
    """Return the capacity with that of the router, which works on one request at a time."""
    if not fleet.router_request_s:
        return capacity
    own_rps = 1 / fleet.router_request_s
    limits: dict[Resource, float] = {**capacity.limits_rps, "router": own_rps}
    if own_rps >= capacity.max_rate_rps:
        return replace(capacity, limits_rps=limits)
    return replace(capacity, max_rate_rps=own_rps, binding="router", limits_rps=limits)


def _factor(fleet: ResolvedFleet, group: int, rates: Sequence[float]) -> float:
    """Return by what the capacity of one replica of a group counts.

    With fixed shares, all replicas together serve what the one that is full first serves, over its share.
    """
    replicas = float(fleet.groups[group].replicas)
    if fleet.spread not in ("equal shares", "shares by weight"):
        return replicas
    weights = [one.weight if fleet.spread == "shares by weight" else 1.0 for one in fleet.groups]
    fullest = min(rate / weight for rate, weight in zip(rates, weights, strict=True))
    return replicas * fullest * weights[group] / rates[group]


def _doubts(fleet: ResolvedFleet) -> list[str]:
    spreads = fleet.replicas == 1 or fleet.spread != "unknown"
    changes = fleet.failures is not None or bool(fleet.events)
    return [*([] if spreads else [_UNEVEN]), *([_LIVES] if changes else [])]


def _sum(factors: Sequence[float], rates_rps: Sequence[float | None]) -> float | None:
    """Return the sum of bounds; None if one of them is not known."""
    known = [rate for rate in rates_rps if rate is not None]
    return sum(map(float.__mul__, factors, known)) if len(known) == len(rates_rps) else None
