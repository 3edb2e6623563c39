"""The arithmetic of the course module on continuous batching, recomputed; where its figure is off, both are shown."""

from math import ceil

import pytest

from simqueue.hardware import GpuSettings, ModelSettings, load_gpu, load_model
from simqueue.steptime import Batch, RooflineSettings
from simqueue.steptime.build import build
from simqueue.steptime.roofline import RooflineStepTime

GIB, MIB = 2**30, 2**20
SHAPE = {"layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128}
MODEL_8B = load_model(ModelSettings.model_validate({**SHAPE, "parameters": 8e9}))
MODEL_7B = load_model(ModelSettings.model_validate({**SHAPE, "parameters": 7e9}))
# The module's FLOP/s are effective ones, so the whole of them is reached.
GPU_A = load_gpu(GpuSettings(bandwidth_bytes_per_s=3.35e12, flops_per_s=350e12))
GPU_B = load_gpu(GpuSettings(bandwidth_bytes_per_s=3.35e12, flops_per_s=400e12))


@pytest.fixture
def a() -> RooflineStepTime:
    """Configuration A: 8B class, 350 effective TFLOPS."""
    return RooflineStepTime.of(MODEL_8B, GPU_A, bandwidth_share=1.0, mfu=1.0)


@pytest.fixture
def b() -> RooflineStepTime:
    """Configuration B: 7B class, 400 effective TFLOPS."""
    return RooflineStepTime.of(MODEL_7B, GPU_B, bandwidth_share=1.0, mfu=1.0)


def decode(n: int, context: int) -> Batch:
    """Return a step of `n` decodes, each at this context."""
    return Batch(n, n, n * context, (), n)


def agrees(stated: float, right: float, digits: int) -> bool:
    """Return whether a stated figure is right at its number of digits."""
    return round(right, digits) == stated


def test_the_inline_form_builds_the_same_model() -> None:
    """The module's hardware can be written in a scenario: inline model, inline GPU, MFU 1 of effective FLOP/s."""
    built = build(RooflineSettings(mfu=1.0), MODEL_8B, GPU_A, 1)
    assert built == RooflineStepTime.of(MODEL_8B, GPU_A, bandwidth_share=1.0, mfu=1.0)


def test_a1_weights(a: RooflineStepTime) -> None:
    """A1: weights are 16 GB and are read in 4.78 ms."""
    assert MODEL_8B.weight_bytes == 16e9
    assert agrees(4.78, 1e3 * a.terms(Batch()).memory_s, 2)


def test_a2_kv_per_token() -> None:
    """A2: 131,072 bytes of KV per token."""
    assert MODEL_8B.kv_bytes_per_token == 131_072


def test_a3_kv_of_a_request() -> None:
    """A3: 4096 tokens have 512 MiB of KV; eight such requests 4 GiB, about a quarter of the weights."""
    assert 4096 * MODEL_8B.kv_bytes_per_token == 512 * MIB
    eight = 8 * 4096 * MODEL_8B.kv_bytes_per_token
    assert eight == 4 * GIB
    assert eight / MODEL_8B.weight_bytes == pytest.approx(0.25, abs=0.02)


def test_a4_decode_step_of_32(a: RooflineStepTime) -> None:
    """A4: compute 512 GFLOP in 1.46 ms; memory is stated as 5.97 ms and is 6.06, so 5,282 tok/s and not 5,300."""
    batch = decode(32, 1024)
    terms = a.terms(batch)
    assert terms.linear_flops + terms.head_flops == 512e9
    assert agrees(1.46, 1e3 * terms.compute_s, 2)
    assert a.bound(batch) == "memory"
    assert agrees(4.295, terms.kv_bytes / 1e9, 3)
    assert not agrees(5.97, 1e3 * terms.memory_s, 2)
    assert agrees(6.06, 1e3 * terms.memory_s, 2)
    rate = 32 / a.seconds(batch)
    assert agrees(5300, rate, -2)
    assert agrees(5282, rate, 0)


def test_a5_decode_step_of_one(a: RooflineStepTime) -> None:
    """A5: 4.8 ms and 209 tok/s count the weights alone; with its KV one request makes 207.6; the ratio is 25."""
    assert agrees(4.8, 1e3 * a.seconds(decode(1, 1024)), 1)
    assert agrees(209, 1 / a.terms(Batch()).memory_s, 0)
    alone = 1 / a.seconds(decode(1, 1024))
    assert not agrees(209, alone, 0)
    assert agrees(207.6, alone, 1)
    assert agrees(25, 32 / a.seconds(decode(32, 1024)) / alone, 0)


def test_a6_a7_a8_static_batch_of_eight(a: RooflineStepTime) -> None:
    """A6-A8: 14.7 % of the slots work; 5.1 ms per step, 10.2 s per pass, 230 of 1,570 tok/s, loss 6.8; 100 queue."""
    outputs = [2000] + 7 * [50]
    useful, slots = sum(outputs), 8 * max(outputs)
    assert (useful, slots) == (2350, 16_000)
    assert agrees(14.7, 100 * useful / slots, 1)
    step_s = a.seconds(decode(8, 1024))
    assert agrees(5.1, 1e3 * step_s, 1)
    pass_s = 2000 * step_s
    assert agrees(10.2, pass_s, 1)
    assert agrees(230, useful / pass_s, -1)
    assert agrees(1570, slots / pass_s, -1)
    assert agrees(6.8, slots / useful, 1)
    assert agrees(100, 10 * pass_s, -1)


def test_a9_contiguous_reservation() -> None:
    """A9: 512 MiB per request reserved to 4096 tokens, 16 requests in 8 GiB, 54 % used at a mean of 2200 tokens."""
    reserved = 4096 * MODEL_8B.kv_bytes_per_token
    assert reserved == 512 * MIB
    assert 8 * GIB // reserved == 16
    assert agrees(54, 100 * 2200 * MODEL_8B.kv_bytes_per_token / reserved, 0)


def test_b1_prefill_of_2048(b: RooflineStepTime) -> None:
    """B1: 28.7 TFLOP and 72 ms leave causal attention out; with it 29.8 TFLOP and 74 ms."""
    terms = b.terms(Batch(prefill=((0, 2048),), sampled_rows=1))
    assert agrees(28.7, terms.linear_flops / 1e12, 1)
    assert agrees(72, 1e3 * terms.linear_flops / b.flops_per_s, 0)
    assert agrees(29.8, (terms.linear_flops + terms.attention_flops) / 1e12, 1)
    assert agrees(74, 1e3 * terms.compute_s, 0)


def test_b2_weights(b: RooflineStepTime) -> None:
    """B2: weights are 14 GB, which is 13 GiB and not 14; they are read in 4.2 ms, whatever the batch."""
    assert MODEL_7B.weight_bytes == 14e9
    assert not agrees(14, MODEL_7B.weight_bytes / GIB, 0)
    assert agrees(4.2, 1e3 * b.terms(Batch()).memory_s, 1)
    at_zero_context = {b.seconds(Batch(n, n, 0, (), n)) for n in (1, 32, 119)}
    assert at_zero_context == {b.terms(Batch()).memory_s}
    assert b.bound(Batch(120, 120, 0, (), 120)) == "compute"


def test_b3_ridge() -> None:
    """B3: the ridge of 989 TFLOPS / 3.35 TB/s is 295 FLOP/B; at 40 to 50 % of the peak it is 120 to 150."""
    h100 = load_gpu(GpuSettings(bandwidth_bytes_per_s=3.35e12, flops_per_s=989e12))
    assert agrees(295, h100.ridge_flops_per_byte, 0)
    assert agrees(120, 0.4 * h100.ridge_flops_per_byte, -1)
    assert agrees(150, 0.5 * h100.ridge_flops_per_byte, -1)


def test_b4_b5_prefill_beside_decodes(b: RooflineStepTime) -> None:
    """B4, B5: 35 us per token; 2048 prompt tokens with 32 decodes lengthen a step from 4.2 to 73 ms, 17 times."""
    token_s = b.work.linear_flops_per_token / b.flops_per_s
    assert agrees(35, 1e6 * token_s, 3)
    alone_s = b.terms(Batch()).memory_s
    mixed = b.terms(Batch(32, 32, 0, ((0, 2048),), 33))
    linear_s = mixed.linear_flops / b.flops_per_s
    assert linear_s == pytest.approx((32 + 2048) * token_s, rel=1e-12)
    assert agrees(73, 1e3 * linear_s, 0)
    assert agrees(17, linear_s / alone_s, 0)
    assert mixed.seconds > linear_s > 0.050


def test_b6_b7_sweet_spot(b: RooflineStepTime) -> None:
    """B6, B7: a chunk of 120 does not lengthen the step; 2048 tokens take 18 steps and not 17, 75 ms and not 71."""
    memory_s, token_s = b.terms(Batch()).memory_s, b.work.linear_flops_per_token / b.flops_per_s
    sweet_spot = memory_s / token_s
    assert agrees(120, sweet_spot, -1)
    steps = ceil(2048 / 120)
    assert steps == 18
    assert agrees(17.07, 2048 / 120, 2)
    assert not agrees(71, 1e3 * steps * memory_s, 0)
    assert agrees(75, 1e3 * steps * memory_s, 0)
    beside = 120 - 32
    assert beside == 88
    assert ceil(2048 / beside) == 24


def test_b8_launch_overhead(b: RooflineStepTime) -> None:
    """B8: 0.2 ms of launches with a chunk of 128 is 4.5 % of its 4.48 ms and not 5 %."""
    chunk_s = 128 * b.work.linear_flops_per_token / b.flops_per_s
    assert agrees(4.48, 1e3 * chunk_s, 2)
    share = 100 * 0.2e-3 / chunk_s
    assert not agrees(5, share, 0)
    assert agrees(4.5, share, 1)


def test_b9_chunks_hold_blocks_longer(b: RooflineStepTime) -> None:
    """B9: a prompt of 2048 in chunks of 120 holds KV for 18 steps: 20,408 token-steps against 2048 at once."""
    chunks = [(past, min(120, 2048 - past)) for past in range(0, 2048, 120)]
    held = sum(b.terms(Batch(prefill=(piece,))).kv_bytes for piece in chunks) / MODEL_7B.kv_bytes_per_token
    whole = b.terms(Batch(prefill=((0, 2048),))).kv_bytes / MODEL_7B.kv_bytes_per_token
    assert whole == 2048
    assert held == sum(120 * i for i in range(1, 18)) + 2048 == 20_408
