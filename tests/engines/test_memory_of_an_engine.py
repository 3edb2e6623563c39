"""The pool that an engine really has, against published logs of its start, and whether it would start."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simqueue as sq
from simqueue.errors import InputError
from simqueue.scenario import from_mapping
from simqueue.scenario.resolved import ResolvedPolicy

GIB = 2**30
WEIGHTS = 2 * 8_030_261_248
"""Bytes of Llama 3.1 8B in bf16."""
ONE_TOKEN = 131_072
"""KV bytes per token of the same model."""


def keys(memory_bytes: int, model: Any = "llama-3.1-8b", **more: Any) -> dict[str, Any]:
    """Return a scenario for one policy on a card of this size; other keys are the policy's or the scenario's."""
    top = {key: more.pop(key) for key in ("unstartable", "kv_cache", "tensor_parallel") if key in more}
    return {
        "model": model,
        "gpu": {"name": "card", "memory_bytes": memory_bytes, "bandwidth_bytes_per_s": 9e11, "flops_per_s": 7e13},
        "workload": {"requests": [{"id": "a", "arrival_s": 0, "prompt_tokens": 10, "output_tokens": 4}]},
        "policies": {"v": {"engine": "vllm", **more}},
        **top,
    }


def policy(memory_bytes: int, **more: Any) -> ResolvedPolicy:
    """Return the resolved policy."""
    return from_mapping(keys(memory_bytes, **more)).resolve().policy("v")


def refusal(memory_bytes: int, **more: Any) -> str:
    """Return the text of the error."""
    with pytest.raises(InputError) as caught:
        policy(memory_bytes, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def named_length(said: str) -> int:
    """Return the length that an error says is the longest that fits."""
    found = re.search(r"the longest max_model_len that fits is (\d+)", said)
    assert found is not None, said
    return int(found.group(1))


@pytest.mark.parametrize(
    ("version", "memory_gib", "max_model_len", "logged_blocks"),
    [
        ("0.6.3", 24146 / 1024, 20_000, 1952),
        ("0.6.3", 24146 / 1024, 29_000, 1478),
        ("0.6.3", 24146 / 1024, 35_000, int((0.9 * 23.58 - 15.05 - 0.35) * 512)),
        ("0.7.3", 22.07, 131_072, 2356),
    ],
)
def test_pool_is_that_of_published_logs(
    version: str, memory_gib: float, max_model_len: int, logged_blocks: int
) -> None:
    """Llama 3.1 8B within 2 % of what vLLM logged.

    The first three: vllm-project/vllm, issue 10517, on an RTX 3090; of the third, the log shows peak and other memory.
    The fourth: troubleshooting tips of oracle-samples/oci-data-science-ai-samples, on an A10.
    """
    found = policy(round(memory_gib * GIB), version=version, max_model_len=max_model_len, unstartable="warn")
    assert found.kv_cache.blocks == pytest.approx(logged_blocks, rel=0.02)


def test_the_engine_of_the_log_refuses_to_start() -> None:
    """29,000 tokens do not fit the pool, as in the log; the error names the longest length with which it starts."""
    memory = 24146 * 2**20
    said = refusal(memory, version="0.6.3", max_model_len=29_000)
    assert re.search(r"would not start: one request of max_model_len = 29000 does not fit the KV pool of \d+ tok", said)
    # without chunks the profiled step has max_model_len tokens, so a shorter limit also makes the pool larger
    per_token = ONE_TOKEN + 2 * 3 * (14336 + 4096)
    longest = (0.9 * memory - WEIGHTS - 0.35 * GIB) / per_token
    fitting = named_length(said)
    assert longest - 16 <= fitting <= longest
    assert policy(memory, version="0.6.3", max_model_len=fitting).longest_request_tokens == fitting
    refusal(memory, version="0.6.3", max_model_len=fitting + 1)


def test_the_length_of_the_model_counts_if_none_is_given() -> None:
    """131,072 tokens do not fit 50 thousand. The version chunks prompts above 32,768, so that 48 thousand fit."""
    said = refusal(24146 * 2**20, version="0.6.3")
    assert "max_model_len = 131072 (that of the model)" in said
    fitting = named_length(said)
    assert 45_000 <= fitting <= 50_000  # 45 k started in the log


@given(
    memory_mib=st.integers(20_000, 60_000),
    wanted=st.integers(1_000, 131_072),
    version=st.sampled_from(["0.4.2", "0.6.3", "0.11.0", "0.33.0"]),
)
def test_the_longest_length_is_the_longest(memory_mib: int, wanted: int, version: str) -> None:
    """An engine starts with the length that the error names, and with none between it and the one that was asked."""
    memory = memory_mib * 2**20
    try:
        policy(memory, version=version, max_model_len=wanted)
    except InputError as error:
        said = str(error)
    else:
        return
    fitting = named_length(said)
    policy(memory, version=version, max_model_len=fitting)
    for longer in {fitting + 1, (fitting + wanted) // 2, 32_769} & set(range(fitting + 1, wanted + 1)):
        refusal(memory, version=version, max_model_len=longer)


def test_the_switch_makes_it_a_warning_of_the_result() -> None:
    """With unstartable: warn the scenario runs; the result says that the engine would not start."""
    result = sq.run(keys(24146 * 2**20, version="0.6.3", max_model_len=29_000, unstartable="warn"))
    assert any(line.startswith("v: vllm 0.6.3 (V0, server) would not start") for line in result.warnings)


def test_a_number_of_blocks_is_a_supposition() -> None:
    """With blocks that were written down the engine need not start; the warning has the tokens of those blocks."""
    found = policy(80 * GIB, version="0.33.0", kv_cache={"blocks": 100}, max_model_len=2000)
    assert found.kv_cache.blocks == 100
    line, *_ = found.warnings
    assert "KV pool of 1600 tokens (100 blocks); the longest max_model_len that fits is 1600" in line
    fitting = policy(80 * GIB, version="0.33.0", kv_cache={"blocks": 100}, max_model_len=1600)
    assert not any("KV pool" in one for one in fitting.warnings)


@pytest.mark.parametrize(("tensor_parallel", "tokens"), [(1, 2048), (2, 8192), (8, 16384)])
def test_each_gpu_keeps_room_for_its_part_of_the_activations(tensor_parallel: int, tokens: int) -> None:
    """Of the MLP's width each GPU has its part, of the residual stream all; KV heads and weights are divided."""
    flags = {"version": "0.33.0", "max_model_len": 4096, "max_num_batched_tokens": tokens, "max_num_seqs": 8}
    small, large = (
        policy(80 * GIB, tensor_parallel=tensor_parallel, **{**flags, "max_num_batched_tokens": budget})
        for budget in (8, tokens)
    )
    difference = 2 * 3 * (14336 / tensor_parallel + 4096) * (tokens - 8)
    assert small.kv_cache.blocks - large.kv_cache.blocks == pytest.approx(
        difference / (16 * ONE_TOKEN / tensor_parallel), abs=1
    )


def test_experts_have_the_width_of_those_that_a_token_uses() -> None:
    """Mixtral: two experts of 14336 per token, whatever the number of experts."""
    flags = {"version": "0.33.0", "max_num_seqs": 8, "max_model_len": 4096}
    small, large = (
        policy(150 * GIB, model="mixtral-8x7b", **flags, max_num_batched_tokens=budget).kv_cache.blocks
        for budget in (8, 8192)
    )
    assert small - large == pytest.approx(2 * 3 * (2 * 14336 + 4096) * (8192 - 8) / (16 * 131_072), abs=1)


def test_a_model_of_unknown_widths_is_warned_about() -> None:
    """A parameter count does not say how large activations are."""
    model = {"layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128, "parameters": 8_030_261_248}
    line, *_ = policy(80 * GIB, model=model, version="0.33.0").warnings
    assert "no room for activations" in line


def test_without_any_block_the_longest_length_is_named_as_well() -> None:
    """The activations of one long step take all; a shorter max_model_len leaves a pool."""
    said = refusal(20_000 * 2**20, version="0.4.2", max_model_len=24_000)
    assert "no KV block fits" in said
    assert policy(20_000 * 2**20, version="0.4.2", max_model_len=named_length(said)).kv_cache.blocks > 500


CASE_81 = 17_600_000_000
"""A card on which the weights fit with a share of 0.95 and 0.92, and not with 0.9."""


def test_the_share_of_the_engine_decides_what_fits() -> None:
    """Case 81: 16.06 GB of weights fit in 0.95 of 17.6 GB."""
    found = policy(CASE_81, version="0.33.0", gpu_memory_utilization=0.95, max_model_len=256)
    assert found.kv_cache.rules.memory_share == 0.95


@pytest.mark.parametrize("blocks", ["auto", 10])
@pytest.mark.parametrize(
    ("flags", "cache", "said"),
    [
        ({"gpu_memory_utilization": 0.85}, {}, "gpu_memory_utilization 0.85"),
        ({"gpu_memory_utilization": 0.85}, {"memory_share": 0.95}, "gpu_memory_utilization 0.85"),
        ({}, {"memory_share": 0.85}, "(memory_share 0.85"),
        ({"version": "0.11.0"}, {}, "gpu_memory_utilization 0.9 "),
    ],
)
def test_the_message_names_the_share_that_counts(
    flags: dict[str, Any], cache: dict[str, Any], said: str, blocks: int | str
) -> None:
    """The flag, or the key if only the key was given; the same with a number of blocks."""
    text = refusal(CASE_81, **{"version": "0.33.0", "max_model_len": 64, **flags}, kv_cache={**cache, "blocks": blocks})
    assert "weights 16 GB > 1" in text
    assert said in text


def test_a_number_of_blocks_is_checked_with_the_share_of_the_engine() -> None:
    """16.06 GB fit in 0.92 of 17.6 GB, the default of the version, and not in 0.9, the default of kv_cache."""
    assert policy(CASE_81, version="0.33.0", max_model_len=64, kv_cache={"blocks": 10}).kv_cache.blocks == 10


def test_memory_that_activations_take_is_named() -> None:
    """0.92 leaves 0.13 GB next to the weights, less than what the engine measures when it starts."""
    said = refusal(CASE_81, version="0.33.0", max_model_len=64)
    assert "no KV block fits" in said
    assert "activations and other uses take 0.6" in said
    assert "gpu_memory_utilization 0.92" in said
