"""Reads a Hugging Face config.json; features that are not modelled are errors that name the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from simqueue.datafiles.library import validated
from simqueue.datafiles.text import read_json
from simqueue.errors import InputError
from simqueue.hardware.architectures import Architecture, architecture_of
from simqueue.hardware.model_settings import ModelSettings

Keys = dict[str, Any]

_DTYPE_BYTES: Final = {"bfloat16": 2, "float16": 2, "float32": 4}
_REQUIRED: Final = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")
_NULL_IS_A_VALUE: Final = ("sliding_window", "q_lora_rank")
"""Keys for which the configuration classes take null as a value: no window, queries that are not compressed."""
_EXPERTS: Final = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_FALCON: Final = "new_decoder_architecture"


def read_config(file: Path, name: str) -> ModelSettings:
    """Read a Hugging Face config.json.

    A key that is missing or null has the default of the configuration class of its architecture.

    Parameters
    ----------
    file : Path
        The config.json.
    name : str
        Name shown in results.

    Raises
    ------
    InputError
        If the file cannot be read, its architecture is unknown, a key without a known default is missing, or it has a
        feature that is not modelled.
    """
    given = read_json(file)
    architecture = architecture_of(given, str(file))[1]
    config = _Config(file, architecture, _values(given, architecture))
    config.check_only()
    keys = {
        **_common(config),
        **architecture.shape,
        **_switched(config),
        **_windows(config),
        **_quantisation(config),
        **_layers(config),
        **_experts(config),
        **_latent(config),
    }
    return validated(ModelSettings, {"name": name, **keys}, str(file))


@dataclass(frozen=True, slots=True)
class _Config:
    """The values of a file, with the defaults of its class."""

    file: Path
    architecture: Architecture
    values: Mapping[str, Any]

    def get(self, key: str) -> Any:
        return self.values.get(key)

    def needed(self, *keys: str) -> list[Any]:
        """Return the values of keys that must be there."""
        missing = [key for key in keys if self.get(key) is None]
        if missing:
            raise self.error(f"missing {', '.join(missing)}")
        return [self.get(key) for key in keys]

    def error(self, text: str) -> InputError:
        return InputError(f"{self.file}: {text}")

    def check_only(self) -> None:
        """Check the values of keys of which only one value is modelled, and that a dense model has no experts."""
        for key, value in self.architecture.only.items():
            if self.get(key) not in (None, value):
                raise self.error(f"{key} {self.get(key)!r} is not modelled, only {value!r}")
        if self.architecture.experts is None and not _is_llama4(self):
            for key in _EXPERTS:
                if self.get(key):
                    raise self.error(f"{key} = {self.get(key)!r} in a dense architecture")


def _values(given: Mapping[str, Any], architecture: Architecture) -> Keys:
    """Return the values of the language model by their usual names; missing and null keys have their defaults."""
    text = given.get("text_config")
    found = {**_known(given), **(_known(text) if isinstance(text, Mapping) else {})}
    renamed = {usual: found[other] for other, usual in architecture.names.items() if other in found}
    return {**architecture.defaults, **renamed, **found}


def _known(values: Mapping[str, Any]) -> Keys:
    return {key: value for key, value in values.items() if value is not None or key in _NULL_IS_A_VALUE}


def _common(config: _Config) -> Keys:
    """Return the keys that all architectures share."""
    layers, hidden, heads, vocab = config.needed(*_REQUIRED)
    longest, spare = config.get("max_position_embeddings"), config.architecture.spare_positions
    return {
        "layers": layers,
        "heads": heads,
        "kv_heads": _kv_heads(config, heads),
        "head_dim": _head_dim(config, hidden, heads),
        "hidden": hidden,
        "intermediate": _intermediate(config, hidden),
        "vocab": vocab,
        "tied_embeddings": config.get("tie_word_embeddings") or False,
        "dtype_bytes": _dtype_bytes(config),
        "max_position": longest,
        **({} if spare is None else {"positions": config.needed("max_position_embeddings")[0] + spare}),
    }


def _kv_heads(config: _Config, heads: Any) -> Any:
    """Return the KV heads, under the names that configuration classes have for them; by default one for each head."""
    if config.get("multi_query_attention") is not None:  # ChatGLM
        return config.get("multi_query_group_num") if config.get("multi_query_attention") else heads
    if config.get("multi_query") and not config.get(_FALCON):  # Falcon, GPT-BigCode
        return 1
    if _FALCON in config.values:
        return config.get("num_kv_heads") if config.get(_FALCON) and config.get("num_kv_heads") else heads
    return config.get("num_key_value_heads") or heads


def _intermediate(config: _Config, hidden: Any) -> Any:
    if config.get("intermediate_size") is None and config.architecture.ffn_4 and isinstance(hidden, int):
        return 4 * hidden
    dense = "intermediate_size_mlp" if _is_llama4(config) else "intermediate_size"
    return config.needed(dense)[0]


def _head_dim(config: _Config, hidden: Any, heads: Any) -> Any:
    if config.get("head_dim") is not None:
        return config.get("head_dim")
    if not (isinstance(hidden, int) and isinstance(heads, int) and heads > 0 and hidden % heads == 0):
        raise config.error(
            f"no head_dim, and hidden_size {hidden!r} is not a multiple of num_attention_heads {heads!r}"
        )
    return hidden // heads


def _dtype_bytes(config: _Config) -> int:
    """Return the bytes of a stored number; without a key, PyTorch's default of float32."""
    dtype = config.get("torch_dtype") or config.get("dtype") or "float32"
    if dtype not in _DTYPE_BYTES:
        raise config.error(f"torch_dtype {dtype!r} is not one of {', '.join(_DTYPE_BYTES)}")
    return _DTYPE_BYTES[dtype]


def _switched(config: _Config) -> Keys:
    switches = config.architecture.switches.items()
    return {key: True for switch, keys in switches if config.get(switch) for key in keys}


def _windows(config: _Config) -> Keys:
    """Return the number of layers with a window, and its width."""
    window = config.get("sliding_window")
    if window is None or config.get("use_sliding_window") is False:
        return {}
    return {"window_layers": _window_layers(config, window), "window_tokens": window}


def _window_layers(config: _Config, window: Any) -> Any:
    """Return how many layers have the window: those that are listed, else all but every so-manieth, else all."""
    layers, pattern = config.get("num_hidden_layers"), config.get("sliding_window_pattern")
    kinds, rotary = config.get("layer_types"), config.get("no_rope_layers")
    if isinstance(kinds, list):
        return sum(kind in ("sliding_attention", "chunked_attention") for kind in kinds)
    if _is_llama4(config) and isinstance(rotary, list) and rotary:
        return sum(bool(flag) for flag in rotary)  # only layers with rotary positions attend in chunks
    if (
        config.architecture.windows == "pattern"
        and isinstance(layers, int)
        and isinstance(pattern, int)
        and pattern > 0
    ):
        return layers - layers // pattern
    if config.get("max_window_layers") is not None and config.get("use_sliding_window"):
        raise config.error(f"sliding_window {window!r} with max_window_layers and no layer_types is ambiguous")
    return layers


def _quantisation(config: _Config) -> Keys:
    """Return the number formats of a quantised checkpoint."""
    quantisation = config.get("quantization_config")
    if not quantisation:
        return {}
    method = quantisation.get("quant_method") if isinstance(quantisation, dict) else quantisation
    if method in ("fp8", "fbgemm_fp8"):
        return {"weights": "fp8"}
    if method == "mxfp4":
        return {"expert_weights": "fp4"}
    raise config.error(f"quantization_config has quant_method {method!r}; known: fp8, fbgemm_fp8, mxfp4")


def _layers(config: _Config) -> Keys:
    """Return the number of norms per layer where it depends on the file (Falcon)."""
    if _FALCON not in config.values:
        return {}
    norms = config.get("num_ln_in_parallel_attn") or (2 if config.get(_FALCON) else 1)
    is_parallel = config.get("parallel_attn") or config.get(_FALCON)
    return {"layer_norms": norms if is_parallel else 2}


def _experts(config: _Config) -> Keys:
    """Return routed and shared experts."""
    if _is_llama4(config):
        return _llama4_experts(config)
    named = config.architecture.experts
    if named is None:
        return {}
    count, width, active = config.needed(named.count, named.width, "num_experts_per_tok")
    keys = {"experts": count, "experts_per_token": active, "expert_intermediate": width}
    if named.shared_width is not None:
        keys["shared_intermediate"] = config.get(named.shared_width) or 0
    if named.shared_count is not None:
        keys["shared_intermediate"] = (config.get(named.shared_count) or 0) * width
    if named.dense_first is not None:
        keys["dense_layers"] = config.get(named.dense_first) or 0
    return keys


def _is_llama4(config: _Config) -> bool:
    return "interleave_moe_layer_step" in config.architecture.defaults


def _llama4_experts(config: _Config) -> Keys:
    """Return the experts of Llama 4: in the listed layers or every so-manieth, with a shared one of the same width."""
    layers, step, width = config.needed("num_hidden_layers", "interleave_moe_layer_step", "intermediate_size")
    count, active = config.needed("num_local_experts", "num_experts_per_tok")
    listed = config.get("moe_layers")
    with_experts = len(listed) if isinstance(listed, list) and listed else layers // step
    return {
        "experts": count,
        "experts_per_token": active,
        "expert_intermediate": width,
        "shared_intermediate": width,
        "dense_layers": layers - with_experts,
    }


def _latent(config: _Config) -> Keys:
    """Return latent attention: queries and keys of a head have a part without positions and a part with positions."""
    if not config.architecture.latent:
        return {}
    heads, plain, rope, value, rank = config.needed(
        "num_attention_heads", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank"
    )
    return {
        "kv_heads": heads,
        "head_dim": plain + rope,
        "value_dim": value,
        "q_lora_rank": config.get("q_lora_rank"),
        "kv_lora_rank": rank,
        "rope_dim": rope,
    }
