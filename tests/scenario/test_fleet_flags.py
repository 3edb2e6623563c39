"""Flags on fleets: they override what is written, at every level."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.scenario import from_mapping
from simqueue.scenario.resolved_fleet import ResolvedFleet

from .fleets import KEYS


def fleet_with(of_all: Any, *flags: str, **own: Any) -> ResolvedFleet:
    """Return the fleet of the policy `p` of a scenario with this fleet, loaded with flags."""
    policies = {"p": {**KEYS["policies"]["p"], **own}}
    found = from_mapping({**KEYS, "policies": policies, "fleet": of_all}, flags).resolve().policy("p").fleet
    assert found is not None
    return found


def test_a_flag_changes_a_key_or_makes_a_fleet() -> None:
    """`--set fleet.replicas=4` changes the number, and makes a fleet where there is none."""
    assert fleet_with({"replicas": 2}, "fleet.replicas=4").replicas == 4
    assert fleet_with(None, "fleet.replicas=4").replicas == 4
    assert fleet_with({"replicas": 2}, "fleet.router=random").router == "random"
    assert fleet_with({"replicas": 2}, "policies.p.fleet.replicas=4", fleet={"replicas": 3}).replicas == 4


def test_a_flag_of_the_scenario_reaches_the_policys_own_fleet() -> None:
    """A flag for the scenario's fleet is also set in policies that have their own."""
    assert fleet_with({"replicas": 2}, "fleet.replicas=4", fleet={"replicas": 3}).replicas == 4


@pytest.mark.parametrize(
    ("flag", "lengths"),
    [
        ("max_model_len=7", (7, 7)),
        ("policies.p.max_model_len=7", (7, 7)),
        ("policies.p.fleet.groups.a.max_model_len=7", (7, 50)),
    ],
)
def test_a_flag_overrides_the_keys_of_groups(flag: str, lengths: tuple[int, int]) -> None:
    """A flag for all policies, or for one, is also set in the groups that have the key themselves."""
    own = {"groups": {"a": {"max_model_len": 40}, "b": {}}}
    found = fleet_with(None, flag, fleet=own, max_model_len=50)
    assert tuple(group.policy.longest_request_tokens for group in found.groups) == lengths


def test_flags_of_groups_count_more_than_flags_of_what_is_above() -> None:
    """The more specific flag counts, whichever comes first."""
    own = {"groups": {"a": {"max_model_len": 40}, "b": {}}}
    flags = ("policies.p.fleet.groups.a.max_model_len=7", "max_model_len=9", "policies.p.max_model_len=8")
    found = fleet_with(None, *flags, fleet=own)
    assert [group.policy.longest_request_tokens for group in found.groups] == [7, 8]


@pytest.mark.parametrize(
    ("flag", "rest"),
    [
        ("fleet.groups.c.replicas=2", "unknown group 'c'; known: a, b"),
        ("fleet.groups.a.replicas=0", "must be >= 1"),
        ("fleet.groups.a.max_num_seqs=0", "must be >= 1"),
        ("fleet.router=rand", "unknown router 'rand'; did you mean 'random'?"),
    ],
)
def test_a_wrong_flag_is_named(flag: str, rest: str) -> None:
    """A mistake that a flag made is reported with the flag."""
    with pytest.raises(InputError) as caught:
        fleet_with({"groups": {"a": {}, "b": {}}}, flag)
    assert str(caught.value).startswith(f"--set {flag}: {rest}")


def test_a_flag_can_give_a_whole_new_group() -> None:
    """A mapping as the value of a flag makes a group of any name."""
    assert fleet_with({"groups": {"a": {}}}, "fleet.groups.b={replicas: 2}").names == ("a-0", "b-0", "b-1")
