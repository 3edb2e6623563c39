"""Public config.json files of all kinds: parameters and KV as their cards publish them, and class defaults."""

from __future__ import annotations

import csv
import json
from math import prod
from pathlib import Path
from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.hardware import Model, load_model
from simqueue.hardware.architectures import architectures

DATA = Path(__file__).parent / "data"


def published() -> dict[str, dict[str, str]]:
    """Return the rows of the table by name."""
    lines = [line for line in (DATA / "published.csv").read_text().splitlines() if not line.startswith("#")]
    return {row["name"]: row for row in csv.DictReader(lines)}


PUBLISHED = published()


def config_of(name: str) -> dict[str, Any]:
    """Return the content of a file."""
    found: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())
    return found


def read(folder: Path, config: dict[str, Any]) -> Model:
    """Read a config as a file."""
    (folder / "model.json").write_text(json.dumps(config))
    return load_model("model.json", folder)


def changed(config: dict[str, Any], key: str, *value: Any) -> dict[str, Any]:
    """Return a config with a key of the language model removed, or with another value."""
    inner = {name: given for name, given in config.get("text_config", config).items() if name != key}
    inner |= {key: value[0]} if value else {}
    return {**config, "text_config": inner} if "text_config" in config else inner


def test_every_file_has_a_row_and_every_architecture_a_file() -> None:
    """Nothing in the table or in the reader goes unchecked, but other names of an architecture that has a file."""
    assert {file.stem for file in DATA.glob("*.json")} == set(PUBLISHED)
    covered = {config_of(name)["architectures"][0] for name in PUBLISHED}
    same = {"RWForCausalLM", "BaiChuanForCausalLM", "ChatGLMForConditionalGeneration", "Llama4ForCausalLM"}
    assert set(architectures()) - covered == same | {"InternLMForCausalLM"}
    assert len(covered) >= 25


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_of_the_card(name: str) -> None:
    """To the digits that the card has."""
    said = PUBLISHED[name]["billions"]
    digits = len(said.partition(".")[2])
    assert round(load_model(f"{name}.json", DATA).parameters / 1e9, digits) == float(said)


@pytest.mark.parametrize("name", PUBLISHED)
def test_keys_and_values_are_those_of_the_card(name: str) -> None:
    """The numbers stored per token, over all layers."""
    model = load_model(f"{name}.json", DATA)
    assert model.layers * model.kv_numbers_per_layer == prod(map(int, PUBLISHED[name]["kv_numbers"].split("*")))


@pytest.mark.parametrize("name", [name for name, row in PUBLISHED.items() if row["counted"]])
def test_parameters_are_those_of_the_model_class(name: str) -> None:
    """To the last one."""
    assert load_model(f"{name}.json", DATA).parameters == int(PUBLISHED[name]["counted"])


# values of the configuration classes of transformers 4.57.6, for keys that a file may leave out
CLASS_DEFAULTS = {
    "gemma-7b": {"num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "intermediate_size": 24576},
    "gemma-2-9b": {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096},
    "gemma-3-1b": {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208},
    "gemma-3-12b": {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208},
    "qwen3-4b": {"num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, "intermediate_size": 22016},
    "qwen3-30b-a3b": {"num_key_value_heads": 4, "num_experts": 128, "num_experts_per_tok": 8},
    "gpt-oss-20b": {"num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "num_local_experts": 128},
    "glm-4-9b-chat-hf": {"num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128},
    "glm-4-32b-0414": {"num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128},
    "glm-4.5-air": {"num_attention_heads": 96, "num_key_value_heads": 8, "n_routed_experts": 128},
    "llama-4-scout": {"num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 16},
    "mistral-7b-v0.1": {"num_key_value_heads": 8, "intermediate_size": 14336, "max_position_embeddings": 131072},
    "mixtral-8x7b": {"num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2},
    "llama-3-8b": {"num_key_value_heads": 32, "intermediate_size": 11008, "max_position_embeddings": 2048},
    "starcoder2-15b": {"num_key_value_heads": 2, "tie_word_embeddings": True, "intermediate_size": 12288},
    "command-r7b": {"tie_word_embeddings": True, "sliding_window": 4096, "intermediate_size": 22528},
    "falcon-40b": {"num_kv_heads": 128, "multi_query": True, "ffn_hidden_size": 4 * 8192},
    "deepseek-v3": {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "v_head_dim": 128, "n_shared_experts": 1},
    "deepseek-v2": {"q_lora_rank": 1536, "n_routed_experts": 64, "first_k_dense_replace": 0},
    "gpt2": {"n_inner": 3072, "n_positions": 1024, "n_head": 12},
    "opt-6.7b": {"ffn_dim": 3072, "max_position_embeddings": 2048, "enable_bias": True},
    "starcoder": {"n_inner": 4 * 6144, "multi_query": True, "tie_word_embeddings": True},
}
NULL_MEANS_NONE = {"sliding_window", "q_lora_rank"}


@pytest.mark.parametrize(
    ("name", "key", "default"), [(name, *item) for name, facts in CLASS_DEFAULTS.items() for item in facts.items()]
)
def test_a_missing_key_and_a_null_mean_the_default_of_the_class(
    tmp_path: Path, name: str, key: str, default: Any
) -> None:
    """Three files give one model: without the key, with null, with the value that the class has."""
    config = config_of(name)
    said = read(tmp_path, changed(config, key, default))
    assert read(tmp_path, changed(config, key)) == said
    if key not in NULL_MEANS_NONE:
        assert read(tmp_path, changed(config, key, None)) == said


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_null_is_like_a_missing_key(tmp_path: Path, name: str) -> None:
    """For every key of every file: the same model, or the same error."""
    config = config_of(name)
    for key in set(config.get("text_config", config)) - NULL_MEANS_NONE - {"architectures", "text_config"}:
        outcomes: list[Any] = []
        for other in (changed(config, key), changed(config, key, None)):
            try:
                outcomes.append(read(tmp_path, other))
            except InputError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1], key


def test_no_window_is_not_the_default_window(tmp_path: Path) -> None:
    """Mistral: null is a value of the class and means no window; without the key there is one of 4096."""
    config = config_of("mistral-7b-v0.1")
    assert read(tmp_path, changed(config, "sliding_window", None)).window_layers == 0
    assert read(tmp_path, changed(config, "sliding_window")).window_tokens == 4096


def test_queries_that_are_not_compressed_are_not_the_default(tmp_path: Path) -> None:
    """DeepSeek V2 Lite: q_lora_rank null means one full matrix, not a rank of 1536."""
    config = config_of("deepseek-v2-lite")
    assert read(tmp_path, changed(config, "q_lora_rank")).parameters != read(tmp_path, config).parameters


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("llama-3-8b", {"hidden_size": None}, "missing hidden_size"),
        ("gemma-3-12b", {"num_hidden_layers": None}, "missing num_hidden_layers"),
        ("deepseek-v2", {"num_experts_per_tok": None}, "missing num_experts_per_tok"),
        ("llama-3-8b", {"num_local_experts": 8}, "num_local_experts = 8 in a dense architecture"),
        ("qwen3-30b-a3b", {"mlp_only_layers": [0]}, "mlp_only_layers"),
        ("opt-6.7b", {"do_layer_norm_before": False}, "do_layer_norm_before False is not modelled, only True"),
        ("phi-2", {"qk_layernorm": True}, "qk_layernorm"),
        ("deepseek-v3", {"moe_layer_freq": 2}, "moe_layer_freq"),
    ],
)
def test_what_is_not_known_is_refused(tmp_path: Path, name: str, change: dict[str, Any], said: str) -> None:
    """A size without a known default, or a feature that is not modelled, is an error with the key."""
    config = config_of(name)
    for key, value in change.items():
        config = changed(config, key, value)
    with pytest.raises(InputError, match=said):
        read(tmp_path, config)


@pytest.mark.parametrize(
    "change",
    [
        {"architectures": ["JambaForCausalLM"]},
        {"architectures": ["DeepseekV32ForCausalLM"]},
        {"architectures": ["Qwen3NextForCausalLM"]},
        {"architectures": ["DeciLMForCausalLM"]},
        {"architectures": []},
        {"model_type": "qwen2"},
        {"model_type": "gemma3_text"},
    ],
)
def test_a_wrong_architecture_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    """An architecture that is not known, or one that contradicts the type of the model, is not read as another."""
    with pytest.raises(InputError, match="architecture"):
        read(tmp_path, {**config_of("llama-3-8b"), **change})


def test_windows_follow_the_pattern_of_the_class(tmp_path: Path) -> None:
    """Layers with a window: Gemma 2 every other, Gemma 3 five of six, Cohere 2, OLMo 3 and Llama 4 three of four."""
    layers = {"gemma-2-9b": 21, "gemma-3-4b": 29, "command-r7b": 24, "olmo-3-7b": 24, "llama-4-scout": 36}
    assert {name: load_model(f"{name}.json", DATA).window_layers for name in layers} == layers
    assert read(tmp_path, changed(config_of("olmo-3-7b"), "layer_types")).window_layers == 24
    assert read(tmp_path, changed(config_of("llama-4-scout"), "no_rope_layers")).window_layers == 36
