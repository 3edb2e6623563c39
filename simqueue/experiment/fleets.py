"""From a resolved fleet to what a simulation plays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random

import numpy as np

from simqueue.experiment.build import build
from simqueue.scenario.resolved import ResolvedPolicy, ResolvedScenario
from simqueue.scenario.resolved_fleet import ResolvedFleet
from simqueue.simulation.fleet_rules import FleetRules, Part
from simqueue.simulation.recording import Column, Recording
from simqueue.workload.streams import stream


def parts(scenario: ResolvedScenario, fleet: ResolvedFleet) -> list[Part]:
    """Return the replicas of a fleet, by number."""
    made = partial(build, reject_oversized=scenario.rejects_unservable)
    groups = [group for group in fleet.groups for _ in range(group.replicas)]
    return [
        Part(
            name, group.name, group.weight, partial(made, group.policy), group.policy.step_time, group.policy.front_end
        )
        for name, group in zip(fleet.names, groups, strict=True)
    ]


def rules(scenario: ResolvedScenario, fleet: ResolvedFleet, replication: int) -> FleetRules:
    """Return how a fleet is run in one replication, with a new router.

    The random streams have the same names for all policies, so that all of them have the same failures.
    """
    random = _streams(scenario.seed, replication)
    return FleetRules(
        router=fleet.make_router(random("router")),
        random=random,
        order=_order(fleet, random),
        router_request_s=fleet.router_request_s,
        router_latency_s=fleet.router_latency_s,
        ages=fleet.ages,
        events=fleet.events,
        failures=fleet.failures,
        in_flight=fleet.in_flight,
        recovery=fleet.recovery,
    )


def systems(policy: ResolvedPolicy) -> list[tuple[str | None, ResolvedPolicy]]:
    """Return what runs in a policy: the policy without a name, or its groups with theirs."""
    if policy.fleet is None:
        return [(None, policy)]
    return [(group.name, group.policy) for group in policy.fleet.groups]


def steps_of_group(recording: Recording, group: str | None) -> Mapping[str, Column]:
    """Return the steps of the replicas of a group; None: all steps."""
    fleet = recording.fleet
    if group is None or fleet is None or len(fleet.groups) == 1:
        return recording.steps
    numbers = [number for number, replica in enumerate(fleet.replicas) if replica.group == group]
    own = np.isin(recording.steps["replica"], numbers)
    return {name: column[own] for name, column in recording.steps.items()}


def _order(fleet: ResolvedFleet, random: Callable[[str], Random]) -> tuple[int, ...] | None:
    if not isinstance(fleet.order, str):
        return fleet.order
    if fleet.order == "listed":
        return None
    draw = random("order").random
    keys = [draw() for _ in range(fleet.replicas)]
    return tuple(sorted(range(fleet.replicas), key=keys.__getitem__))


def _streams(seed: int, replication: int) -> Callable[[str], Random]:
    """Return a function from a purpose to its stream of random numbers."""

    def random(purpose: str) -> Random:
        return Random(int(stream(seed, replication, f"fleet.{purpose}").integers(2**63)))

    return random
