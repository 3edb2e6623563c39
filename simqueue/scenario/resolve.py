"""What each policy runs with, and where every value came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from simqueue.errors import InputError
from simqueue.hardware import Gpu, Model, load_gpu, load_model
from simqueue.kvcache.settings import KVCacheSettings
from simqueue.scenario.model import Scenario
from simqueue.scenario.overrides import POLICY_KEYS
from simqueue.scenario.yamlfile import KeyPath
from simqueue.settings import Settings, nearest
from simqueue.steptime import RooflineSettings, StepTimeSettings

_ROOFLINE = RooflineSettings(kind="roofline")
"""The step time of scenarios that name a model and a GPU and nothing else."""


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """One policy with every value decided.

    Attributes
    ----------
    name : str
        Its key in the scenario.
    scheduler : str
        Name in `simqueue.schedulers.SCHEDULERS`.
    settings : Settings
        The scheduler's own keys.
    model : Model or None
        None in scenarios that need no model.
    gpu : Gpu or None
    tensor_parallel : int
    step_time : StepTimeSettings
    kv_cache : KVCacheSettings
    max_model_len : int or None
        Most tokens of a request; None: no limit.
    """

    name: str
    scheduler: str
    settings: Settings
    model: Model | None
    gpu: Gpu | None
    tensor_parallel: int
    step_time: StepTimeSettings
    kv_cache: KVCacheSettings
    max_model_len: int | None


def effective(scenario: Scenario, policy_name: str) -> EffectivePolicy:
    """Return what one policy runs with: its own keys, else those of the scenario, else the defaults.

    Raises
    ------
    InputError
        The scenario has no such policy, or its GPU or model cannot be had.
    """
    if policy_name not in scenario.policies:
        known = list(scenario.policies)
        guess = nearest(policy_name, known)
        hint = f"did you mean '{guess}'? " if guess else ""
        raise InputError(f"policies: there is no '{policy_name}'; {hint}known: {', '.join(known)}")
    policy = scenario.policy(policy_name)
    gpu = scenario.value_for(policy_name, "gpu")
    return EffectivePolicy(
        name=policy_name,
        scheduler=policy.scheduler,
        settings=policy.scheduler_settings(),
        model=None if scenario.model is None else load_model(scenario.model, scenario.base_dir),
        gpu=None if gpu is None else load_gpu(gpu, scenario.base_dir),
        tensor_parallel=scenario.value_for(policy_name, "tensor_parallel"),
        step_time=scenario.value_for(policy_name, "step_time") or _ROOFLINE,
        kv_cache=scenario.value_for(policy_name, "kv_cache"),
        max_model_len=scenario.value_for(policy_name, "max_model_len"),
    )


def resolved(scenario: Scenario) -> dict[str, Any]:
    """Return every value of a scenario as JSON has it, and under ``origin`` where each came from.

    Policies are complete: each carries what it runs with. Without ``origin`` the result is a scenario again, and
    resolves to the same values.

    Returns
    -------
    dict
        ``origin`` maps each dotted path to a value to ``file``, ``--set``, ``--seed``, ``default``, or ``policy`` (a
        policy's own key where the scenario has one of the same name). Scenarios made in Python have ``given`` for
        ``file``.
    """
    values = scenario.model_dump(mode="json", by_alias=True, exclude={"policies"})
    values["policies"] = {name: _policy_values(scenario, name) for name in scenario.policies}
    return {**values, "origin": dict(_origins(scenario, values))}


def _policy_values(scenario: Scenario, name: str) -> dict[str, Any]:
    policy = scenario.policy(name)
    own: dict[str, Any] = {"scheduler": policy.scheduler, **policy.model_dump(mode="json", by_alias=True)}
    for key in POLICY_KEYS:
        value = scenario.value_for(name, key)
        own[key] = value.model_dump(mode="json", by_alias=True) if isinstance(value, Settings) else value
    step_time = scenario.value_for(name, "step_time") or _ROOFLINE
    if isinstance(step_time, RooflineSettings):
        step_time = step_time.resolved()
    return {**own, "step_time": step_time.model_dump(mode="json", by_alias=True)}


def _origins(scenario: Scenario, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for path in _leaves(values, ()):
        yield ".".join(map(str, path)), _origin(scenario, path)


def _leaves(value: Any, path: KeyPath) -> Iterator[KeyPath]:
    """Yield the paths of all values; a list counts as one value."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    else:
        yield path


def _origin(scenario: Scenario, path: KeyPath) -> str:
    for end in range(len(path), 0, -1):
        if path[:end] in scenario.flags:
            return scenario.flags[path[:end]].split()[0]
    if _is_given(scenario.given, path):
        own = path[0] == "policies" and path[2] in POLICY_KEYS
        return "policy" if own else scenario.source
    if path[0] == "policies" and path[2] in POLICY_KEYS and not _replaced(scenario, path):
        return _origin(scenario, path[2:])
    return "default"


def _replaced(scenario: Scenario, path: KeyPath) -> bool:
    """Whether the scenario's value counts for nothing here because the policy has its own mapping."""
    return path[2] != "kv_cache" and _is_given(scenario.given, path[:3])


def _is_given(given: Any, path: KeyPath) -> bool:
    for step in path:
        if not isinstance(given, dict) or step not in given:
            return False
        given = given[step]
    return True
