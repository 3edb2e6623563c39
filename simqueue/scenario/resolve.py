"""What each policy runs with, and where every value came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from simqueue.engines import ENGINES, GIVEN, Deployment, ResolvedEngine
from simqueue.errors import InputError, KeyPath, about
from simqueue.hardware import Gpu, Model, load_gpu, load_model
from simqueue.kvcache.settings import KVCacheSettings
from simqueue.names import unknown
from simqueue.scenario.model import Scenario
from simqueue.scenario.policies import EnginePolicy
from simqueue.scenario.written import SHARED_KEYS
from simqueue.settings import Settings
from simqueue.steptime import RooflineSettings, StepTimeSettings, with_paths_from


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """One policy with every value decided.

    Attributes
    ----------
    name : str
        Its key in the scenario.
    scheduler : str
        Name in `simqueue.schedulers.SCHEDULERS`, or of the engine.
    settings : Settings
        The scheduler's own keys, or the engine's flags as given.
    model : Model or None
        None in scenarios that need no model.
    gpu : Gpu or None
    tensor_parallel : int
    step_time : StepTimeSettings
    kv_cache : KVCacheSettings
    max_model_len : int or None
        Most tokens of a request as written down.
    engine : ResolvedEngine or None
        The engine with every flag decided; None for a policy that names a scheduler.
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
    engine: ResolvedEngine | None = None

    @property
    def longest_request_tokens(self) -> int | None:
        """Most tokens of a request: max_model_len, else what the model was made for, else None for no limit."""
        if self.max_model_len is not None or self.model is None:
            return self.max_model_len
        return self.model.max_position


def effective(scenario: Scenario, policy_name: str) -> EffectivePolicy:
    """Return what one policy runs with: its own keys, else those of the scenario, else the defaults.

    Raises
    ------
    InputError
        The scenario has no such policy, or its GPU or model cannot be had.
    """
    if policy_name not in scenario.policies:
        raise InputError(unknown("policy", policy_name, scenario.policies))
    with scenario.written.locating(policy_name):
        return settle(scenario, policy_name)


def settle(scenario: Scenario, policy_name: str) -> EffectivePolicy:
    """Return the same as `effective`, with errors about the policy's bare keys."""
    policy = scenario.policy(policy_name)
    chosen = EffectivePolicy(
        name=policy_name,
        scheduler=policy.kind,
        settings=policy.own_settings(),
        model=_model(scenario),
        gpu=_gpu(scenario, policy_name),
        tensor_parallel=scenario.value_for(policy_name, "tensor_parallel"),
        step_time=with_paths_from(_step_time(scenario, policy_name), scenario.base_dir),
        kv_cache=scenario.value_for(policy_name, "kv_cache"),
        max_model_len=scenario.value_for(policy_name, "max_model_len"),
    )
    return replace(chosen, engine=_settled(chosen)) if isinstance(policy, EnginePolicy) else chosen


def _step_time(scenario: Scenario, policy_name: str) -> StepTimeSettings:
    """Return a policy's step time: the roofline where model and GPU are named and nothing else."""
    return scenario.value_for(policy_name, "step_time") or RooflineSettings(kind="roofline")


def _model(scenario: Scenario) -> Model | None:
    if scenario.model is None:
        return None
    with about("model"):
        model = load_model(scenario.model, scenario.base_dir)
    stored = scenario.dtype
    return model if stored is None else model.with_precision(stored.weights, stored.kv)


def _gpu(scenario: Scenario, policy_name: str) -> Gpu | None:
    gpu = scenario.value_for(policy_name, "gpu")
    if gpu is None:
        return None
    with about("gpu"):
        return load_gpu(gpu, scenario.base_dir)


def _settled(chosen: EffectivePolicy) -> ResolvedEngine:
    gpu = chosen.gpu
    deployment = Deployment(
        gpu_name=None if gpu is None else f"{gpu.name} {gpu.description}",
        gpu_memory_bytes=None if gpu is None else gpu.memory_bytes,
        kv_cache=chosen.kv_cache,
        max_model_len=chosen.longest_request_tokens,
    )
    return ENGINES[chosen.scheduler].resolve(chosen.settings, deployment)


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
    engines = {name: effective(scenario, name).engine for name in scenario.policies}
    values["policies"] = {name: _policy_values(scenario, name, engine) for name, engine in engines.items()}
    return {
        **values,
        "origin": {".".join(map(str, path)): _origin(scenario, path, engines) for path in _leaves(values)},
    }


def _policy_values(scenario: Scenario, name: str, engine: ResolvedEngine | None) -> dict[str, Any]:
    policy = scenario.policy(name)
    key = "engine" if isinstance(policy, EnginePolicy) else "scheduler"
    own: dict[str, Any] = {key: policy.kind, **policy.model_dump(mode="json", by_alias=True)}
    for key in SHARED_KEYS:
        value = scenario.value_for(name, key)
        own[key] = value.model_dump(mode="json", by_alias=True) if isinstance(value, Settings) else value
    step_time = _step_time(scenario, name)
    if isinstance(step_time, RooflineSettings):
        with scenario.written.locating(name), about("step_time"):
            step_time = step_time.resolved(scenario.base_dir)
    own["step_time"] = step_time.model_dump(mode="json", by_alias=True)
    if engine is not None:
        own |= engine.values
        cache = engine.cache
        own["kv_cache"] |= {
            "block_size": cache.block_size,
            "memory_share": cache.memory_share,
            "watermark": cache.watermark,
            "prefix_caching": cache.prefix_caching,
        }
    return own


def _leaves(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths of all values; a list counts as one value."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    else:
        yield path


def _origin(scenario: Scenario, path: KeyPath, engines: Mapping[str, ResolvedEngine | None]) -> str:
    written = scenario.written
    flag = written.flag_for(path)
    if flag is not None:
        return flag.split()[0]
    if written.has(path):
        own = path[0] == "policies" and path[2] in SHARED_KEYS
        return "policy" if own else written.source
    if path[0] == "policies" and (engine := engines[str(path[1])]) is not None:
        origins = engine.cache_origins if path[2] == "kv_cache" else engine.origins
        source = origins.get(str(path[-1]))
        if source not in (None, GIVEN):
            return f"version: {source}"
    if path[0] == "policies" and path[2] in SHARED_KEYS and not _replaced(scenario, path):
        return _origin(scenario, path[2:], engines)
    return "default"


def _replaced(scenario: Scenario, path: KeyPath) -> bool:
    """Whether the scenario's value counts for nothing here because the policy has its own mapping."""
    return path[2] != "kv_cache" and scenario.written.has(path[:3])
