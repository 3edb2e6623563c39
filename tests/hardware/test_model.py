"""What a model stores, reads, computes and keeps."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from simqueue.errors import InputError
from simqueue.hardware import ModelSettings, load_model, model_names
from simqueue.hardware.model import attention_pairs

HERE = Path()
SHAPE = {"layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128}
GEOMETRY = {**SHAPE, "hidden": 4096, "intermediate": 14336, "vocab": 128256}


@pytest.mark.parametrize(
    ("name", "billions", "kv_bytes_per_token"),
    [
        ("llama-3.1-8b", 8.030, 131_072),
        ("llama-3.1-70b", 70.55, 327_680),
        ("llama-3.1-405b", 405.85, 516_096),
        ("qwen3-8b", 8.191, 147_456),
    ],
)
def test_published_totals(name: str, billions: float, kv_bytes_per_token: int) -> None:
    """Parameters counted from the geometry equal the published totals, and KV bytes the published sizes."""
    model = load_model(name, HERE)
    assert model.parameters / 1e9 == pytest.approx(billions, abs=0.005 if billions > 10 else 0.0005)
    assert model.kv_bytes_per_token == kv_bytes_per_token


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
    """Linear FLOPs a token are 2 x parameters without table and head; the head adds 2 x vocab x hidden a row."""
    model = load_model("llama-3.1-8b", HERE)
    table = 128256 * 4096
    assert model.linear_flops_per_token == 2 * (8_030_261_248 - 2 * table)
    assert model.head_flops_per_row == 2 * table


def test_tied_embeddings_count_once_and_are_read() -> None:
    """With tied embeddings the table is stored once, read each step as the head, and multiplied a sampled row."""
    untied = ModelSettings.model_validate(GEOMETRY).to_model()
    tied = ModelSettings.model_validate({**GEOMETRY, "tied_embeddings": True}).to_model()
    assert untied.parameters - tied.parameters == 128256 * 4096
    assert tied.read_bytes == tied.weight_bytes == untied.read_bytes
    assert tied.linear_flops_per_token == untied.linear_flops_per_token
    assert tied.head_flops_per_row == untied.head_flops_per_row


def test_head_dim_need_not_be_hidden_over_heads() -> None:
    """Qwen3-32B, whose 64 heads of 128 are wider than its hidden size of 5120, has its published 32.76 B."""
    model = ModelSettings(
        layers=64, heads=64, kv_heads=8, head_dim=128, hidden=5120, intermediate=25600, vocab=151936, qk_norm=True
    ).to_model()
    assert model.parameters / 1e9 == pytest.approx(32.76, abs=0.005)


def test_a_bare_parameter_count() -> None:
    """From a parameter count alone, every parameter is stored, read each step, and multiplied for each token."""
    model = ModelSettings.model_validate({**SHAPE, "parameters": 8e9}).to_model()
    assert model.weight_bytes == model.read_bytes == 16_000_000_000
    assert (model.linear_flops_per_token, model.head_flops_per_row) == (16_000_000_000, 0)
    assert model.kv_bytes_per_token == 131_072


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({**GEOMETRY, "parameters": 8e9}, "parameters stands alone: leave out hidden, intermediate, vocab"),
        ({**SHAPE, "parameters": 8e9, "tied_embeddings": True}, "leave out tied_embeddings"),
        (SHAPE, "missing hidden, intermediate, vocab"),
        ({**GEOMETRY, "kv_heads": 5}, r"heads \(32\) must be a multiple of kv_heads \(5\)"),
        ({**GEOMETRY, "layers": 0}, "layers"),
        ({**GEOMETRY, "layers": 32.5}, "layers"),
        ({**GEOMETRY, "layrs": 32}, "did you mean 'layers'"),
    ],
)
def test_contradictions_are_refused(keys: dict[str, object], said: str) -> None:
    """A model given in two forms, in none, or with heads that cannot be grouped is refused with the reason."""
    with pytest.raises(ValidationError, match=said):
        ModelSettings.model_validate(keys)


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(1, 60))
def test_attention_pairs_are_counted_one_by_one(past: int, new: int) -> None:
    """The closed form of causal attention equals counting what each new token attends to."""
    assert attention_pairs(past, new) == sum(past + i + 1 for i in range(new))


@given(st.integers(0, 5000), st.lists(st.integers(1, 2000), min_size=1, max_size=6))
def test_chunks_cost_the_attention_of_the_whole(past: int, chunks: list[int]) -> None:
    """Attention FLOPs of a prompt cut into chunks add up to those of the prompt in one piece, exactly."""
    model = ModelSettings.model_validate(GEOMETRY).to_model()
    starts = [past + sum(chunks[:i]) for i in range(len(chunks))]
    pieces = [model.prefill_attention_flops(start, chunk) for start, chunk in zip(starts, chunks, strict=True)]
    assert sum(pieces) == model.prefill_attention_flops(past, sum(chunks))
    assert model.prefill_attention_flops(0, 1) == 4 * 32 * 32 * 128


def test_kv_heads_are_shared_out_or_replicated() -> None:
    """Under tensor parallelism each GPU keeps its share of the KV heads, and at least one whole head."""
    model = load_model("llama-3.1-70b", HERE)
    assert [model.kv_bytes_per_token_per_gpu(n) for n in (1, 2, 8, 16)] == [327_680, 163_840, 40_960, 40_960]


@pytest.mark.parametrize("tensor_parallel", [0, -1, 3, 64])
def test_uneven_tensor_parallel_is_refused(tensor_parallel: int) -> None:
    """A number of GPUs over which the heads do not divide is refused with the numbers that are allowed."""
    model = load_model("llama-3.1-8b", HERE)
    with pytest.raises(InputError, match=rf"^tensor_parallel: {tensor_parallel} .*allowed: 1, 2, 4, 8, 16, 32$"):
        model.check_tensor_parallel(tensor_parallel)


def test_models_state_their_longest_sequence() -> None:
    """Library models carry the positions they were made for."""
    longest = {name: load_model(name, HERE).max_position for name in model_names()}
    assert longest == {
        "llama-3.1-405b": 131_072,
        "llama-3.1-70b": 131_072,
        "llama-3.1-8b": 131_072,
        "qwen3-8b": 40_960,
    }
