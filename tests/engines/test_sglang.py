"""SGLang by version: defaults on devices, flags that a version does not have, and what a scenario makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.engines import ENGINES, Deployment, engine_rows
from simqueue.engines.sglang_facts import SglangFlags, sglang_versions
from simqueue.errors import InputError
from simqueue.experiment.build import build
from simqueue.kvcache import KVCacheSettings
from simqueue.kvcache.radix import RadixKVCache
from simqueue.scenario import from_mapping
from simqueue.schedulers.sglang import Sglang

MIB = 2**20
A10, L40S, H100, H200, B200 = 23028, 46068, 81559, 143771, 183359
"""Memory that devices report, in MiB."""


def resolved(version: str, memory_mib: int | None = H100, tensor_parallel: int = 1, **flags: Any) -> dict[str, Any]:
    """Return the values of all flags on a device."""
    memory = None if memory_mib is None else memory_mib * MIB
    deployment = Deployment(None, memory, KVCacheSettings(), None, tensor_parallel)
    return dict(ENGINES["sglang"].resolve(SglangFlags(version=version, **flags), deployment).values)


@pytest.mark.parametrize(
    ("version", "memory_mib", "chunk"),
    [
        *(("0.3.6", A10, 8192), ("0.4.1", A10, 2048), ("0.5.22", A10, 4096)),
        *(("0.4.0", A10, 2048), ("0.4.0", L40S, 8192), ("0.4.0", B200, 8192)),
        *(("0.5.6", A10, 2048), ("0.5.6", L40S, 4096), ("0.5.6", H100, 8192), ("0.5.6", H200, 8192)),
        *(("0.5.6", B200, 16384), ("0.5.6", None, 4096), ("0.5.23", A10, 4096), ("0.5.23", B200, 16384)),
    ],
)
def test_chunk_by_memory(version: str, memory_mib: int | None, chunk: int) -> None:
    """chunked_prefill_size follows the memory of the device, as in the source of the version."""
    assert resolved(version, memory_mib)["chunked_prefill_size"] == chunk


def test_default_order_is_that_of_the_version() -> None:
    """lpm in 0.4.0, fcfs since; overlap is on in all of them."""
    orders = {version: resolved(version)["schedule_policy"] for version in ("0.4.0", "0.4.1", "0.5.6", "0.5.23")}
    assert orders == {"0.4.0": "lpm", "0.4.1": "lpm", "0.5.6": "fcfs", "0.5.23": "fcfs"}
    assert not resolved("0.4.0")["disable_overlap_schedule"]


@pytest.mark.parametrize(
    ("version", "memory_mib", "tensor_parallel", "share"),
    [
        *(("0.4.0", H100, 1, 0.88), ("0.4.0", H100, 2, 0.87), ("0.4.0", H100, 8, 0.81), ("0.3.6", H100, 8, 0.82)),
        ("0.5.6", H100, 1, round((H100 - 512 - 1.5 * 8192 - 2 * 256 - 128) / H100, 3)),
        ("0.5.6", H100, 4, round((H100 - 512 - 1.5 * 8192 - 2 * 512 - 512) / H100, 3)),
        ("0.5.6", L40S, 1, round((L40S - 512 - 1.5 * 4096 - 2 * 32 - 128) / L40S, 3)),
        ("0.5.6", None, 1, 0.88),
    ],
)
def test_share_of_memory(version: str, memory_mib: int | None, tensor_parallel: int, share: float) -> None:
    """mem_fraction_static: by the number of GPUs in 0.4.0, from what the engine keeps free since."""
    assert resolved(version, memory_mib, tensor_parallel)["mem_fraction_static"] == share


@pytest.mark.parametrize(
    ("version", "flags", "key"),
    [
        ("0.3.0", {}, "version"),
        ("0.3.6", {"enable_mixed_chunk": True}, "enable_mixed_chunk"),
        ("0.3.6", {"disable_radix_cache": True}, "disable_radix_cache"),
        ("0.4.0", {"page_size": 16}, "page_size"),
        ("0.4.0", {"schedule_policy": "hrrn"}, "schedule_policy"),
        ("0.4.0", {"enable_priority_scheduling": True}, "enable_priority_scheduling"),
        ("0.5.6", {"retraction_policy": "priority"}, "retraction_policy"),
        ("0.5.6", {"prefill_max_requests": 3}, "prefill_max_requests"),
        ("0.5.6", {"radix_eviction_policy": "slru"}, "radix_eviction_policy"),
        ("0.5.6", {"schedule_policy": "routing-key"}, "schedule_policy"),
        ("0.5.6", {"page_size": 64, "chunked_prefill_size": 32}, "chunked_prefill_size"),
        ("0.5.23", {"enable_priority_scheduling": True, "schedule_policy": "lpm"}, "schedule_policy"),
        ("0.5.23", {"chunked_prefill_size": 0}, "chunked_prefill_size"),
        ("0.5.7", {}, "version"),
    ],
)
def test_what_a_version_does_not_have_is_an_error(version: str, flags: dict[str, Any], key: str) -> None:
    """The flag is named."""
    with pytest.raises(InputError) as caught:
        resolved(version, **flags)
    assert caught.value.problems[0].path[-1] == key


def scenario(**policy: Any) -> dict[str, Any]:
    """Return a small scenario with SGLang."""
    return {
        "name": "small",
        "step_time": {"kind": "linear", "overhead_s": 0.01},
        "kv_cache": {"blocks": 1000},
        "workload": {"requests": [{"arrival_s": 0, "prompt_tokens": 10, "output_tokens": 5}]},
        "policies": {"a": {"engine": "sglang", "version": "0.5.23", **policy}},
    }


def test_a_scenario_makes_the_scheduler_and_its_tree() -> None:
    """Flags of the policy and keys of the cache arrive."""
    made = from_mapping(scenario(page_size=16, kv_cache={"blocks": 50}, schedule_policy="lpm")).resolve()
    policy = build(made.policy("a"), reject_oversized=True)
    assert isinstance(policy, Sglang)
    assert isinstance(policy.kv, RadixKVCache)
    assert (policy.kv.block_size, policy.kv.total, policy.flags.schedule_policy) == (16, 50, "lpm")
    assert (policy.depth, policy.most_requests) == (2, 400)


@pytest.mark.parametrize(
    ("keys", "caches"),
    [
        ({}, True),
        ({"disable_radix_cache": True}, False),
        ({"kv_cache": {"blocks": 50, "prefix_caching": False}}, False),
        ({"kv_cache": {"blocks": 50, "prefix_caching": False}, "disable_radix_cache": False}, True),
    ],
)
def test_the_tree_can_be_off(keys: dict[str, Any], caches: bool) -> None:
    """By the engine's flag, or by the key of the cache, over which the flag wins."""
    made = from_mapping(scenario(**keys)).resolve()
    policy = build(made.policy("a"), reject_oversized=True)
    assert isinstance(policy, Sglang)
    assert policy.pool.caches is caches


def test_a_cache_that_is_not_the_engines_is_an_error() -> None:
    """Contiguous reservations and a watermark do not exist in SGLang."""
    for keys in ({"layout": "contiguous"}, {"watermark": 0.1}):
        with pytest.raises(InputError, match="sglang"):
            from_mapping(scenario(kv_cache={"blocks": 50, **keys})).resolve()


def test_every_version_has_a_row() -> None:
    """With what it was checked against."""
    rows = {row["version"]: row for row in engine_rows() if row["engine"] == "sglang"}
    assert list(rows) == list(sglang_versions())
    assert {version for version, row in rows.items() if row["checked"] == "recorded"} == {"0.4.0", "0.5.6", "0.5.23"}
