"""vLLM, by version: which scheduler, which rules, which defaults on which device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import Field, ValidationError

from simqueue.engines.base import CacheRules, Engine, SettledEngine, Surroundings
from simqueue.errors import InputError
from simqueue.settings import Settings, problems_of

if TYPE_CHECKING:
    from simqueue.engines.facts import Budget, VllmFacts
    from simqueue.kvcache import KVCache
    from simqueue.schedulers import Policy
    from simqueue.schedulers.door import Door

GIB = 2**30
CHUNKS_ABOVE_TOKENS = 32768
"""max_model_len above which V0 turns chunked prefill on by itself, from 0.5.5 on."""
GIVEN = "given"
SettingsT = TypeVar("SettingsT", bound=Settings)


class VllmFlags(Settings):
    """vLLM's own flags; what is not given takes the version's default."""

    version: str = Field(description="version of vLLM; `simqueue list engines` shows those that are known")
    usage: Literal["server", "offline"] = Field(
        "server", description="the API server or the offline LLM class; their default budgets differ"
    )
    use_v1: bool | None = Field(None, description="the V1 engine (environment variable VLLM_USE_V1)")
    max_num_seqs: int | None = Field(
        None, ge=1, description="requests that may run at one time", json_schema_extra={"unit": "requests"}
    )
    max_num_batched_tokens: int | None = Field(
        None, ge=1, description="token budget of a step", json_schema_extra={"unit": "tokens"}
    )
    policy: Literal["fcfs", "priority"] = Field("fcfs", description="order of the queue, and who is preempted")
    enable_chunked_prefill: bool | None = Field(None, description="whether prompts may be cut to the budget")
    long_prefill_token_threshold: int = Field(
        0,
        ge=0,
        description="most prompt tokens a request gets in a step; 0: no cap of its own",
        json_schema_extra={"unit": "tokens"},
    )
    long_prefill_token_threshold_adaptive: bool = Field(
        False, description="raise the cap to max_num_batched_tokens over the requests in the system (0.31 on)"
    )
    scheduler_reserve_full_isl: bool | None = Field(
        None, description="admit a request only if its whole known sequence fits the free blocks (0.19 on)"
    )
    watermark: float | None = Field(
        None, ge=0, lt=1, description="share of the pool that admissions leave free while others run (0.24 on)"
    )
    async_scheduling: bool | None = Field(None, description="plan the next step while one runs (0.13 on)")
    enable_prefix_caching: bool | None = Field(None, description="whether full blocks are found again")
    gpu_memory_utilization: float | None = Field(
        None, gt=0, le=1, description="share of the GPU's memory for weights and KV"
    )
    performance_mode: Literal["balanced", "throughput"] = Field(
        "balanced", description="throughput doubles the default budget and seats (0.33 on)"
    )


@dataclass
class _Chosen:
    """Values as they are decided, each with where it comes from."""

    source: str
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def settle(self, flag: str, given: Any, default: Any) -> Any:
        """Decide one flag: what was given, else the default."""
        self.values[flag] = default if given is None else given
        self.origins[flag] = self.source if given is None else GIVEN
        return self.values[flag]


class Vllm(Engine):
    """vLLM V0 and V1."""

    name: ClassVar[str] = "vllm"
    Settings: ClassVar[type[Settings]] = VllmFlags

    def settle(self, flags: VllmFlags, around: Surroundings) -> SettledEngine:
        """Decide every value of the scheduler and the KV cache."""
        from simqueue.engines.facts import vllm_facts  # noqa: PLC0415  (settings stay light to import)

        facts = vllm_facts(flags.version)
        chosen = _Chosen(facts.source)
        is_v1 = chosen.settle("use_v1", flags.use_v1, facts.engine == "v1")
        if (is_v1 and facts.v1 is None) or (not is_v1 and facts.v1 == "only"):
            raise _refusal("use_v1", is_v1, f"vllm {facts.version} has only {facts.engine.upper()}")
        make, cuts = (_v1 if is_v1 else _v0)(flags, facts, around, chosen)
        kv = around.kv_cache
        share = flags.gpu_memory_utilization
        if share is None and "memory_share" in kv.model_fields_set:
            share = kv.memory_share
        cache = CacheRules(
            block_size=kv.block_size if "block_size" in kv.model_fields_set else facts.block_size,
            memory_share=chosen.settle("gpu_memory_utilization", share, facts.gpu_memory_utilization),
            prefix_caching=_prefix_caching(flags, facts, around, chosen, is_v1=is_v1),
            unhashed_first=facts.unhashed_first,
            registration_lag=int(chosen.values.get("async_scheduling") or False),
            watermark=0.0 if not is_v1 else chosen.values["watermark"] or 0.0,
            reserved_blocks=int(is_v1),
        )
        title = f"vllm {facts.version} ({'V1' if is_v1 else 'V0'}, {flags.usage})"
        return SettledEngine(title, chosen.values, chosen.origins, cache, cuts, make)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a version."""
        from simqueue.engines.facts import vllm_versions  # noqa: PLC0415  (settings stay light to import)

        return [
            {
                "engine": "vllm",
                "version": facts.version,
                "scheduler": facts.engine.upper() + (" (V1 opt-in)" if facts.v1 == "opt_in" else ""),
                "prefix caching": _on_off(facts.enable_prefix_caching),
                "async": _on_off(facts.async_scheduling),
                "reserve full isl": _on_off(facts.scheduler_reserve_full_isl),
                "source": facts.source,
            }
            for facts in vllm_versions().values()
        ]


def _refusal(flag: str, value: object, why: str) -> InputError:
    """Return the error about one flag and the value that it has, given or by default."""
    return InputError(why, flag, value=value)


def _validated(settings: type[SettingsT], values: Mapping[str, Any]) -> SettingsT:
    """Return the scheduler's settings; what breaks one of its rules is an error about that flag."""
    try:
        return settings.model_validate(values)
    except ValidationError as error:
        raise InputError.of(problems_of(error)) from None


def _on_off(value: bool | None) -> str:
    return "-" if value is None else ("on" if value else "off")


def _prefix_caching(flags: VllmFlags, facts: VllmFacts, around: Surroundings, chosen: _Chosen, *, is_v1: bool) -> bool:
    given = flags.enable_prefix_caching
    if given is None:
        given = around.kv_cache.prefix_caching
    on = bool(chosen.settle("enable_prefix_caching", given, facts.enable_prefix_caching and is_v1))
    if on and not is_v1:
        raise _refusal("enable_prefix_caching", on, "the prefix cache of vLLM V0 is not modelled")
    return on


def _v1(flags: VllmFlags, facts: VllmFacts, around: Surroundings, chosen: _Chosen) -> tuple[Any, bool]:
    from simqueue.schedulers.keys import VllmV1Settings  # noqa: PLC0415  (settings stay light to import)
    from simqueue.schedulers.vllm_v1 import VllmV1, VllmV1Rules  # noqa: PLC0415  (settings stay light to import)

    _refuse_missing(flags, facts)
    chunked = chosen.settle("enable_chunked_prefill", flags.enable_chunked_prefill, True)
    if not chunked and facts.unchunked_overflow is None:
        why = f"how V1 of vllm {facts.version} runs without chunking is not modelled"
        raise _refusal("enable_chunked_prefill", chunked, why)
    tokens, seqs = _budget(flags, facts, around, chosen, chunked=chunked)
    watermark = flags.watermark
    if watermark is None and "watermark" in around.kv_cache.model_fields_set:
        watermark = around.kv_cache.watermark
    chosen.settle("watermark", watermark, facts.watermark)
    settings = _validated(
        VllmV1Settings,
        {
            "max_num_seqs": seqs,
            "max_num_batched_tokens": tokens,
            "policy": chosen.settle("policy", flags.policy, "fcfs"),
            "enable_chunked_prefill": chunked,
            "long_prefill_token_threshold": chosen.settle(
                "long_prefill_token_threshold", flags.long_prefill_token_threshold, 0
            ),
            "long_prefill_token_threshold_adaptive": flags.long_prefill_token_threshold_adaptive,
            "scheduler_reserve_full_isl": bool(
                chosen.settle(
                    "scheduler_reserve_full_isl", flags.scheduler_reserve_full_isl, facts.scheduler_reserve_full_isl
                )
            ),
            "async_scheduling": bool(chosen.settle("async_scheduling", flags.async_scheduling, facts.async_scheduling)),
        },
    )
    rules = VllmV1Rules(facts.lone_request_uncapped, facts.unchunked_overflow or "stop", facts.ties_by_id)

    def make(kv: KVCache, door: Door) -> Policy:
        return VllmV1(settings, kv, door, rules)

    return make, facts.over_length == "cut" or flags.usage == "offline"


def _refuse_missing(flags: VllmFlags, facts: VllmFacts) -> None:
    """Refuse flags that the version does not have."""
    missing = {
        "scheduler_reserve_full_isl": facts.scheduler_reserve_full_isl is None,
        "watermark": facts.watermark is None,
        "async_scheduling": facts.async_scheduling is None,
        "long_prefill_token_threshold_adaptive": not facts.threshold_adaptive,
    }
    for flag, is_missing in missing.items():
        value = getattr(flags, flag)
        if is_missing and value:
            raise _refusal(flag, value, f"vllm {facts.version} has no such flag")
    if flags.performance_mode != "balanced" and not facts.performance_mode:
        raise _refusal("performance_mode", flags.performance_mode, f"vllm {facts.version} has no such flag")


def _budget(
    flags: VllmFlags, facts: VllmFacts, around: Surroundings, chosen: _Chosen, *, chunked: bool
) -> tuple[int, int]:
    """Return token budget and seats: given, or by usage and device, as the engine adapts them to each other."""
    default = _tier(facts, around, flags.usage)
    factor = 2 if flags.performance_mode == "throughput" else 1
    seqs = chosen.settle("max_num_seqs", flags.max_num_seqs, default.seqs * factor)
    longest = around.max_model_len
    tokens = default.tokens * factor
    if longest is not None:
        tokens = min(tokens, seqs * longest) if chunked else max(tokens, longest)
    tokens = chosen.settle("max_num_batched_tokens", flags.max_num_batched_tokens, tokens)
    if flags.max_num_seqs is None:
        seqs = chosen.values["max_num_seqs"] = min(seqs, tokens)
    if not chunked and longest is not None and tokens < longest:
        why = f"must be at least max_model_len = {longest} when enable_chunked_prefill is false"
        raise _refusal("max_num_batched_tokens", tokens, why)
    return tokens, seqs


def _tier(facts: VllmFacts, around: Surroundings, usage: Literal["server", "offline"]) -> Budget:
    """Return the defaults for this device; one whose memory nobody stated counts as small, as it does in vLLM."""
    memory_gib = (around.gpu_memory_bytes or 0) / GIB
    name = (around.gpu_name or "").lower()
    tier = next(tier for tier in facts.tiers if tier.holds_for(name, memory_gib))
    return tier.server if usage == "server" else tier.offline


def _v0(flags: VllmFlags, facts: VllmFacts, around: Surroundings, chosen: _Chosen) -> tuple[Any, bool]:
    from simqueue.schedulers.keys import VllmV0Settings  # noqa: PLC0415  (settings stay light to import)
    from simqueue.schedulers.vllm_v0 import VllmV0  # noqa: PLC0415  (settings stay light to import)

    for flag, neutral in (
        ("policy", "fcfs"),
        ("long_prefill_token_threshold", 0),
        ("long_prefill_token_threshold_adaptive", False),
        ("scheduler_reserve_full_isl", None),
        ("watermark", None),
        ("async_scheduling", None),
        ("performance_mode", "balanced"),
    ):
        value = getattr(flags, flag)
        if value != neutral:
            raise _refusal(flag, value, f"V0 of vllm {facts.version} has no such flag, or it is not modelled")
    longest = around.max_model_len
    is_long = longest is not None and longest > CHUNKS_ABOVE_TOKENS
    by_itself = facts.chunked_prefill == "on_when_long" and is_long
    chunked = chosen.settle("enable_chunked_prefill", flags.enable_chunked_prefill, by_itself)
    if chunked and facts.chunked_prefill == "never":
        raise _refusal("enable_chunked_prefill", chunked, f"vllm {facts.version} has no such flag")
    tokens = facts.v0_chunked_tokens if chunked else max(longest or 0, 2048)
    settings = _validated(
        VllmV0Settings,
        {
            "max_num_seqs": chosen.settle("max_num_seqs", flags.max_num_seqs, facts.v0_max_num_seqs),
            "max_num_batched_tokens": chosen.settle("max_num_batched_tokens", flags.max_num_batched_tokens, tokens),
            "enable_chunked_prefill": chunked,
            "padded_prompts": facts.padded_prompts,
            "watermark": facts.v0_watermark,
        },
    )

    def make(kv: KVCache, door: Door) -> Policy:
        return VllmV0(settings, kv, door)

    return make, False
