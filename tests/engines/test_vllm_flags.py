"""What a version does not have is rejected in one line, and what is given wins."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.engines import ENGINES, Deployment, ResolvedEngine
from simqueue.errors import InputError, show
from simqueue.kvcache import KVCacheSettings


def resolved(
    version: str, *, max_model_len: int | None = None, kv: dict[str, Any] | None = None, **flags: Any
) -> ResolvedEngine:
    """Resolve vLLM on a large GPU."""
    deployment = Deployment("h100", 80 * 2**30, KVCacheSettings.model_validate(kv or {}), max_model_len)
    engine = ENGINES["vllm"]
    return engine.resolve(engine.Settings.model_validate({"version": version, **flags}), deployment)


@pytest.mark.parametrize(
    ("version", "nearest"),
    [
        ("0.15.0", "0.14.1 and 0.16.0"),
        ("0.32.5", "0.31.0 and 0.33.0"),
        ("0.1.0", "0.2.7"),
        ("1.0.0", "0.33.0"),
        ("0.10.1", "0.10.0 and 0.10.2"),
    ],
)
def test_an_unknown_version_names_its_neighbours(version: str, nearest: str) -> None:
    """Nothing is guessed between versions: the error has the nearest known versions, and all of them."""
    with pytest.raises(
        InputError, match=f"version = '{version}'.*nearest known: {nearest}; all known: 0.2.7"
    ) as caught:
        resolved(version)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("version", "flag", "value"),
    [
        ("0.18.0", "scheduler_reserve_full_isl", True),
        ("0.20.0", "watermark", 0.01),
        ("0.11.0", "async_scheduling", True),
        ("0.30.0", "long_prefill_token_threshold_adaptive", True),
        ("0.31.0", "performance_mode", "throughput"),
        ("0.6.3", "policy", "priority"),
        ("0.6.3", "long_prefill_token_threshold", 100),
        ("0.6.3", "watermark", 0.1),
        ("0.6.3", "async_scheduling", True),
        ("0.6.3", "use_v1", True),
        ("0.11.0", "use_v1", False),
        ("0.33.0", "use_v1", False),
        ("0.2.7", "enable_chunked_prefill", True),
        ("0.6.3", "enable_prefix_caching", True),
        ("0.8.5", "enable_chunked_prefill", False),
    ],
)
def test_a_flag_that_a_version_lacks_is_rejected(version: str, flag: str, value: Any) -> None:
    """The error names the flag, its value and the version."""
    with pytest.raises(InputError, match=f"{flag} = {show(value)}") as raised:
        resolved(version, **{flag: value})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("flags", "longest", "match"),
    [
        ({"max_num_batched_tokens": 8, "max_num_seqs": 9}, None, "must be at least max_num_seqs = 9"),
        (
            {"enable_chunked_prefill": False, "max_num_batched_tokens": 512},
            600,
            "must be at least max_model_len = 600",
        ),
    ],
)
def test_what_the_engine_rejects_is_rejected(flags: dict[str, Any], longest: int | None, match: str) -> None:
    """A budget below the seats, or below the longest prompt without chunking, does not start."""
    with pytest.raises(InputError, match=match):
        resolved("0.33.0", max_model_len=longest, **flags)


@pytest.mark.parametrize("value", ["lifo", 3])
def test_values_are_checked_like_all_settings(value: Any) -> None:
    """An unknown policy name is rejected by the settings themselves."""
    with pytest.raises(ValueError, match="policy"):
        resolved("0.33.0", policy=value)


def test_the_cache_takes_the_scenarios_keys_before_the_versions_defaults() -> None:
    """Block size, memory share, watermark and prefix caching can be kv_cache keys; the engine's flags override them."""
    kv = {"block_size": 32, "memory_share": 0.5, "watermark": 0.1, "prefix_caching": False}
    cache = resolved("0.33.0", kv=kv).cache
    assert (cache.block_size, cache.memory_share, cache.watermark, cache.prefix_caching) == (32, 0.5, 0.1, False)
    own = resolved("0.33.0", kv=kv, gpu_memory_utilization=0.7, watermark=0.2, enable_prefix_caching=True).cache
    assert (own.memory_share, own.watermark, own.prefix_caching) == (0.7, 0.2, True)


def test_the_null_block_is_counted_by_v1_only() -> None:
    """V1's pool has a block that is never used; its watermark includes it."""
    assert resolved("0.33.0").cache.reserved_blocks == 1
    assert resolved("0.6.3").cache.reserved_blocks == 0


@pytest.mark.parametrize(
    ("version", "key", "value", "reason"),
    [
        ("0.11.0", "watermark", 0.3, "vllm 0.11.0 has no such flag"),
        ("0.20.0", "watermark", 0.01, "vllm 0.20.0 has no such flag"),
        ("0.6.3", "watermark", 0.3, "V0 of vllm 0.6.3 has no such flag, or it is not modelled"),
        ("0.6.3", "prefix_caching", True, "the prefix cache of vLLM V0 is not modelled"),
        ("0.11.0", "layout", "contiguous", "vllm has only layout: paged"),
        ("0.6.3", "layout", "contiguous", "vllm has only layout: paged"),
    ],
)
def test_a_cache_key_that_a_version_lacks_is_rejected(version: str, key: str, value: Any, reason: str) -> None:
    """A key of `kv_cache` is checked as the flag of the same meaning is; the error names the key."""
    with pytest.raises(InputError) as raised:
        resolved(version, kv={key: value})
    assert str(raised.value) == f"kv_cache.{key} = {show(value)}: {reason}"


@pytest.mark.parametrize("version", ["0.6.3", "0.11.0", "0.33.0"])
def test_a_cache_key_with_its_default_is_accepted(version: str) -> None:
    """A resolved scenario has every key of `kv_cache`, and can be run again."""
    keys = {"layout": "paged", "watermark": 0.0, "prefix_caching": False}
    assert resolved(version, kv=keys).cache.watermark == 0.0
