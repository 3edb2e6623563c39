"""Reads the config.json of a dense model from Hugging Face; what it cannot count it refuses by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from simqueue.errors import InputError
from simqueue.hardware.facts import validated
from simqueue.hardware.model_settings import ModelSettings
from simqueue.settings import nearest

Config = Mapping[str, Any]

_DTYPE_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
_REQUIRED = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "intermediate_size",
    "vocab_size",
)
# Keys that change the count or the cost in ways this reader does not know, when they are set.
_REFUSED_WHEN_SET = ("attention_bias", "mlp_bias", "quantization_config", "num_experts", "num_local_experts")


def read_config(file: Path, name: str) -> ModelSettings:
    """Read a Hugging Face config.json.

    Parameters
    ----------
    file : Path
        The config.json.
    name : str
        The name results show.

    Raises
    ------
    InputError
        The file cannot be read, its architecture is not known, or it holds something that is not modelled.
    """
    config = _load(file)
    architecture = _architecture(config, file)
    _refuse_what_is_not_modelled(config, architecture, file)
    return validated(ModelSettings, {"name": name, **_READERS[architecture](config, file)}, str(file))


def _load(file: Path) -> Config:
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {error}") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{file}, line {error.lineno}: not valid JSON: {error.msg}") from error
    if not isinstance(config, dict):
        raise InputError(f"{file}: must be a JSON object, not a {type(config).__name__}")
    return config


def _architecture(config: Config, file: Path) -> str:
    given = config.get("architectures")
    name = given[0] if isinstance(given, list) and given else given
    if name in _READERS:
        return str(name)
    known = sorted(_READERS)
    guess = nearest(str(name), known)
    hint = f"nearest: {guess}; " if guess else ""
    raise InputError(f"{file}: architecture {name!r} is not known; {hint}known: {', '.join(known)}")


def _refuse_what_is_not_modelled(config: Config, architecture: str, file: Path) -> None:
    for key in _REFUSED_WHEN_SET:
        if config.get(key):
            raise InputError(f"{file}: {key} is set ({config[key]!r}), which this reader does not model")
    window = config.get("sliding_window")
    # Mistral has no switch beside the window: a window that is there is on. Llama and Qwen3 need the switch.
    switched_on = config.get("use_sliding_window", architecture == "MistralForCausalLM")
    if window is not None and switched_on:
        raise InputError(f"{file}: sliding_window {window!r} is on, which this reader does not model")


def _dense(config: Config, file: Path) -> dict[str, Any]:
    """Return the keys that every dense grouped-query architecture shares."""
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
        "intermediate": config["intermediate_size"],
        "vocab": config["vocab_size"],
        "tied_embeddings": config.get("tie_word_embeddings", False),
        "dtype_bytes": _dtype_bytes(config, file),
        "max_position": config.get("max_position_embeddings"),
    }


def _head_dim(config: Config, file: Path) -> Any:
    if config.get("head_dim") is not None:
        return config["head_dim"]
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    if not (isinstance(hidden, int) and isinstance(heads, int) and heads > 0 and hidden % heads == 0):
        raise InputError(
            f"{file}: no head_dim, and hidden_size {hidden!r} is no multiple of num_attention_heads {heads!r}"
        )
    return hidden // heads


def _dtype_bytes(config: Config, file: Path) -> int:
    dtype = config.get("torch_dtype", config.get("dtype"))
    if dtype not in _DTYPE_BYTES:
        raise InputError(f"{file}: torch_dtype {dtype!r} is not one of {', '.join(_DTYPE_BYTES)}")
    return _DTYPE_BYTES[dtype]


def _qwen3(config: Config, file: Path) -> dict[str, Any]:
    """Qwen3 normalises queries and keys per head."""
    return {**_dense(config, file), "qk_norm": True}


_READERS: Mapping[str, Callable[[Config, Path], dict[str, Any]]] = {
    "LlamaForCausalLM": _dense,
    "MistralForCausalLM": _dense,
    "Qwen3ForCausalLM": _qwen3,
}
