"""A policy as the whole system that it is: what its replicas run, and the fleet that they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simqueue.scenario.fleet import FleetSettings
from simqueue.scenario.written import Written

if TYPE_CHECKING:
    from simqueue.scenario.model import Scenario
    from simqueue.scenario.resolved import ResolvedPolicy


@dataclass(frozen=True, slots=True)
class GroupOfSystem:
    """One group, resolved.

    Attributes
    ----------
    scenario : Scenario
        With the keys of the group as those of the policy.
    policy : ResolvedPolicy
        What its replicas run.
    is_other : bool
        Whether its scheduler or engine is not that of the policy.
    measured : mapping of str to str
        Origins of the values that a preset gives, by their dotted path below the group.
    """

    scenario: Scenario
    policy: ResolvedPolicy
    is_other: bool
    measured: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class System:
    """One policy, resolved.

    Attributes
    ----------
    policy : ResolvedPolicy
    fleet : FleetSettings or None
        As it was given.
    groups : mapping of str to GroupOfSystem
        Empty if there are none.
    written : Written
    """

    policy: ResolvedPolicy
    fleet: FleetSettings | None
    groups: Mapping[str, GroupOfSystem]
    written: Written
