"""What the replicas of a group run: the keys of the policy with those of the group in their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from simqueue.datafiles.limits import MOST_KEYS
from simqueue.errors import Problem
from simqueue.scenario.fleet import GroupSettings
from simqueue.scenario.plaindata import plain
from simqueue.scenario.policies import CHOICES, PolicySettings, policy_class
from simqueue.scenario.wording import path_in_file
from simqueue.scenario.written import Written
from simqueue.settings import PROBLEM, UNKNOWN_KEY, details_of, unknown_keys

if TYPE_CHECKING:
    from simqueue.scenario.model import Scenario


@dataclass(frozen=True, slots=True)
class Part:
    """What one set of replicas runs: a policy without groups, or one group.

    Attributes
    ----------
    policy : str
    group : str or None
        None: the policy has no groups.
    scenario : Scenario
        With the keys of the group as those of the policy.
    """

    policy: str
    group: str | None
    scenario: Scenario


def has_groups(scenario: Scenario, policy: str) -> bool:
    """Return whether groups stand in for a policy's own replicas."""
    fleet = scenario.fleet_of(policy)
    return fleet is not None and fleet.groups is not None


def parts_of(scenario: Scenario, policy: str) -> list[Part]:
    """Return the groups of a policy, or the policy alone if it has none; all of their keys are valid."""
    return [Part(policy, name, part) for name, part in _readings(scenario, policy) if not isinstance(part, list)]


def split(scenario: Scenario) -> tuple[list[Part], list[InitErrorDetails]]:
    """Return the parts of all policies, and what is wrong with the keys of groups, as validators report it."""
    too_many = _too_many(scenario)
    if too_many is not None:
        return [], [details_of(too_many)]
    parts, problems = list[Part](), dict[tuple[object, ...], InitErrorDetails]()
    for policy in scenario.policies:
        for name, found in _readings(scenario, policy):
            if isinstance(found, list):
                problems |= {key: one for one in found if (key := _identity(one)) not in problems}
            else:
                parts.append(Part(policy, name, found))
    return parts, list(problems.values())


def _identity(detail: InitErrorDetails) -> tuple[object, ...]:
    """Return what makes a problem the same one in several policies that share a fleet."""
    kind, context = detail["type"], detail["ctx"]
    return kind if isinstance(kind, str) else kind.type, detail["loc"], context.get("key", context.get("text"))


def _too_many(scenario: Scenario) -> Problem | None:
    """Return what is wrong with the number of groups of all policies: each of them is resolved by itself."""
    counts = {policy: len(fleet.groups or ()) for policy in scenario.policies if (fleet := scenario.fleet_of(policy))}
    total = sum(counts.values())
    if total <= MOST_KEYS:
        return None
    largest = max(counts, key=lambda policy: counts[policy])
    text = f"all policies together can have up to {MOST_KEYS:,} groups; they have {total:,}"
    return Problem((*scenario.written.fleet_path(largest), "groups"), text)


def _readings(scenario: Scenario, policy: str) -> Iterator[tuple[str | None, Scenario | list[InitErrorDetails]]]:
    """Yield each group with the scenario in which its keys are the policy's, or with what is wrong with them."""
    fleet = scenario.fleet_of(policy)
    if fleet is None or fleet.groups is None:
        yield None, scenario
        return
    for name, group in fleet.groups.items():
        written = scenario.written.of_group(policy, name)
        keys = _merged(scenario, policy, group)
        try:
            own = _read(keys, group)
        except ValidationError as error:
            yield name, [_detail(found, policy, keys, written) for found in error.errors(include_url=False)]
        else:
            yield name, scenario.model_copy(update={"policies": {policy: own}}).written_in(written, None)


def _merged(scenario: Scenario, policy: str, group: GroupSettings) -> dict[str, Any]:
    """Return the keys of the policy, with those of the group in their place; those of the KV cache one by one.

    A group with another scheduler or engine has none of the keys of the policy's own.
    """
    base, own = plain(scenario.policy(policy)), plain(group.own_keys)
    base.pop("fleet", None)
    if "gpu" in own and own["gpu"] != base.get("gpu") and not isinstance(base.get("usd_per_gpu_hour"), dict):
        base.pop("usd_per_gpu_hour", None)  # the price of another GPU
    if any(choice.key in own and own[choice.key] != base.get(choice.key) for choice in CHOICES):
        base = {key: value for key, value in base.items() if key in PolicySettings.model_fields}
    cache = own.get("kv_cache")
    if isinstance(cache, dict):
        own["kv_cache"] = {**(base.get("kv_cache") or plain(scenario.kv_cache)), **cache}
    return {**base, **own}


def _read(keys: Mapping[str, Any], group: GroupSettings) -> PolicySettings:
    """Return the keys as a policy."""
    model = policy_class(keys)
    known = [field.alias or key for key, field in model.model_fields.items() if key != "fleet"]
    known = sorted({*known, *GroupSettings.model_fields})
    strange = [key for key in group.own_keys if key not in known and not model._has_pattern(key)]
    if strange:
        raise unknown_keys(strange, known)
    return model.model_validate(keys)


def _detail(error: Any, policy: str, keys: Mapping[str, Any], written: Written) -> InitErrorDetails:
    """Return an error of pydantic about the keys of a group as what a validator of the scenario raises."""
    known = path_in_file(error["loc"], keys)
    above = written.path_for(policy, known)[: -len(known)] if known else written.group
    kind, context = error["type"], error.get("ctx", {})
    if kind in (PROBLEM, UNKNOWN_KEY):
        kind = PydanticCustomError(kind, "{text}", context)
    return InitErrorDetails(type=kind, loc=(*above, *error["loc"]), input=error["input"], ctx=context)
