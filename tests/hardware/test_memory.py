"""How many KV blocks a GPU has room for."""

from fractions import Fraction
from pathlib import Path

import pytest

from simqueue.errors import InputError
from simqueue.hardware import Gpu, GpuSettings, Model, check_fits, kv_pool_blocks, load_gpu, load_model

HERE = Path()


def gpu(name: str) -> Gpu:
    """Return a GPU of the library."""
    return load_gpu(name, HERE)


def model(name: str) -> Model:
    """Return a model of the library."""
    return load_model(name, HERE)


@pytest.mark.parametrize(
    ("gpu_name", "model_name", "tensor_parallel", "share", "block_size"),
    [
        ("h100-sxm", "llama-3.1-8b", 1, "0.9", 16),
        ("h200-sxm", "llama-3.1-70b", 2, "0.92", 16),
        ("a100-80gb", "qwen3-8b", 4, "0.85", 32),
        ("h100-sxm", "llama-3.1-70b", 16, "0.9", 16),
    ],
)
def test_pool_from_memory(gpu_name: str, model_name: str, tensor_parallel: int, share: str, block_size: int) -> None:
    """The pool is the share of the reported memory minus the weights, in whole blocks, on each GPU."""
    mib = {"h100-sxm": 81_559, "h200-sxm": 143_771, "a100-80gb": 81_920}[gpu_name]
    parameters = {"llama-3.1-8b": 8_030_261_248, "llama-3.1-70b": 70_553_706_496, "qwen3-8b": 8_190_735_360}[model_name]
    kv = {"llama-3.1-8b": 131_072, "llama-3.1-70b": 327_680, "qwen3-8b": 147_456}[model_name]
    left = Fraction(share) * mib * 2**20 - Fraction(2 * parameters, tensor_parallel)
    expected = left // (Fraction(kv, min(tensor_parallel, 8)) * block_size)
    blocks = kv_pool_blocks(gpu(gpu_name), model(model_name), tensor_parallel, float(share), block_size)
    assert blocks == expected


def test_405b_does_not_fit_one_h100() -> None:
    """Llama-3.1-405B on one H100 80 GB is rejected with both numbers in GB, in one line (case 53a)."""
    said = r"^model: llama-3.1-405b does not fit h100-sxm, NVIDIA H100 SXM5 80 GB: weights 812 GB > 77.0 GB .*85.5 GB"
    for check in (
        lambda: check_fits(gpu("h100-sxm"), model("llama-3.1-405b"), 1, 0.9),
        lambda: kv_pool_blocks(gpu("h100-sxm"), model("llama-3.1-405b"), 1, 0.9, 16),
    ):
        with pytest.raises(InputError, match=said) as caught:
            check()
        assert "\n" not in str(caught.value)


def test_405b_over_several_gpus() -> None:
    """The 405B model does not fit on eight H100 and fits on sixteen."""
    with pytest.raises(InputError, match=r"weights 812 GB / 8 GPUs > 77.0 GB"):
        check_fits(gpu("h100-sxm"), model("llama-3.1-405b"), 8, 0.9)
    check_fits(gpu("h100-sxm"), model("llama-3.1-405b"), 16, 0.9)
    assert kv_pool_blocks(gpu("h100-sxm"), model("llama-3.1-405b"), 16, 0.9, 16) > 0


def test_a_gpu_without_memory_sizes_nothing() -> None:
    """A GPU of unknown memory passes the check, and sizing a pool from it is an error that says what is needed."""
    bare = load_gpu(GpuSettings(bandwidth_bytes_per_s=1e12, flops_per_s=1e14))
    check_fits(bare, model("llama-3.1-405b"), 1, 0.9)
    with pytest.raises(InputError, match=r"is unknown.*memory_mib.*kv_cache.blocks"):
        kv_pool_blocks(bare, model("llama-3.1-8b"), 1, 0.9, 16)


def test_less_than_one_block_is_an_error() -> None:
    """Weights that fit but leave less than one block are rejected with both sizes."""
    weights = 16_060_522_496
    tight = Gpu("tight", weights + 1_000_000, 1e12, 1e14)
    with pytest.raises(InputError, match=r"leaves 0.001 GB of tight, one block of 16 tokens takes 0.002 GB"):
        kv_pool_blocks(tight, model("llama-3.1-8b"), 1, 1.0, 16)
