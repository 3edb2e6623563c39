"""``server: as measured``: policies with the settings of the server that their preset was fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from simqueue.errors import InputError, Problem, about
from simqueue.scenario.groups import has_groups
from simqueue.scenario.policies import EnginePolicy, PolicySettings
from simqueue.steptime import RooflineSettings
from simqueue.steptime.preset import Card, load_preset, preset_names

if TYPE_CHECKING:
    from simqueue.scenario.model import Scenario

_FLAGS: Final = ("max_num_batched_tokens", "max_num_seqs")


def with_measured_servers(scenario: Scenario) -> tuple[Scenario, dict[str, str]]:
    """Return a scenario in which policies have what their presets say of the server, and the origins of those values.

    Keys that were written down count more.

    Raises
    ------
    InputError
        If a preset cannot be read, or does not say what its server was.
    """
    policies: dict[str, PolicySettings] = {}
    origins: dict[str, str] = {}
    problems: list[Problem] = []
    for name in scenario.policies:
        policy = scenario.policy(name)
        if has_groups(scenario, name):  # each group has a server of its own
            policies[name] = policy
            continue
        try:
            card = measured_card(scenario, name)
        except InputError as error:
            problems += scenario.written.problems(error, name)
            continue
        update = {} if card is None else _taken_over(scenario, name, card)
        policies[name] = policy.model_copy(update=update) if update else policy
        origins |= {f"policies.{name}.{path}": "preset: as measured" for path in _paths(update)}
    if problems:
        raise scenario.written.complaint(problems)
    return (scenario.model_copy(update={"policies": policies}) if origins else scenario), origins


def measured_card(scenario: Scenario, name: str) -> Card | None:
    """Return the card of the preset whose server a policy has; None if it has its own."""
    step_time = scenario.step_time_for(name)
    if not isinstance(step_time, RooflineSettings) or step_time.server is None:
        return None
    with about("step_time", "preset"):
        card = load_preset(step_time.preset, scenario.base_dir).card
    if card.server is None and card.front_end is None:
        known = [one for one in preset_names() if _describes(one)]
        text = f"preset '{step_time.preset}' does not say what its server was; known of: {', '.join(known)}"
        raise InputError(text, "step_time", "server")
    return card


def other_version(policy: PolicySettings, card: Card | None) -> str | None:
    """Return a warning if an engine is not of the version that was measured."""
    measured = None if card is None or card.server is None else card.server.version
    own = getattr(policy, "version", None) if isinstance(policy, EnginePolicy) else None
    if measured is None or own is None or own == measured:
        return None
    return f"its server was measured at version {measured}; the policy has the rules of {own}"


def _describes(preset: str) -> bool:
    card = load_preset(preset).card
    return card.server is not None or card.front_end is not None


def _taken_over(scenario: Scenario, name: str, card: Card) -> dict[str, Any]:
    policy, update = scenario.policy(name), dict[str, Any]()
    given = {} if card.server is None else card.server.model_dump(exclude_none=True)
    for flag in _FLAGS:
        if flag in given and flag in type(policy).model_fields and not _is_written(policy, flag):
            update[flag] = given[flag]
    cache = scenario.value_for(name, "kv_cache")
    share, is_flag = given.get("gpu_memory_utilization"), "gpu_memory_utilization" in type(policy).model_fields
    if share is not None and "memory_share" not in cache.model_fields_set:
        if not is_flag:
            update["kv_cache"] = cache.model_copy(update={"memory_share": share})
        elif not _is_written(policy, "gpu_memory_utilization"):
            update["gpu_memory_utilization"] = share
    is_said = "front_end" in scenario.model_fields_set | policy.model_fields_set
    if card.front_end is not None and not is_said:
        update["front_end"] = card.front_end
    return update


def _is_written(policy: PolicySettings, flag: str) -> bool:
    return flag in policy.model_fields_set and getattr(policy, flag) is not None


def _paths(update: Mapping[str, Any]) -> list[str]:
    """Return the dotted paths of the values that were taken over, below the policy."""
    paths = [key for key in update if key not in {"kv_cache", "front_end"}]
    paths += ["kv_cache.memory_share"] if "kv_cache" in update or "gpu_memory_utilization" in update else []
    front_end = update.get("front_end")
    return paths + ([f"front_end.{key}" for key in type(front_end).model_fields] if front_end is not None else [])
