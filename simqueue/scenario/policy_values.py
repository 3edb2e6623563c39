"""The values of a policy as JSON has them, and where each of them comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simqueue.engines import GIVEN, ResolvedEngine
from simqueue.errors import KeyPath, about
from simqueue.scenario.policies import EnginePolicy
from simqueue.scenario.written import SHARED_KEYS, SYSTEM_KEYS, Written
from simqueue.settings import Settings
from simqueue.steptime import RooflineSettings

if TYPE_CHECKING:
    from simqueue.scenario.model import Scenario
    from simqueue.scenario.resolved import ResolvedPolicy

DEFAULT = "default"


def given_values(scenario: Scenario, name: str) -> dict[str, Any]:
    """Return the keys of a policy without its fleet: its own, those of the scenario, and plain defaults."""
    policy = scenario.policy(name)
    key = "engine" if isinstance(policy, EnginePolicy) else "scheduler"
    own: dict[str, Any] = {key: policy.kind, **policy.model_dump(mode="json", by_alias=True, exclude={"fleet"})}
    for key in SYSTEM_KEYS:
        value = scenario.value_for(name, key)
        own[key] = value.model_dump(mode="json", by_alias=True) if isinstance(value, Settings) else value
    return own


def policy_values(scenario: Scenario, resolved: ResolvedPolicy) -> dict[str, Any]:
    """Return every value that the replicas of a policy run with."""
    engine, own = resolved.engine, given_values(scenario, resolved.name)
    step_time = scenario.step_time_for(resolved.name)
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


def computed_origins(scenario: Scenario, name: str) -> dict[str, str]:
    """Return from what the values of a policy were computed that no key and no default gives, by their dotted path."""
    origins: dict[str, str] = {}
    if scenario.value_for(name, "kv_cache").blocks == "auto":
        origins["kv_cache.blocks"] = "auto: from memory"
    if scenario.value_for(name, "max_model_len") is None and scenario.model is not None:
        origins["max_model_len"] = "the model's limit"
    return origins


def origin_of(written: Written, path: KeyPath, engine: ResolvedEngine | None) -> str:
    """Return where a value comes from.

    Parameters
    ----------
    written : Written
    path : tuple of str or int
        From the top of the scenario; a key of a policy begins with ``policies``.
    engine : ResolvedEngine or None
        That of the policy; None: it has none, or `path` is of no policy.
    """
    given = written_origin(written, path)
    if given is not None:
        return given
    if path[0] != "policies":
        return DEFAULT
    source = version_source(engine, path[2:])
    if source is not None:
        return source
    # a policy's own mapping replaces the scenario's, except for kv_cache, which is merged key by key
    replaced = path[2] != "kv_cache" and written.has(path[:3])
    return origin_of(written, path[2:], engine) if path[2] in SHARED_KEYS and not replaced else DEFAULT


def written_origin(written: Written, path: KeyPath) -> str | None:
    """Return where the value at a path was written; None if it was not."""
    flag = written.flag_for(path)
    if flag is not None:
        return flag.split()[0]
    if not written.has(path):
        return None
    return "policy" if path[0] == "policies" and path[2] in SHARED_KEYS else written.source


def version_source(engine: ResolvedEngine | None, key: KeyPath) -> str | None:
    """Return the source of a default of the engine's version; None if the value has another origin."""
    if engine is None:
        return None
    origins = engine.cache_origins if key[0] == "kv_cache" else engine.origins
    source = origins.get(str(key[-1]))
    return None if source is None or source == GIVEN else f"version: {source}"
