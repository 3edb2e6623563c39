"""What SGLang lets a user set, and what is known of each version: its flags, defaults and rules.

The facts of each version are in ``sglang.yaml``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import Field

from simqueue.datafiles.limits import MOST_STEP_TOKENS
from simqueue.engines.versions import VersionFacts, read_versions
from simqueue.kvcache.radixtree import Eviction
from simqueue.kvcache.settings import MOST_BLOCK_TOKENS
from simqueue.schedulers.keys import MOST_SEATS, SglangPolicy
from simqueue.settings import Settings


class SglangFlags(Settings):
    """SGLang's own flags; flags that are not given take the default of the version."""

    version: str = Field(description="version of SGLang; `simqueue list engines` lists the known ones")
    schedule_policy: SglangPolicy | None = Field(None, description="order of waiting requests")
    max_running_requests: int | None = Field(
        None,
        ge=1,
        le=MOST_SEATS,
        description="maximum number of running requests; null: by the pool, 2048 to 4096 or half its tokens",
        json_schema_extra={"unit": "requests"},
    )
    max_prefill_tokens: int | None = Field(
        None,
        ge=1,
        le=MOST_STEP_TOKENS,
        description="maximum number of context tokens per prefill, the first request excepted",
        json_schema_extra={"unit": "tokens"},
    )
    chunked_prefill_size: int | None = Field(
        None,
        ge=-1,
        le=MOST_STEP_TOKENS,
        description="tokens of a prefill beyond which a prompt is cut; -1: never",
        json_schema_extra={"unit": "tokens"},
    )
    enable_mixed_chunk: bool = Field(False, description="whether running requests decode in the step of a prefill")
    schedule_conservativeness: float = Field(
        1.0, ge=0, description="factor of the share of outputs that is reserved for running requests"
    )
    disable_overlap_schedule: bool | None = Field(None, description="decide a step only when the one before has ended")
    disable_radix_cache: bool | None = Field(None, description="find no prefix again")
    radix_eviction_policy: Eviction | None = Field(
        None, description="which part of the tree is evicted first (from 0.5.6)"
    )
    page_size: int | None = Field(
        None,
        ge=1,
        le=MOST_BLOCK_TOKENS,
        description="tokens per page (1 before 0.5.6)",
        json_schema_extra={"unit": "tokens"},
    )
    mem_fraction_static: float | None = Field(
        None, gt=0, le=1, description="share of the GPU's memory for weights and KV; null: by version, GPU and flags"
    )
    enable_priority_scheduling: bool = Field(
        False, description="order by priority, and preempt for urgent requests (from 0.5.6)"
    )
    schedule_low_priority_values_first: bool = Field(
        False, description="whether small priorities are the urgent ones (from 0.5.6)"
    )
    priority_scheduling_preemption_threshold: int = Field(
        10, ge=0, description="difference of priorities above which a running request is preempted (from 0.5.6)"
    )
    prefill_decode_interval: int | None = Field(
        None, ge=0, description="decode steps after a prefill before the next prefill (from 0.5.22)"
    )
    prefill_max_requests: int | None = Field(
        None,
        ge=1,
        description="maximum number of requests per prefill (from 0.5.22)",
        json_schema_extra={"unit": "requests"},
    )
    retraction_policy: Literal["length", "priority"] = Field(
        "length",
        description="retracted first: the request with the fewest tokens, or the least urgent one (from 0.5.22)",
    )


class ChunkTier(Settings):
    """Defaults for GPUs with less memory than a limit."""

    below_mib: float | None = None
    chunk: int = Field(ge=1)
    graphs: int = Field(ge=1)
    graphs_tp4: int | None = Field(None, ge=1)


class Share(Settings):
    """mem_fraction_static from a number of GPUs on that share the model."""

    gpus: int = Field(ge=1)
    share: float = Field(gt=0, le=1)


class SglangFacts(VersionFacts):
    """Facts of one version. Names of rules are those of `SglangRules` and `RadixRules`."""

    checked: Literal["recorded", "source"]
    schedule_policy: SglangPolicy
    policies: tuple[SglangPolicy, ...] = Field(strict=False)
    overlap: bool
    unmodelled: tuple[str, ...] = Field((), strict=False)
    pages: bool
    evictions: tuple[Eviction, ...] = Field((), strict=False)
    priorities: bool
    newest_flags: bool
    tiers: tuple[ChunkTier, ...] = Field(strict=False)
    memory: Literal["by_tp", "formula"]
    shares: tuple[Share, ...] = Field(strict=False)
    gate: Literal["whole", "rest", "page"]
    fixed_reserve: bool
    spent_stops: bool
    full_only_if_served: bool
    empty_opens: bool
    merges_finished: bool
    filters_first: bool
    rows: Literal["batch", "free", "held"]
    ratio_resets: Literal["no_batch", "idle"]
    retracts: Literal["twenty", "next"]
    ratio_plus_one: bool
    puts: Literal["known", "prefilled", "stored"]
    skips_finishing: bool
    mixes_if_fits: bool
    refreshes_waiting: bool
    matches_all: bool
    in_batch_prefixes: bool
    clips_to_pool: bool
    cuts_prompts: bool
    requeues_preempted: bool
    recency: Literal["nodes", "path", "end"]
    counts_hits: bool
    splits_prompt: bool
    looks_after: Literal["put", "always", "never"]
    evicts: Literal["amount", "amount_short", "short"]


@cache
def sglang_versions() -> dict[str, SglangFacts]:
    """Return the facts of all known versions, oldest first."""
    return read_versions(files("simqueue.engines") / "sglang.yaml", SglangFacts)
