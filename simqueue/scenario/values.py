"""The values of a resolved scenario as JSON has them, and where each of them comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from simqueue.engines import GIVEN, ResolvedEngine
from simqueue.errors import KeyPath, about
from simqueue.scenario.policies import EnginePolicy
from simqueue.scenario.written import SHARED_KEYS, Written
from simqueue.settings import Settings
from simqueue.steptime import RooflineSettings

if TYPE_CHECKING:
    from simqueue.scenario.model import Scenario
    from simqueue.scenario.resolved import ResolvedPolicy


def values_of(scenario: Scenario, policies: Iterable[ResolvedPolicy]) -> dict[str, Any]:
    """Return every value of a scenario as JSON has it. Policies are complete: each has every key that it uses."""
    values = scenario.model_dump(mode="json", by_alias=True, exclude={"policies"})
    values["policies"] = {policy.name: _policy_values(scenario, policy) for policy in policies}
    return values


def origins_of(values: Mapping[str, Any], scenario: Scenario, policies: Iterable[ResolvedPolicy]) -> dict[str, str]:
    """Return where each value comes from, by its dotted path."""
    engines = {policy.name: policy.engine for policy in policies}
    origins = {dotted(path): _origin(scenario.written, path, engines) for path in leaves(values)}
    for name in engines:
        if scenario.value_for(name, "kv_cache").blocks == "auto":
            origins[f"policies.{name}.kv_cache.blocks"] = "auto: from memory"
        if scenario.value_for(name, "max_model_len") is None and values["model"] is not None:
            origins[f"policies.{name}.max_model_len"] = "the model's limit"
    return origins


def dotted(path: KeyPath) -> str:
    """Return a path as one text."""
    return ".".join(map(str, path))


def leaves(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths of all values; a list counts as one value."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield path


def _policy_values(scenario: Scenario, resolved: ResolvedPolicy) -> dict[str, Any]:
    name, engine = resolved.name, resolved.engine
    policy = scenario.policy(name)
    key = "engine" if isinstance(policy, EnginePolicy) else "scheduler"
    own: dict[str, Any] = {key: policy.kind, **policy.model_dump(mode="json", by_alias=True)}
    for key in SHARED_KEYS:
        value = scenario.value_for(name, key)
        own[key] = value.model_dump(mode="json", by_alias=True) if isinstance(value, Settings) else value
    step_time = scenario.step_time_for(name)
    if isinstance(step_time, RooflineSettings):
        with about("step_time"):
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
    own["kv_cache"]["blocks"] = resolved.kv_cache.blocks
    own["max_model_len"] = resolved.longest_request_tokens
    return own


def _version_source(engine: ResolvedEngine | None, path: KeyPath) -> str | None:
    """Return the source of a default of the engine's version; None if the value has another origin."""
    if engine is None:
        return None
    origins = engine.cache_origins if path[2] == "kv_cache" else engine.origins
    source = origins.get(str(path[-1]))
    return None if source == GIVEN else source


def _origin(written: Written, path: KeyPath, engines: Mapping[str, ResolvedEngine | None]) -> str:
    flag = written.flag_for(path)
    if flag is not None:
        return flag.split()[0]
    if written.has(path):
        own = path[0] == "policies" and path[2] in SHARED_KEYS
        return "policy" if own else written.source
    if path[0] != "policies":
        return "default"
    source = _version_source(engines[str(path[1])], path)
    if source is not None:
        return f"version: {source}"
    # a policy's own mapping replaces the scenario's, except for kv_cache, which is merged key by key
    replaced = path[2] != "kv_cache" and written.has(path[:3])
    return _origin(written, path[2:], engines) if path[2] in SHARED_KEYS and not replaced else "default"
