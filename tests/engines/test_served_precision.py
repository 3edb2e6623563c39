"""What a file stores is not always what an engine serves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.scenario import from_mapping
from simqueue.scenario.resolved import ResolvedPolicy

LLAMA_70B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "torch_dtype": "float32",
}
PARAMETERS = 68_976_648_192


def policy(tmp_path: Path, config: dict[str, Any], policy_keys: dict[str, Any], **more: Any) -> ResolvedPolicy:
    """Return the resolved policy of a model file on two H100."""
    (tmp_path / "config.json").write_text(json.dumps(config))
    keys = {
        "model": str(tmp_path / "config.json"),
        "gpu": "h100-sxm",
        "tensor_parallel": 2,
        "workload": {"requests": [{"id": "a", "arrival_s": 0, "prompt_tokens": 10, "output_tokens": 4}]},
        "policies": {"p": policy_keys},
        **more,
    }
    return from_mapping(keys).resolve().policy("p")


VLLM = {"engine": "vllm", "version": "0.33.0"}


@pytest.mark.parametrize("version", ["0.2.7", "0.6.3", "0.11.0", "0.33.0"])
def test_vllm_serves_float32_in_16_bits(tmp_path: Path, version: str) -> None:
    """Case 67: 138 GB on two H100, and 327,680 bytes of KV per token; the policy says that it was cast."""
    found = policy(tmp_path, LLAMA_70B, {**VLLM, "version": version})
    assert found.model is not None
    assert found.model.weight_bytes == 2 * PARAMETERS
    assert found.model.kv_bytes_per_token == 327_680
    assert any("is stored in 32 bits; vllm serves it in 16" in line for line in found.warnings)


def said_of_precision(found: ResolvedPolicy) -> list[str]:
    """Return the warnings, but for the one that no preset is named."""
    return [line for line in found.warnings if not line.startswith("step_time")]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_16_bits_are_served_as_they_are(tmp_path: Path, dtype: str) -> None:
    """Nothing is cast, and nothing is said."""
    found = policy(tmp_path, {**LLAMA_70B, "torch_dtype": dtype}, VLLM)
    assert found.model is not None
    assert found.model.weight_bytes == 2 * PARAMETERS
    assert not said_of_precision(found)


def test_a_file_without_a_dtype_is_float32_as_in_its_class(tmp_path: Path) -> None:
    """GPT-2's file has none; it is served in 16 bits as well."""
    config = {key: value for key, value in LLAMA_70B.items() if key != "torch_dtype"}
    assert policy(tmp_path, config, VLLM).warnings


def test_a_scheduler_keeps_what_the_file_says(tmp_path: Path) -> None:
    """Only an engine has a rule of its own: 276 GB do not fit two H100."""
    with pytest.raises(InputError, match=r"weights 276 GB / 2 GPUs > 77\.0 GB"):
        policy(tmp_path, LLAMA_70B, {"scheduler": "chunked"})


def test_dtype_of_the_scenario_is_for_all_weights(tmp_path: Path) -> None:
    """Embeddings, head and KV too, for every policy; and an engine is not asked."""
    found = policy(tmp_path, LLAMA_70B, {"scheduler": "chunked"}, dtype={"all": "bf16"})
    assert found.model is not None
    assert (found.model.weight_bytes, found.model.kv_bytes_per_token) == (2 * PARAMETERS, 327_680)
    with pytest.raises(InputError, match="weights 276 GB / 2 GPUs"):
        policy(tmp_path, LLAMA_70B, VLLM, dtype={"all": "fp32"})
    wide = policy(tmp_path, LLAMA_70B, VLLM, dtype={"all": "fp32"}, tensor_parallel=8)
    assert wide.model is not None
    assert (wide.model.weight_bytes, wide.model.kv_bytes_per_token) == (4 * PARAMETERS, 2 * 327_680)
    assert not said_of_precision(wide)


def test_weights_and_kv_override_all(tmp_path: Path) -> None:
    """Embeddings and head (2 x 32000 x 8192 numbers) have 16 bits, the layers 8, the KV cache 8."""
    found = policy(tmp_path, LLAMA_70B, VLLM, dtype={"all": "bf16", "weights": "fp8", "kv": "fp8"})
    tables = 2 * 32000 * 8192
    assert found.model is not None
    assert found.model.weight_bytes == 2 * tables + (PARAMETERS - tables)
    assert found.model.kv_bytes_per_token == 327_680 / 2


def test_the_result_says_that_it_was_cast(tmp_path: Path) -> None:
    """Among the warnings of a run, with the name of the policy."""
    (tmp_path / "small.json").write_text(json.dumps({**LLAMA_70B, "num_hidden_layers": 2}))
    keys = {
        "model": str(tmp_path / "small.json"),
        "gpu": "h100-sxm",
        "workload": {"requests": [{"id": "a", "arrival_s": 0, "prompt_tokens": 10, "output_tokens": 4}]},
        "policies": {"v": VLLM},
    }
    assert any(line.startswith("v: small is stored in 32 bits") for line in sq.run(keys).warnings)
