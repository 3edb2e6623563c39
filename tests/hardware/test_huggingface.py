"""The reader of Hugging Face config.json files."""

import json
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
            {"architectures": ["MixtralForCausalLM"]},
            r"'MixtralForCausalLM' is not known; nearest: MistralForCausalLM; ",
        ),
        ({"architectures": None}, r"architecture None is not known; .*known: LlamaForCausalLM, "),
        ({"hidden_size": None, "vocab_size": None}, "missing hidden_size, vocab_size"),
        ({"attention_bias": True}, "attention_bias is set"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantization_config is set"),
        ({"torch_dtype": "float8_e4m3fn"}, "torch_dtype 'float8_e4m3fn' is not one of bfloat16, float16, float32"),
        ({"sliding_window": 4096, "use_sliding_window": True}, "sliding_window 4096 is on"),
        ({"hidden_size": 4097}, "hidden_size 4097 is no multiple of num_attention_heads 32"),
        ({"num_hidden_layers": 0}, "layers: .*got 0"),
    ],
)
def test_what_is_not_understood_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """A config with an unknown architecture, a missing key or an unmodelled feature is refused by name in one line."""
    write(tmp_path, {**LLAMA_8B, **change})
    with pytest.raises(InputError, match=said) as caught:
        load_model("config.json", tmp_path)
    assert "config.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_window_without_a_switch_is_on_for_mistral(tmp_path: Path) -> None:
    """Mistral-7B v0.1, whose window of 4096 has no switch beside it, is refused; Qwen3's window needs its switch."""
    write(tmp_path, {**MISTRAL_7B_V02, "sliding_window": 4096})
    with pytest.raises(InputError, match="sliding_window 4096 is on"):
        load_model("config.json", tmp_path)
    write(tmp_path, {**QWEN3_8B, "sliding_window": 40960})
    assert load_model("config.json", tmp_path).layers == 36


def test_broken_json_names_its_line(tmp_path: Path) -> None:
    """A config.json that is no JSON is refused with its line; one that is no object, with what it is."""
    (tmp_path / "config.json").write_text('{\n  "hidden_size": 4096,\n}\n')
    with pytest.raises(InputError, match=r"config.json, line [23]: not valid JSON"):
        load_model("config.json", tmp_path)
    write(tmp_path, [1])
    with pytest.raises(InputError, match="must be a JSON object, not a list"):
        load_model("config.json", tmp_path)
