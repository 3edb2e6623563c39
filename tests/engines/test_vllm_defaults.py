"""vLLM's defaults by version, usage and device, written from the engine's own sources and not from our data file.

The values are those of ``engine/arg_utils.py``, ``config.py`` and ``config/`` in the released packages.
"""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.engines import ENGINES, Deployment, ResolvedEngine
from simqueue.engines.vllm_facts import vllm_versions
from simqueue.kvcache import KVCacheSettings

GIB = 2**30
DEVICES = {
    "H100-80G": ("NVIDIA H100 80GB HBM3", 79.6),
    "H200": ("NVIDIA H200", 139.8),
    "A100-80G": ("NVIDIA A100-SXM4-80GB", 79.3),
    "A100-40G": ("NVIDIA A100-SXM4-40GB", 39.4),
    "L40S": ("NVIDIA L40S", 44.4),
    "L4": ("NVIDIA L4", 22.0),
    "A10": ("NVIDIA A10G", 22.1),
    "RTX 4090": ("NVIDIA GeForce RTX 4090", 23.5),
    "B200": ("NVIDIA B200", 178.4),
    "MI300X": ("AMD Instinct MI300X", 191.5),
    "GB10": ("NVIDIA GB10", 119.6),
    "unnamed": (None, None),
}


def resolved(
    version: str,
    device: str = "H100-80G",
    *,
    max_model_len: int | None = None,
    kv_cache: dict[str, Any] | None = None,
    **flags: Any,
) -> ResolvedEngine:
    """Resolve vLLM for a device."""
    engine = ENGINES["vllm"]
    name, gib = DEVICES[device]
    deployment = Deployment(
        name, None if gib is None else round(gib * GIB), KVCacheSettings.model_validate(kv_cache or {}), max_model_len
    )
    return engine.resolve(engine.Settings.model_validate({"version": version, **flags}), deployment)


def budget(version: str, device: str, usage: str, **flags: Any) -> tuple[int, int]:
    """Return default tokens and seats."""
    values = resolved(version, device, usage=usage, **flags).values
    return values["max_num_batched_tokens"], values["max_num_seqs"]


SMALL_1024 = ((8192, 1024), (2048, 1024))
SMALL = ((8192, 256), (2048, 256))
BIG = ((16384, 1024), (8192, 1024))
HUGE = ((16384, 1024), (16384, 1024))
"""(offline, server), each (tokens, seats)."""

EVERYWHERE = tuple(DEVICES)
BY_NAME = {"H100-80G", "H200"}
FROM_70_GIB = {"H100-80G", "H200", "A100-80G", "B200", "MI300X", "GB10"}
NOT_A100 = FROM_70_GIB - {"A100-80G"}
FROM_160_GIB = {"B200", "MI300X"}

ROWS: list[tuple[tuple[str, ...], dict[str, Any], tuple[Any, Any]]] = [
    (("0.7.3", "0.8.0"), dict.fromkeys(BY_NAME, BIG), SMALL_1024),
    (("0.8.5",), dict.fromkeys(FROM_70_GIB, BIG), SMALL),
    (
        ("0.9.2", "0.10.0", "0.10.2", "0.11.0", "0.12.0", "0.13.0", "0.14.1", "0.16.0", "0.20.0", "0.24.0", "0.25.0"),
        dict.fromkeys(NOT_A100, BIG),
        SMALL,
    ),
    (("0.28.0", "0.30.0", "0.31.0"), dict.fromkeys(NOT_A100, BIG) | dict.fromkeys(FROM_160_GIB, HUGE), SMALL),
    (("0.33.0",), dict.fromkeys(NOT_A100 - {"GB10"}, BIG) | dict.fromkeys(FROM_160_GIB, HUGE), SMALL),
]
TABLE = [
    (version, device, named.get(device, rest))
    for versions, named, rest in ROWS
    for version in versions
    for device in EVERYWHERE
]


@pytest.mark.parametrize(("version", "device", "expected"), TABLE)
def test_v1_budget_follows_version_usage_and_device(version: str, device: str, expected: Any) -> None:
    """Token budget and seats are those of the version, for the offline class and the server, on each device."""
    flags = {"use_v1": True} if version == "0.7.3" else {}
    assert (budget(version, device, "offline", **flags), budget(version, device, "server", **flags)) == expected


@pytest.mark.parametrize("device", EVERYWHERE)
def test_v1_of_066_has_one_tier(device: str) -> None:
    """The opt-in V1 of 0.6.6.post1 has 8192 tokens offline, 2048 in the server and 1024 seats on every device."""
    for usage, tokens in (("offline", 8192), ("server", 2048)):
        assert budget("0.6.6.post1", device, usage, use_v1=True) == (tokens, 1024)


@pytest.mark.parametrize("version", ["0.2.7", "0.4.2", "0.5.5", "0.6.3", "0.6.6.post1", "0.7.3"])
@pytest.mark.parametrize(("longest", "tokens"), [(None, 2048), (1000, 2048), (8192, 8192), (32768, 32768)])
def test_v0_without_chunking_has_room_for_the_longest_prompt(version: str, longest: int | None, tokens: int) -> None:
    """V0's budget is max_model_len, at least 2048; 256 seats, blocks of 16, no prefix cache, 90 % of the memory."""
    engine = resolved(version, max_model_len=longest)
    assert engine.values["max_num_batched_tokens"] == tokens
    assert engine.values["max_num_seqs"] == 256
    assert not engine.values["enable_chunked_prefill"]
    assert (engine.cache.block_size, engine.cache.prefix_caching, engine.cache.memory_share) == (16, False, 0.9)
    assert "V0" in engine.title


@pytest.mark.parametrize(
    ("version", "chunked", "tokens"),
    [
        ("0.2.7", False, 40000),
        ("0.4.2", False, 40000),
        ("0.5.5", True, 512),
        ("0.6.3", True, 512),
        ("0.6.6.post1", True, 2048),
        ("0.7.3", True, 2048),
    ],
)
def test_v0_turns_chunking_on_by_itself_above_32768(version: str, chunked: bool, tokens: int) -> None:
    """From 0.5.5, V0 enables chunked prefill if max_model_len is above 32768, with the version's chunked budget."""
    values = resolved(version, max_model_len=40000).values
    assert (values["enable_chunked_prefill"], values["max_num_batched_tokens"]) == (chunked, tokens)


@pytest.mark.parametrize(("version", "tokens"), [("0.4.2", 512), ("0.5.5", 512), ("0.6.3", 512), ("0.6.6.post1", 2048)])
def test_v0_chunked_on_request_has_its_own_budget(version: str, tokens: int) -> None:
    """With enable_chunked_prefill, V0's budget is 512 tokens up to 0.6.3 and 2048 from 0.6.6."""
    assert resolved(version, enable_chunked_prefill=True, max_model_len=4096).values["max_num_batched_tokens"] == tokens


def v1_versions() -> list[str]:
    """Return the versions whose default engine is V1, oldest first."""
    names = list(vllm_versions())
    return names[names.index("0.8.0") :]


def since(version: str) -> set[str]:
    """Return the known versions from `version` on."""
    names = list(vllm_versions())
    return set(names[names.index(version) :])


@pytest.mark.parametrize("version", list(vllm_versions()))
def test_what_a_version_turns_on_by_itself(version: str) -> None:
    """V1, prefix caching, async scheduling, the check of whole prompts and the memory share change as in vLLM."""
    engine = resolved(version)
    values = engine.values
    is_v1 = version in since("0.8.0")
    assert values["use_v1"] is is_v1
    assert values["enable_prefix_caching"] is is_v1
    assert bool(values.get("async_scheduling")) is (version in since("0.14.1"))
    assert bool(values.get("scheduler_reserve_full_isl")) is (version in since("0.19.0"))
    assert engine.cache.memory_share == (0.92 if version in since("0.20.0") else 0.9)
    assert engine.cache.free_queue.keywords == {"blank_first": version in since("0.24.0")}
    assert engine.cache.registration_lag == (1 if version in since("0.14.1") else 0)
    assert engine.cache.watermark == 0.0
    assert engine.cache.block_size == 16


@pytest.mark.parametrize("version", v1_versions())
def test_other_knobs_of_v1_are_off(version: str) -> None:
    """Policy fcfs, chunked prefill and no threshold in every version with V1."""
    values = resolved(version).values
    assert (values["policy"], values["enable_chunked_prefill"], values["long_prefill_token_threshold"]) == (
        "fcfs",
        True,
        0,
    )


def test_throughput_mode_doubles_both() -> None:
    """performance_mode throughput (0.33) doubles budget and seats."""
    assert budget("0.33.0", "H100-80G", "server", performance_mode="throughput") == (16384, 2048)
    assert budget("0.33.0", "L40S", "offline", performance_mode="throughput") == (16384, 512)


@pytest.mark.parametrize(
    ("flags", "longest", "expected"),
    [
        ({"max_num_seqs": 4}, 100, (400, 4)),  # never more tokens than all seats can use
        ({}, 1, (1024, 1024)),
        ({"max_num_batched_tokens": 64}, None, (64, 64)),  # never more seats than tokens
        ({"enable_chunked_prefill": False}, 20000, (20000, 1024)),  # room for the longest prompt
        ({"max_num_batched_tokens": 300, "max_num_seqs": 7}, 100, (300, 7)),  # what is given stays
    ],
)
def test_defaults_are_fitted_to_each_other(flags: dict[str, Any], longest: int, expected: tuple[int, int]) -> None:
    """Tokens are at most seats x max_model_len, at least max_model_len without chunking; seats at most tokens."""
    values = resolved("0.33.0", max_model_len=longest, **flags).values
    assert (values["max_num_batched_tokens"], values["max_num_seqs"]) == expected


@pytest.mark.parametrize(
    ("version", "usage", "cuts"),
    [
        ("0.33.0", "server", True),  # lowers max_tokens silently
        ("0.11.0", "server", False),  # answers 400
        ("0.33.0", "offline", True),
        ("0.11.0", "offline", True),
    ],
)
def test_who_asks_for_more_than_the_model_holds(version: str, usage: str, cuts: bool) -> None:
    """prompt + output beyond max_model_len is cut by the offline class and by new servers, rejected by old ones."""
    assert resolved(version, usage=usage).cuts_output is cuts


def test_every_resolved_flag_says_where_it_comes_from() -> None:
    """The origin of a flag is `given`, or the package and version of its default."""
    engine = resolved("0.33.0", max_num_seqs=7)
    assert set(engine.origins) == set(engine.values)
    assert engine.origins["max_num_seqs"] == "given"
    assert engine.origins["scheduler_reserve_full_isl"].startswith("vllm 0.33.0")


def test_every_version_names_its_source() -> None:
    """Every row of the data names the package version of its source."""
    for version, facts in vllm_versions().items():
        assert version.removesuffix(".post1") in facts.source


def test_list_of_engines_has_a_row_a_version() -> None:
    """`simqueue list engines` shows all known versions."""
    rows = ENGINES["vllm"].rows()
    assert [row["version"] for row in rows] == list(vllm_versions())
    assert all(row["source"] for row in rows)
