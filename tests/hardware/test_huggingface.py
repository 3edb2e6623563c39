"""The reader of Hugging Face config.json files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.hardware import load_model

LLAMA_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "mlp_bias": False,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}
QWEN3_8B: dict[str, Any] = {
    **LLAMA_8B,
    "architectures": ["Qwen3ForCausalLM"],
    "head_dim": 128,
    "intermediate_size": 12288,
    "max_position_embeddings": 40960,
    "num_hidden_layers": 36,
    "sliding_window": None,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
MISTRAL_7B_V02: dict[str, Any] = {
    **{key: value for key, value in LLAMA_8B.items() if not key.endswith("_bias")},
    "architectures": ["MistralForCausalLM"],
    "max_position_embeddings": 32768,
    "sliding_window": None,
    "vocab_size": 32000,
}


def write(folder: Path, config: object) -> Path:
    """Write a config.json as it would be published."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(("config", "name"), [(LLAMA_8B, "llama-3.1-8b"), (QWEN3_8B, "qwen3-8b")])
def test_a_published_config_gives_the_library_model(tmp_path: Path, config: dict[str, Any], name: str) -> None:
    """A config.json, by its path or its folder, gives the same costs as the library's model of that name."""
    write(tmp_path / name, config)
    library = load_model(name, Path())
    for path in (f"./{name}", f"{name}/config.json"):
        model = load_model(path, tmp_path)
        assert model.name == name
        assert (model.parameters, model.read_bytes, model.kv_bytes_per_token, model.max_position) == (
            library.parameters,
            library.read_bytes,
            library.kv_bytes_per_token,
            library.max_position,
        )


def test_mistral(tmp_path: Path) -> None:
    """Mistral-7B v0.2, which has no window, has its published 7.242 B parameters."""
    model = load_model("config.json", write(tmp_path, MISTRAL_7B_V02))
    assert model.parameters / 1e9 == pytest.approx(7.242, abs=0.0005)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"architectures": ["MistrelForCausalLM"]},
            r"unknown architecture 'MistrelForCausalLM'; did you mean 'MistralForCausalLM'\?",
        ),
        ({"architectures": None}, r"unknown architecture 'None'; known: .*DeepseekV3ForCausalLM, "),
        ({"hidden_size": None, "vocab_size": None}, "missing hidden_size, vocab_size"),
        ({"num_experts": 8}, "num_experts = "),
        ({"quantization_config": {"quant_method": "awq"}}, "quant_method 'awq'; known: fp8, fbgemm_fp8, mxfp4"),
        ({"torch_dtype": "float8_e4m3fn"}, "torch_dtype 'float8_e4m3fn' is not one of bfloat16, float16, float32"),
        (
            {"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 28},
            "sliding_window 4096 with max_window_layers and no layer_types is ambiguous",
        ),
        ({"hidden_size": 4097}, "hidden_size 4097 is not a multiple of num_attention_heads 32"),
        ({"num_hidden_layers": 0}, "layers: .*got 0"),
    ],
)
def test_what_is_not_understood_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """A config with an unknown architecture, a missing key or an unmodelled feature is rejected by name in one line."""
    write(tmp_path, {**LLAMA_8B, **change})
    with pytest.raises(InputError, match=said) as caught:
        load_model("config.json", tmp_path)
    assert "config.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_window_without_a_switch_is_on_for_mistral(tmp_path: Path) -> None:
    """Mistral-7B v0.1's window of 4096 is active in all layers; Qwen3's is active only with use_sliding_window."""
    write(tmp_path, {**MISTRAL_7B_V02, "sliding_window": 4096})
    mistral = load_model("config.json", tmp_path)
    assert (mistral.window_layers, mistral.window_tokens) == (32, 4096)
    write(tmp_path, {**QWEN3_8B, "sliding_window": 40960})
    assert load_model("config.json", tmp_path).window_layers == 0


PUBLISHED: dict[str, dict[str, Any]] = {
    "qwen2.5-7b": {
        **LLAMA_8B,
        "architectures": ["Qwen2ForCausalLM"],
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "max_window_layers": 28,
        "num_attention_heads": 28,
        "num_hidden_layers": 28,
        "num_key_value_heads": 4,
        "sliding_window": 131072,
        "use_sliding_window": False,
        "vocab_size": 152064,
    },
    "qwen3-30b-a3b": {
        **QWEN3_8B,
        "architectures": ["Qwen3MoeForCausalLM"],
        "decoder_sparse_step": 1,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "mlp_only_layers": [],
        "moe_intermediate_size": 768,
        "num_attention_heads": 32,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 48,
        "num_key_value_heads": 4,
    },
    "mixtral-8x7b": {
        **MISTRAL_7B_V02,
        "architectures": ["MixtralForCausalLM"],
        "num_experts_per_tok": 2,
        "num_local_experts": 8,
    },
    "gpt-oss-20b": {
        "architectures": ["GptOssForCausalLM"],
        "attention_bias": True,
        "head_dim": 64,
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "layer_types": ["sliding_attention", "full_attention"] * 12,
        "max_position_embeddings": 131072,
        "num_attention_heads": 64,
        "num_experts_per_tok": 4,
        "num_hidden_layers": 24,
        "num_key_value_heads": 8,
        "num_local_experts": 32,
        "quantization_config": {"quant_method": "mxfp4"},
        "sliding_window": 128,
        "tie_word_embeddings": False,
        "vocab_size": 201088,
    },
    "deepseek-v3": {
        "architectures": ["DeepseekV3ForCausalLM"],
        "attention_bias": False,
        "first_k_dense_replace": 3,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "kv_lora_rank": 512,
        "max_position_embeddings": 163840,
        "model_type": "deepseek_v3",
        "moe_intermediate_size": 2048,
        "moe_layer_freq": 1,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_attention_heads": 128,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 61,
        "num_key_value_heads": 128,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "quantization_config": {"fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]},
        "tie_word_embeddings": False,
        "topk_method": "noaux_tc",
        "torch_dtype": "bfloat16",
        "v_head_dim": 128,
        "vocab_size": 129280,
    },
    "gemma-3-27b": {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "text_config": {
            "head_dim": 128,
            "hidden_size": 5376,
            "intermediate_size": 21504,
            "model_type": "gemma3_text",
            "num_attention_heads": 32,
            "num_hidden_layers": 62,
            "num_key_value_heads": 16,
            "sliding_window": 1024,
        },
        "torch_dtype": "bfloat16",
    },
    "phi-4": {
        **LLAMA_8B,
        "architectures": ["Phi3ForCausalLM"],
        "hidden_size": 5120,
        "intermediate_size": 17920,
        "max_position_embeddings": 16384,
        "num_attention_heads": 40,
        "num_hidden_layers": 40,
        "num_key_value_heads": 10,
        "sliding_window": None,
        "vocab_size": 100352,
    },
    "mistral-7b-v0.1": {**MISTRAL_7B_V02, "sliding_window": 4096},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_kind_of_config_gives_the_library_model(tmp_path: Path, name: str) -> None:
    """Experts, shared experts, latent attention, windows, biases and tied tables are read as the library has them."""
    model = load_model("config.json", write(tmp_path / name, PUBLISHED[name]))
    assert replace(model, name=name, description="") == replace(load_model(name, Path()), description="")


def test_biases_are_counted(tmp_path: Path) -> None:
    """With attention_bias all four projections have biases: 32 x (4096 + 2 x 1024 + 4096) parameters more."""
    plain = load_model("config.json", write(tmp_path / "plain", LLAMA_8B))
    biased = load_model("config.json", write(tmp_path / "biased", {**LLAMA_8B, "attention_bias": True}))
    assert biased.parameters - plain.parameters == 32 * (4096 + 2 * 1024 + 4096)


def test_broken_json_names_its_line(tmp_path: Path) -> None:
    """A config.json that is not JSON is rejected with its line; one that is not an object, with its type."""
    (tmp_path / "config.json").write_text('{\n  "hidden_size": 4096,\n}\n')
    with pytest.raises(InputError, match=r"config.json:[23]: not valid JSON"):
        load_model("config.json", tmp_path)
    write(tmp_path, [1])
    with pytest.raises(InputError, match="must be a JSON object, not a list"):
        load_model("config.json", tmp_path)
