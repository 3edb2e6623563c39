"""Every value of a scenario is decided here, once: a policy's own key, else the scenario's, else the default."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, cast

from simqueue.engines import ENGINES, CacheRules, Deployment, ResolvedEngine
from simqueue.engines.base import Maker
from simqueue.errors import InputError, Problem, about
from simqueue.frontend import FrontEndSettings, FrontEndTimes
from simqueue.hardware import Gpu, Model, load_gpu, load_model
from simqueue.kvcache import KVCache
from simqueue.kvcache.settings import KVCacheSettings
from simqueue.scenario.groups import Part, parts_of
from simqueue.scenario.measured import measured_card, other_version, with_measured_servers
from simqueue.scenario.policies import EnginePolicy, PolicySettings
from simqueue.scenario.pool import Hardware, Lengths, pool_blocks, unknown_activations, unstartable
from simqueue.scenario.prices import usd_per_gpu_hour
from simqueue.scenario.resolve_fleet import resolved_fleet
from simqueue.scenario.resolved import ResolvedCache, ResolvedPolicy, ResolvedScenario
from simqueue.scenario.systems import GroupOfSystem, System
from simqueue.scenario.values import origins_of, values_of
from simqueue.schedulers import SCHEDULERS, Policy
from simqueue.schedulers.limits import RequestLimits
from simqueue.settings import Settings
from simqueue.steptime import RooflineSettings, StepTime
from simqueue.steptime.build import build as build_step_time
from simqueue.steptime.model_error import is_of
from simqueue.steptime.preset import load_preset
from simqueue.steptime.proposal import proposal
from simqueue.steptime.scaled import scaled
from simqueue.workload.clients import class_label
from simqueue.workload.settings import WorkloadSettings
from simqueue.workload.slo import SloSettings

if TYPE_CHECKING:
    from simqueue.scenario.model import Scenario


def resolve(scenario: Scenario) -> ResolvedScenario:
    """Return a scenario with every value decided.

    Raises
    ------
    InputError
        Names and files that cannot be had, versions and flags that do not exist, weights that do not fit the GPU; the
        problems of all policies together.
    """
    scenario, measured = with_measured_servers(scenario)
    systems = _systems(scenario)
    values = values_of(scenario, systems)
    workloads = _workloads(scenario)
    return ResolvedScenario(
        name=scenario.name,
        seed=scenario.seed,
        policies=tuple(system.policy for system in systems),
        workloads=workloads,
        slo=_limits((scenario.workload.slo if scenario.workload is not None else None) or scenario.slo),
        class_slos=_class_slos(workloads, scenario.slo),
        horizon_s=scenario.horizon_s,
        warmup_s=scenario.warmup_s,
        replications=scenario.replications,
        precision=scenario.precision,
        rejects_unservable=scenario.unservable == "reject",
        max_queued_requests=scenario.max_queued_requests,
        clock_resolution_s=scenario.clock_resolution_s,
        fast=scenario.fast,
        written=scenario.written,
        values=values,
        origins=origins_of(values, scenario, systems) | measured,
    )


def _systems(scenario: Scenario) -> list[System]:
    """Return all policies with their fleets, or raise the problems of all of them together."""
    systems, problems = list[System](), list[Problem]()
    for name in scenario.policies:
        parts = dict[str | None, GroupOfSystem]()
        for part in parts_of(scenario, name):
            try:
                parts[part.group] = _part(part, scenario)
            except InputError as error:
                problems += part.scenario.written.problems(error, name)
        if problems:
            continue
        try:
            systems.append(_system(scenario, name, parts))
        except InputError as error:
            problems += scenario.written.problems(error, name)
    if problems:
        raise scenario.written.complaint(problems)
    return systems


def _part(part: Part, scenario: Scenario) -> GroupOfSystem:
    """Return what a policy or a group runs."""
    own, measured = (part.scenario, {}) if part.group is None else with_measured_servers(part.scenario)
    above = f"policies.{part.policy}."
    return GroupOfSystem(
        scenario=own,
        policy=_policy(own, part.policy),
        is_other=own.policy(part.policy).kind != scenario.policy(part.policy).kind,
        measured={path.removeprefix(above): origin for path, origin in measured.items()},
    )


def _system(scenario: Scenario, name: str, parts: Mapping[str | None, GroupOfSystem]) -> System:
    """Return a policy with its fleet. A policy with groups stands for the first of them where one is asked for."""
    fleet = scenario.fleet_of(name)
    groups = {group: part for group, part in parts.items() if group is not None}
    policies = [part.policy for part in parts.values()]
    policy = policies[0]
    if groups:
        lines = [f"group {group}: {line}" for group, part in groups.items() for line in part.policy.warnings]
        policy = replace(policy, warnings=tuple(lines))
    if fleet is not None:
        found = resolved_fleet(fleet, policies)
        policy = replace(policy, fleet=None if found.has_no_choice else found)
    return System(policy, fleet, groups, scenario.written)


def _policy(scenario: Scenario, name: str) -> ResolvedPolicy:
    """Return one policy; errors are about the policy's bare keys."""
    policy = scenario.policy(name)
    served, note = _served(scenario, policy)
    hardware = Hardware(served, _gpu(scenario, name), scenario.value_for(name, "tensor_parallel"))
    model, gpu, tensor_parallel = hardware.model, hardware.gpu, hardware.tensor_parallel
    settings = policy.own_settings()
    longest = _longest_request(scenario.value_for(name, "max_model_len"), model)
    cache: KVCacheSettings = scenario.value_for(name, "kv_cache")
    engine = _engine(policy.kind, settings, hardware, cache, longest) if isinstance(policy, EnginePolicy) else None
    resolved_cache, doubts = (
        (_cache(cache, None, longest, hardware), ())
        if engine is None
        else _engine_cache(scenario, name, engine, hardware, longest)
    )
    return ResolvedPolicy(
        name=name,
        scheduler=policy.kind,
        settings=settings,
        engine=engine,
        make=_maker(policy.kind, settings) if engine is None else engine.make,
        model=model,
        gpu=gpu,
        tensor_parallel=tensor_parallel,
        usd_per_gpu_hour=usd_per_gpu_hour(scenario.value_for(name, "usd_per_gpu_hour"), gpu),
        step_time=_step_time(scenario, name, hardware),
        front_end=_front_end(scenario.value_for(name, "front_end")),
        kv_cache=resolved_cache,
        longest_request_tokens=longest,
        warnings=tuple(filter(None, (note, *doubts, *_about_step_time(scenario, name, hardware)))),
    )


def _model(scenario: Scenario) -> Model | None:
    if scenario.model is None:
        return None
    with about("model"):
        model = load_model(scenario.model, scenario.base_dir)
    stored = scenario.dtype
    return model if stored is None else model.with_precision(stored.weights, stored.kv, stored.all)


def _served(scenario: Scenario, policy: PolicySettings) -> tuple[Model | None, str | None]:
    """Return the model in the number formats in which it is served, and a note if an engine changes them."""
    model = _model(scenario)
    is_said = scenario.dtype is not None and scenario.dtype.all is not None
    if model is None or is_said or not isinstance(policy, EnginePolicy):
        return model, None
    return ENGINES[policy.kind].served(model)


def _gpu(scenario: Scenario, policy_name: str) -> Gpu | None:
    gpu = scenario.value_for(policy_name, "gpu")
    if gpu is None:
        return None
    with about("gpu"):
        return load_gpu(gpu, scenario.base_dir)


def _longest_request(max_model_len: int | None, model: Model | None) -> int | None:
    """Return the most tokens of a request: max_model_len, else what the model was made for, else None."""
    return model.max_position if max_model_len is None and model is not None else max_model_len


def _engine(
    name: str, flags: Settings, hardware: Hardware, cache: KVCacheSettings, longest_tokens: int | None
) -> ResolvedEngine:
    gpu = hardware.gpu
    deployment = Deployment(
        gpu_name=None if gpu is None else f"{gpu.name} {gpu.description}",
        gpu_memory_bytes=None if gpu is None else gpu.memory_bytes,
        kv_cache=cache,
        max_model_len=longest_tokens,
        tensor_parallel=hardware.tensor_parallel,
    )
    return ENGINES[name].resolve(flags, deployment)


def _lengths(scenario: Scenario, name: str, hardware: Hardware, longest_tokens: int) -> Lengths:
    """Return the max_model_len of a policy with an engine, and what others would give."""
    policy, keys = scenario.policy(name), scenario.value_for(name, "kv_cache")

    def tokens_at(length: int) -> int:
        try:
            other = _engine(policy.kind, policy.own_settings(), hardware, keys, length)
            return pool_blocks(keys, other.cache, hardware) * other.cache.block_size
        except InputError:
            return 0

    is_models = scenario.value_for(name, "max_model_len") is None
    return Lengths(longest_tokens, is_models, tokens_at, ENGINES[policy.kind].length_steps)


def _engine_cache(
    scenario: Scenario, name: str, engine: ResolvedEngine, hardware: Hardware, longest_tokens: int | None
) -> tuple[ResolvedCache, tuple[str, ...]]:
    """Return the KV cache of an engine, and what is doubtful about it; InputError if the engine would not start.

    A number of blocks that was written down is a supposition, so that with it the engine need not start.
    """
    keys: KVCacheSettings = scenario.value_for(name, "kv_cache")
    is_sized = keys.blocks == "auto"
    bound = longest_tokens is not None and engine.needs_one_request
    lengths = _lengths(scenario, name, hardware, longest_tokens) if bound and longest_tokens is not None else None
    try:
        cache = _cache(keys, engine, longest_tokens, hardware)
    except InputError as error:
        advice = None if lengths is None or not is_sized else lengths.advice
        if advice is None:
            raise
        raise InputError.of(replace(found, text=f"{found.text}; {advice}") for found in error.problems) from None
    refusal = None if lengths is None else unstartable(engine, cache.blocks, lengths)
    if refusal is not None and is_sized and scenario.unstartable == "refuse":
        raise InputError(f"{refusal} (or give unstartable: warn)", "max_model_len")
    doubts = (unknown_activations(keys, engine.cache, hardware.model), refusal)
    return cache, tuple(doubt for doubt in doubts if doubt is not None)


def _maker(scheduler: str, settings: Settings) -> Maker:
    # every policy class takes its settings, a KV cache and admission rules; `Policy` itself has no constructor
    policy_class = cast("Callable[[Settings, KVCache, RequestLimits], Policy]", SCHEDULERS[scheduler])
    return partial(policy_class, settings)


def _step_time(scenario: Scenario, name: str, on: Hardware) -> StepTime:
    settings = scenario.step_time_for(name)
    file_key = {"roofline": ("preset",), "table": ("path",)}.get(settings.kind, ())
    with about("step_time", *file_key):
        built = build_step_time(settings, on.model, on.gpu, on.tensor_parallel, scenario.base_dir)
    return scaled(built, scenario.value_for(name, "step_time_factor"))


def _front_end(settings: FrontEndSettings | None) -> FrontEndTimes | None:
    return None if settings is None else settings.times()


def _about_step_time(scenario: Scenario, name: str, hardware: Hardware) -> Iterator[str | None]:
    """Yield what is doubtful about the source of the step times; None: nothing."""
    policy, settings = scenario.policy(name), scenario.step_time_for(name)
    yield other_version(policy, measured_card(scenario, name))
    model, gpu = hardware.model, hardware.gpu
    if not isinstance(settings, RooflineSettings) or model is None or gpu is None:
        return
    engine = policy.kind if isinstance(policy, EnginePolicy) else None
    if not settings.is_chosen:
        whole = settings.expert_parallel
        yield proposal(model, gpu, hardware.tensor_parallel, engine, expert_parallel=whole)
        return
    card = load_preset(settings.preset, scenario.base_dir).card
    if engine is not None and not is_of(card, engine):
        yield f"step_time: preset {settings.preset} is of {card.engine}; the policy has the rules of {engine}"


def _cache(
    keys: KVCacheSettings,
    engine: ResolvedEngine | None,
    longest_tokens: int | None,
    hardware: Hardware,
) -> ResolvedCache:
    """Return the KV cache as the engine has it, else as the keys say."""
    rules = (
        CacheRules(keys.block_size, keys.memory_share, bool(keys.prefix_caching), watermark=keys.watermark)
        if engine is None
        else engine.cache
    )
    reserve: int | Literal["request_max"] | None = None
    if keys.layout == "contiguous":
        if rules.prefix_caching:
            raise InputError("goes with kv_cache.layout: paged only", "kv_cache", "prefix_caching", value=True)
        if keys.reserve == "model_max" and longest_tokens is None:
            raise InputError("must be given with kv_cache.reserve: model_max", "max_model_len")
        reserve = longest_tokens if keys.reserve == "model_max" else "request_max"
    return ResolvedCache(keys.layout, rules, pool_blocks(keys, rules, hardware), reserve)


def _workloads(scenario: Scenario) -> dict[str | None, WorkloadSettings]:
    return {None: scenario.workload} if scenario.workload is not None else dict((scenario.workloads or {}).items())


def _class_slos(
    workloads: Mapping[str | None, WorkloadSettings], default: SloSettings | None
) -> dict[str, dict[str, float]]:
    """Return the limits of each class of requests that has its own, by its name in tables."""
    limits: dict[str, dict[str, float]] = {}
    for name, workload in workloads.items():
        own = workload.slo or default
        kinds = (workload.classes or {}).items()
        labels = {name: own} | {class_label(name, kind): found.slo or own for kind, found in kinds}
        limits |= {label: found for label, slo in labels.items() if label is not None and (found := _limits(slo))}
    return limits


def _limits(slo: SloSettings | None) -> dict[str, float] | None:
    return None if slo is None else slo.given
