"""What a model stores, reads, computes and keeps."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from simqueue.errors import InputError
from simqueue.hardware import DtypeSettings, ModelSettings, load_model, model_names
from simqueue.hardware.model import attention_pairs, window_pairs

HERE = Path()
SHAPE = {"layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128}
GEOMETRY = {**SHAPE, "hidden": 4096, "intermediate": 14336, "vocab": 128256}


@pytest.mark.parametrize(
    ("name", "billions", "kv_bytes_per_token"),
    [
        ("llama-3.1-8b", 8.030, 131_072),
        ("llama-3.1-70b", 70.55, 327_680),
        ("llama-3.1-405b", 405.85, 516_096),
        ("llama-2-70b", 68.977, 327_680),
        ("qwen3-8b", 8.191, 147_456),
        ("qwen3-32b", 32.76, 262_144),
        ("qwen3-30b-a3b", 30.53, 98_304),
        ("qwen3-235b-a22b", 235.09, 192_512),
        ("qwen2.5-7b", 7.616, 57_344),
        ("qwen2.5-72b", 72.71, 327_680),
        ("mistral-7b-v0.1", 7.242, 131_072),
        ("mistral-7b-v0.2", 7.242, 131_072),
        ("mistral-7b-v0.3", 7.248, 131_072),
        ("mixtral-8x7b", 46.70, 131_072),
        ("deepseek-v3", 671.03, 70_272),
        ("deepseek-r1", 671.03, 70_272),
        ("gpt-oss-20b", 20.91, 49_152),
        ("gpt-oss-120b", 116.83, 73_728),
        ("gemma-3-27b", 27.01, 507_904),
        ("phi-4", 14.66, 204_800),
    ],
)
def test_published_totals(name: str, billions: float, kv_bytes_per_token: int) -> None:
    """Parameters counted from the geometry equal the published totals, and KV bytes the published sizes."""
    model = load_model(name, HERE)
    assert model.parameters / 1e9 == pytest.approx(billions, abs=0.005 if billions > 10 else 0.0005)
    assert model.kv_bytes_per_token == kv_bytes_per_token


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("qwen3-30b-a3b", 3.35),
        ("qwen3-235b-a22b", 22.19),
        ("mixtral-8x7b", 12.88),
        ("deepseek-v3", 37.55),
        ("gpt-oss-20b", 4.19),
        ("gpt-oss-120b", 5.71),
        ("llama-3.1-8b", 8.03),
    ],
)
def test_published_active_parameters(name: str, billions: float) -> None:
    """Active parameters per token equal the published totals, embeddings included."""
    assert load_model(name, HERE).active_parameters / 1e9 == pytest.approx(billions, abs=0.006)


@pytest.mark.parametrize(
    ("name", "growing"),
    [
        ("mistral-7b-v0.1", 0),
        ("gpt-oss-20b", 24_576),
        ("gpt-oss-120b", 36_864),
        ("gemma-3-27b", 81_920),
        ("llama-3.1-8b", 131_072),
    ],
)
def test_beyond_the_window_only_layers_without_one_grow(name: str, growing: int) -> None:
    """Beyond the window, a token adds KV in layers without a window only."""
    model = load_model(name, HERE)
    assert model.growing_kv_bytes_per_token == growing


@pytest.mark.parametrize(
    ("name", "gib", "abs_gib"), [("gpt-oss-20b", 12.8, 0.05), ("gpt-oss-120b", 60.8, 0.2), ("deepseek-v3", 626.7, 1.0)]
)
def test_quantised_checkpoints_have_their_published_size(name: str, gib: float, abs_gib: float) -> None:
    """MXFP4 experts with bf16, and fp8 matrices with bf16 embeddings and head, give the sizes of the checkpoints."""
    assert load_model(name, HERE).weight_bytes / 2**30 == pytest.approx(gib, abs=abs_gib)


def test_precision_leaves_embeddings_and_head() -> None:
    """In fp8 the layers of the 70B model take one byte per parameter, embeddings and head two; fp8 KV takes half."""
    table, layers = 128256 * 8192, 70_553_706_496 - 2 * 128256 * 8192
    fp8 = load_model("llama-3.1-70b", HERE).with_precision(weights="fp8", kv="fp8")
    assert fp8.weight_bytes == layers + 4 * table
    assert fp8.read_bytes == layers + 2 * table
    assert fp8.kv_bytes_per_token == 327_680 / 2
    fp4 = load_model("llama-3.1-70b", HERE).with_precision(weights="fp4")
    assert fp4.weight_bytes == layers * 17 / 32 + 4 * table
    assert load_model("llama-3.1-70b", HERE).with_precision() == load_model("llama-3.1-70b", HERE)


def test_precision_keys_name_formats() -> None:
    """The `dtype` keys take formats by name, all optional, and reject others."""
    keys = DtypeSettings.model_validate({"weights": "fp8", "kv": "fp8"})
    model = load_model("llama-3.1-8b", HERE).with_precision(keys.weights, keys.kv)
    assert (model.weights, model.kv_format) == ("fp8", "fp8")
    assert DtypeSettings() == DtypeSettings(weights=None, kv=None)
    with pytest.raises(ValidationError, match="weights"):
        DtypeSettings.model_validate({"weights": "int3"})


def test_the_latent_of_mla_is_replicated() -> None:
    """DeepSeek-V3 stores 61 x (512 + 64) numbers of 2 bytes per token, on each GPU for any number of GPUs."""
    model = load_model("deepseek-v3", HERE)
    assert [model.kv_bytes_per_token_per_gpu(n) for n in (1, 8, 16)] == [61 * 576 * 2] * 3


@pytest.mark.parametrize(("tokens", "distinct"), [(1, 8.0), (32, 111.77), (10_000, 128.0)])
def test_expected_distinct_experts(tokens: int, distinct: float) -> None:
    """Of 128 experts with 8 active, one token uses 8, 32 tokens 111.8, many tokens all: 128 (1 - 0.9375^n)."""
    experts = load_model("qwen3-30b-a3b", HERE).experts
    assert experts is not None
    assert experts.distinct(tokens) == pytest.approx(distinct, abs=0.005)


@given(st.integers(0, 60), st.integers(1, 60), st.integers(1, 80))
def test_window_pairs_are_counted_one_by_one(past: int, new: int, window: int) -> None:
    """The closed form with a window equals counting what each new token attends to, at most the window."""
    assert window_pairs(past, new, window) == sum(min(window, past + i + 1) for i in range(new))


def test_llama_8b_to_the_byte() -> None:
    """The 8B model has as many parameters as its published checkpoint: 8,030,261,248, in 16,060,522,496 bytes."""
    model = load_model("llama-3.1-8b", HERE)
    assert (model.parameters, model.weight_bytes) == (8_030_261_248, 16_060_522_496)


def test_the_embedding_table_is_stored_but_not_read() -> None:
    """A step reads 15.0 of the 16.06 GB of the 8B model: a token looks up one row of its embedding table."""
    model = load_model("llama-3.1-8b", HERE)
    assert model.weight_bytes - model.read_bytes == 128256 * 4096 * 2
    assert model.read_bytes / 1e9 == pytest.approx(15.01, abs=0.005)


def test_flops_leave_out_the_table_and_count_the_head_a_row() -> None:
    """Linear FLOPs per token are 2 x parameters without table and head; the head adds 2 x vocab x hidden per row."""
    model = load_model("llama-3.1-8b", HERE)
    table = 128256 * 4096
    assert model.linear_flops_per_token == 2 * (8_030_261_248 - 2 * table)
    assert model.head_flops_per_row == 2 * table


def test_tied_embeddings_count_once_and_are_read() -> None:
    """With tied embeddings the table is stored once, read each step as the head, and used per sampled row."""
    untied = load_model(ModelSettings.model_validate(GEOMETRY))
    tied = load_model(ModelSettings.model_validate({**GEOMETRY, "tied_embeddings": True}))
    assert untied.parameters - tied.parameters == 128256 * 4096
    assert tied.read_bytes == tied.weight_bytes == untied.read_bytes
    assert tied.linear_flops_per_token == untied.linear_flops_per_token
    assert tied.head_flops_per_row == untied.head_flops_per_row


def test_head_dim_need_not_be_hidden_over_heads() -> None:
    """Qwen3-32B, whose 64 heads of 128 are wider than its hidden size of 5120, has its published 32.76 B."""
    model = load_model(
        ModelSettings(
            layers=64, heads=64, kv_heads=8, head_dim=128, hidden=5120, intermediate=25600, vocab=151936, qk_norm=True
        )
    )
    assert model.parameters / 1e9 == pytest.approx(32.76, abs=0.005)


def test_a_bare_parameter_count() -> None:
    """From a parameter count alone, every parameter is stored, read in each step, and used by each token."""
    model = load_model(ModelSettings.model_validate({**SHAPE, "parameters": 8e9}))
    assert model.weight_bytes == model.read_bytes == 16_000_000_000
    assert (model.linear_flops_per_token, model.head_flops_per_row) == (16_000_000_000, 0)
    assert model.kv_bytes_per_token == 131_072


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({**GEOMETRY, "parameters": 8e9}, "parameters excludes the geometry: leave out hidden, intermediate, vocab"),
        ({**SHAPE, "parameters": 8e9, "tied_embeddings": True}, "leave out tied_embeddings"),
        (SHAPE, "missing hidden, intermediate, vocab"),
        ({**GEOMETRY, "kv_heads": 5}, r"heads \(32\) must be a multiple of kv_heads \(5\)"),
        ({**GEOMETRY, "layers": 0}, "layers"),
        ({**GEOMETRY, "layers": 32.5}, "layers"),
        ({**GEOMETRY, "layrs": 32}, "did you mean 'layers'"),
    ],
)
def test_contradictions_are_rejected(keys: dict[str, object], said: str) -> None:
    """A model given in both forms, in none, or with heads that cannot be grouped is rejected with the reason."""
    with pytest.raises(ValidationError, match=said):
        ModelSettings.model_validate(keys)


@given(st.integers(0, 60), st.integers(1, 60))
def test_attention_pairs_are_counted_one_by_one(past: int, new: int) -> None:
    """The closed form of causal attention equals counting what each new token attends to."""
    assert attention_pairs(past, new) == sum(past + i + 1 for i in range(new))


def test_kv_heads_are_shared_out_or_replicated() -> None:
    """With tensor parallelism each GPU stores its share of the KV heads, and at least one whole head."""
    model = load_model("llama-3.1-70b", HERE)
    assert [model.kv_bytes_per_token_per_gpu(n) for n in (1, 2, 8, 16)] == [327_680, 163_840, 40_960, 40_960]


@pytest.mark.parametrize("tensor_parallel", [0, -1, 3, 64])
def test_uneven_tensor_parallel_is_rejected(tensor_parallel: int) -> None:
    """A number of GPUs over which the heads do not divide is rejected with the numbers that are allowed."""
    model = load_model("llama-3.1-8b", HERE)
    with pytest.raises(
        InputError, match=rf"^tensor_parallel: .* over {tensor_parallel} GPUs; allowed: 1, 2, 4, 8, 16, 32$"
    ):
        model.check_tensor_parallel(tensor_parallel)


def test_models_state_their_longest_sequence() -> None:
    """Models of the library have their longest sequence."""
    longest = {name: load_model(name, HERE).max_position for name in model_names()}
    assert all(longest.values())
    assert {name: longest[name] for name in ("llama-3.1-405b", "llama-3.1-70b", "llama-3.1-8b", "qwen3-8b")} == {
        "llama-3.1-405b": 131_072,
        "llama-3.1-70b": 131_072,
        "llama-3.1-8b": 131_072,
        "qwen3-8b": 40_960,
    }
