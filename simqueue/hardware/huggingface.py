"""Reads a Hugging Face config.json; features that are not modelled are errors that name the key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from simqueue.datafiles.library import validated
from simqueue.datafiles.text import read_json
from simqueue.errors import InputError
from simqueue.hardware.model_settings import ModelSettings
from simqueue.names import unknown

Config = Mapping[str, Any]
Keys = dict[str, Any]

_DTYPE_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
_REQUIRED = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "vocab_size",
)
_GEMMA3_DEFAULTS = {
    "vocab_size": 262208,
    "max_position_embeddings": 131072,
    "sliding_window_pattern": 6,
    "tie_word_embeddings": True,
}
# Defaults of the configuration classes in transformers, for keys that published files leave out.
_CLASS_DEFAULTS: Mapping[str, Config] = {
    "Gemma3ForCausalLM": _GEMMA3_DEFAULTS,
    "Gemma3ForConditionalGeneration": _GEMMA3_DEFAULTS,
    "GptOssForCausalLM": {"torch_dtype": "bfloat16"},
}


def read_config(file: Path, name: str) -> ModelSettings:
    """Read a Hugging Face config.json.

    Parameters
    ----------
    file : Path
        The config.json.
    name : str
        Name shown in results.

    Raises
    ------
    InputError
        If the file cannot be read, its architecture is unknown, or it has a feature that is not modelled.
    """
    config: Config = read_json(file)
    architecture = _architecture(config, file)
    config = {**_CLASS_DEFAULTS.get(architecture, {}), **_text_part(config)}
    keys = {
        **_common(config, file),
        **_attention_biases(config),
        **_windows(config, file, switched=config.get("use_sliding_window", not architecture.startswith("Qwen"))),
        **_quantisation(config, file),
        **_READERS[architecture](config, file),
    }
    return validated(ModelSettings, {"name": name, **keys}, str(file))


def _architecture(config: Config, file: Path) -> str:
    given = config.get("architectures")
    name = given[0] if isinstance(given, list) and given else given
    if name in _READERS:
        return str(name)
    raise InputError(f"{file}: {unknown('architecture', name, sorted(_READERS))}")


def _text_part(config: Config) -> Config:
    """Return the config of the language model in a config that also describes a vision model."""
    text = config.get("text_config")
    return {**config, **text} if isinstance(text, dict) else config


def _common(config: Config, file: Path) -> Keys:
    """Return the keys that all architectures share."""
    missing = [key for key in _REQUIRED if config.get(key) is None]
    if missing:
        raise InputError(f"{file}: missing {', '.join(missing)}")
    heads = config["num_attention_heads"]
    return {
        "layers": config["num_hidden_layers"],
        "heads": heads,
        "kv_heads": config.get("num_key_value_heads") or heads,
        "head_dim": _head_dim(config, file),
        "hidden": config["hidden_size"],
        "intermediate": _needed(config, "intermediate_size", file),
        "vocab": config["vocab_size"],
        "tied_embeddings": config.get("tie_word_embeddings", False),
        "dtype_bytes": _dtype_bytes(config, file),
        "max_position": config.get("max_position_embeddings"),
    }


def _needed(config: Config, key: str, file: Path) -> Any:
    if config.get(key) is None:
        raise InputError(f"{file}: missing {key}")
    return config[key]


def _head_dim(config: Config, file: Path) -> Any:
    if config.get("head_dim") is not None:
        return config["head_dim"]
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    if not (isinstance(hidden, int) and isinstance(heads, int) and heads > 0 and hidden % heads == 0):
        raise InputError(
            f"{file}: no head_dim, and hidden_size {hidden!r} is not a multiple of num_attention_heads {heads!r}"
        )
    return hidden // heads


def _dtype_bytes(config: Config, file: Path) -> int:
    dtype = config.get("torch_dtype", config.get("dtype"))
    if dtype not in _DTYPE_BYTES:
        raise InputError(f"{file}: torch_dtype {dtype!r} is not one of {', '.join(_DTYPE_BYTES)}")
    return _DTYPE_BYTES[dtype]


def _attention_biases(config: Config) -> Keys:
    """Return biases: ``attention_bias`` adds them to all four projections, ``mlp_bias`` to the matrices of the MLP."""
    keys: Keys = {"qkv_bias": True, "output_bias": True} if config.get("attention_bias") else {}
    return keys | ({"mlp_bias": True} if config.get("mlp_bias") else {})


def _windows(config: Config, file: Path, *, switched: bool) -> Keys:
    """Return the number of layers with a window; if the config lists no layers, an active window is in all of them."""
    window = config.get("sliding_window")
    if window is None or not switched:
        return {}
    layers = config["num_hidden_layers"]
    kinds, pattern = config.get("layer_types"), config.get("sliding_window_pattern")
    if isinstance(kinds, list):
        count = sum(kind == "sliding_attention" for kind in kinds)
    elif isinstance(pattern, int) and pattern > 0:
        count = layers - layers // pattern
    elif config.get("max_window_layers") is not None and config.get("use_sliding_window"):
        raise InputError(f"{file}: sliding_window {window!r} with max_window_layers and no layer_types is ambiguous")
    else:
        count = layers
    return {"window_layers": count, "window_tokens": window}


def _quantisation(config: Config, file: Path) -> Keys:
    """Return the number formats of a quantised checkpoint."""
    quantisation = config.get("quantization_config")
    if not quantisation:
        return {}
    method = quantisation.get("quant_method") if isinstance(quantisation, dict) else quantisation
    if method in ("fp8", "fbgemm_fp8"):
        return {"weights": "fp8"}
    if method == "mxfp4":
        return {"expert_weights": "fp4"}
    raise InputError(f"{file}: quantization_config has quant_method {method!r}; known: fp8, fbgemm_fp8, mxfp4")


def _dense(config: Config, file: Path) -> Keys:
    """A dense architecture; the common keys describe it completely."""
    for key in ("num_experts", "num_local_experts"):
        if config.get(key):
            raise InputError(f"{file}: {key} = {config[key]!r} in a dense architecture")
    return {}


def _qwen2(config: Config, file: Path) -> Keys:
    """Query, key and value projections always have biases."""
    return {**_dense(config, file), "qkv_bias": True}


def _qwen3(config: Config, file: Path) -> Keys:
    """Queries and keys are normalised per head."""
    return {**_dense(config, file), "qk_norm": True}


def _qwen3_moe(config: Config, file: Path) -> Keys:
    if config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1:
        raise InputError(f"{file}: mlp_only_layers and decoder_sparse_step other than 1 are not modelled")
    return {
        "qk_norm": True,
        "experts": _needed(config, "num_experts", file),
        "experts_per_token": _needed(config, "num_experts_per_tok", file),
        "expert_intermediate": _needed(config, "moe_intermediate_size", file),
    }


def _mixtral(config: Config, file: Path) -> Keys:
    return {
        "experts": _needed(config, "num_local_experts", file),
        "experts_per_token": _needed(config, "num_experts_per_tok", file),
        "expert_intermediate": config["intermediate_size"],
    }


def _gpt_oss(config: Config, file: Path) -> Keys:
    """All projections have biases, and each head has an attention sink."""
    on = dict.fromkeys(("qkv_bias", "output_bias", "mlp_bias", "router_bias", "attention_sinks"), True)
    return {**_mixtral(config, file), **on}


def _deepseek(config: Config, file: Path) -> Keys:
    """Latent attention: queries and keys of a head have a part without positions and a part with positions."""
    if config.get("moe_layer_freq", 1) != 1:
        raise InputError(f"{file}: moe_layer_freq {config['moe_layer_freq']!r} is not modelled, only 1")
    rope_dim = _needed(config, "qk_rope_head_dim", file)
    expert_width = _needed(config, "moe_intermediate_size", file)
    return {
        "kv_heads": config["num_attention_heads"],
        "head_dim": _needed(config, "qk_nope_head_dim", file) + rope_dim,
        "value_dim": _needed(config, "v_head_dim", file),
        "q_lora_rank": config.get("q_lora_rank"),
        "kv_lora_rank": _needed(config, "kv_lora_rank", file),
        "rope_dim": rope_dim,
        "experts": _needed(config, "n_routed_experts", file),
        "experts_per_token": _needed(config, "num_experts_per_tok", file),
        "expert_intermediate": expert_width,
        "shared_intermediate": (config.get("n_shared_experts") or 0) * expert_width,
        "dense_layers": config.get("first_k_dense_replace") or 0,
        "router_bias": config.get("topk_method") == "noaux_tc" or config.get("model_type") == "deepseek_v3",
    }


def _gemma3(config: Config, file: Path) -> Keys:
    """Norms before and after each block."""
    return {**_dense(config, file), "qk_norm": True, "sandwich_norms": True}


_READERS: Mapping[str, Callable[[Config, Path], Keys]] = {
    "DeepseekV3ForCausalLM": _deepseek,
    "Gemma3ForCausalLM": _gemma3,
    "Gemma3ForConditionalGeneration": _gemma3,
    "GptOssForCausalLM": _gpt_oss,
    "LlamaForCausalLM": _dense,
    "MistralForCausalLM": _dense,
    "MixtralForCausalLM": _mixtral,
    "Phi3ForCausalLM": _dense,
    "Qwen2ForCausalLM": _qwen2,
    "Qwen3ForCausalLM": _qwen3,
    "Qwen3MoeForCausalLM": _qwen3_moe,
}
