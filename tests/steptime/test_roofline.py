"""The roofline against figures worked out by hand."""

from pathlib import Path

import pytest

from simqueue.hardware import load_gpu, load_model
from simqueue.steptime import Batch, RooflineSettings
from simqueue.steptime.build import build
from simqueue.steptime.roofline import RooflineStepTime

H100 = load_gpu("h100-sxm", Path())


def roofline(model: str, tensor_parallel: int = 1, **shares: float) -> RooflineStepTime:
    """Return the roofline of a library model on H100s."""
    built = build(RooflineSettings(**shares), load_model(model, Path()), H100, tensor_parallel)
    assert isinstance(built, RooflineStepTime)
    return built


def decode(n: int, context: int) -> Batch:
    """Return a step of `n` decodes, each at this context."""
    return Batch(n, n, n * context, (), n)


def test_8b_on_h100_is_bound_below() -> None:
    """Llama-3.1-8B on an H100: a decode step takes at least 4.4 ms, a prefill of 2048 at least 28 ms (case 53b)."""
    peak = roofline("llama-3.1-8b", mfu=1.0)
    assert peak.seconds(decode(1, 1)) == pytest.approx((2 * 7_504_924_672 + 131_072) / 3.35e12, rel=1e-12)
    assert peak.seconds(decode(1, 1)) >= 4.4e-3
    prefill = Batch(prefill=((0, 2048),), sampled_rows=1)
    layers = 8_030_261_248 - 2 * 128256 * 4096
    flops = 2 * layers * 2048 + 2 * 128256 * 4096 + 4 * 32 * 32 * 128 * 2048 * 2049 / 2
    assert peak.seconds(prefill) == pytest.approx(flops / 989.4e12, rel=1e-12)
    assert peak.seconds(prefill) >= 28e-3
    assert roofline("llama-3.1-8b").seconds(prefill) == pytest.approx(flops / (0.7 * 989.4e12), rel=1e-12)


def test_weights_are_read_once_a_step() -> None:
    """At short context a step of 64 decodes takes less than twice a step of one (case 53c)."""
    model = roofline("llama-3.1-8b")
    assert model.seconds(decode(64, 1)) < 2 * model.seconds(decode(1, 1))


def test_bound_changes_sides() -> None:
    """Decodes are memory-bound; a long prefill, or enough decodes at short context, is compute-bound."""
    model = roofline("llama-3.1-8b")
    assert model.bound(decode(32, 1024)) == "memory"
    assert model.bound(Batch(prefill=((0, 2048),), sampled_rows=1)) == "compute"
    assert model.bound(decode(2000, 1)) == "compute"


def test_terms_of_a_mixed_batch() -> None:
    """Bytes and FLOPs of a mixed step are those counted by hand, and its duration is the longer of both sides."""
    model = roofline("llama-3.1-8b")
    batch = Batch(4, 8, 4000, ((512, 256), (0, 100)), 5)
    terms = model.terms(batch)
    table = 128256 * 4096
    assert terms.weight_bytes == 2 * 7_504_924_672
    assert terms.kv_bytes == 131_072 * (4000 + 768 + 100)
    assert terms.linear_flops == 2 * (8_030_261_248 - 2 * table) * (8 + 356)
    assert terms.head_flops == 2 * table * 5
    assert terms.attention_flops == 4 * 32 * 32 * 128 * (256 * 512 + 256 * 257 // 2 + 100 * 101 // 2)
    assert terms.memory_s == pytest.approx((terms.weight_bytes + terms.kv_bytes) / 3.35e12, rel=1e-12)
    flops = terms.linear_flops + terms.head_flops + terms.attention_flops
    assert terms.compute_s == pytest.approx(flops / (0.7 * 989.4e12), rel=1e-12)
    assert model.seconds(batch) == terms.seconds == max(terms.memory_s, terms.compute_s)
    assert model.bound(batch) == terms.bound


def test_shares_scale_their_side_only() -> None:
    """Half the bandwidth doubles memory time, half the MFU doubles compute time, and neither changes the other."""
    batch = decode(32, 1024)
    ideal = roofline("llama-3.1-8b").terms(batch)
    slow_memory = roofline("llama-3.1-8b", bandwidth_share=0.5).terms(batch)
    slow_compute = roofline("llama-3.1-8b", mfu=0.35).terms(batch)
    assert (slow_memory.memory_s, slow_memory.compute_s) == pytest.approx((2 * ideal.memory_s, ideal.compute_s))
    assert (slow_compute.memory_s, slow_compute.compute_s) == pytest.approx((ideal.memory_s, 2 * ideal.compute_s))


def test_tensor_parallel_shares_the_work_and_replicates_few_heads() -> None:
    """Eight GPUs take an eighth of the time; sixteen halve the weights again but not the KV of eight heads."""
    batch = decode(16, 4096)
    one, eight, sixteen = (roofline("llama-3.1-70b", n).terms(batch) for n in (1, 8, 16))
    assert eight.seconds == pytest.approx(one.seconds / 8, rel=1e-12)
    assert sixteen.weight_bytes == eight.weight_bytes / 2
    assert sixteen.kv_bytes == eight.kv_bytes
    assert sixteen.compute_s == pytest.approx(one.compute_s / 16, rel=1e-12)
