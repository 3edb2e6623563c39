"""The calibrated roofline: its formula by hand, its terms, its bounds."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.errors import InputError
from simqueue.hardware import GpuSettings, Model, ModelSettings, load_gpu, load_model
from simqueue.steptime import Batch, Coefficients, RooflineSettings, preset_names
from simqueue.steptime.build import build
from simqueue.steptime.calibrated import CalibratedStepTime
from simqueue.steptime.preset import load_preset
from simqueue.steptime.roofline import RooflineStepTime
from simqueue.steptime.validity import hardware_notes

from ..helpers.profiles import examples

HERE = Path()
H100 = load_gpu("h100-sxm", HERE)
LLAMA_70B = load_model("llama-3.1-70b", HERE)
VALUES = Coefficients(
    bandwidth_share=0.8,
    mfu=0.7,
    kv_bandwidth_share=0.9,
    mixed_kv_bandwidth_share=0.5,
    attention_mfu=0.6,
    layer_us=20.0,
    prefill_layer_us=10.0,
    seq_us=3.0,
    step_ms=1.0,
)
LINK = VALUES.model_copy(update={"allreduce_us": 5.0, "link_share": 0.75})


def step_time(values: Coefficients = VALUES, model: Model = LLAMA_70B, tensor_parallel: int = 4) -> CalibratedStepTime:
    """Return the calibrated step time of a model on H100s."""
    return CalibratedStepTime.of(model, H100, tensor_parallel, values)


def decode(n: int, context: int) -> Batch:
    """Return a step of `n` decodes, each at this context."""
    return Batch(n, n, n * context, (), n)


LAYERS = 70_553_706_496 - 2 * 128256 * 8192
REDUCES = 2 * 80  # two all-reduces a layer, each of 8,192 values of two bytes a token
REDUCE_S = {16: 7.12e-6, 1024: 98.75e-6}  # measured on four H100s, by tokens: 262,144 and 16,777,216 bytes


def test_decode_by_hand() -> None:
    """Sixteen decodes at 2000 tokens of the 70B model on four GPUs take what the formula gives, term by term."""
    weights_s = 2 * (LAYERS + 128256 * 8192) / 4 / (0.8 * 3.35e12)
    kv_s = 16 * 2000 * 327_680 / 4 / (0.9 * 3.35e12)
    launches_s = 80 * 20e-6
    reduce_s = REDUCES * REDUCE_S[16]
    expected = weights_s + kv_s + launches_s + 16 * 3e-6 + reduce_s + 1e-3
    assert step_time().seconds(decode(16, 2000)) == pytest.approx(expected, rel=1e-12)


def test_prefill_by_hand() -> None:
    """A chunk of 1024 tokens after 512 is bound by its FLOPs and adds attention, the KV that it reads, and launches."""
    matrices_s = 2 * (LAYERS * 1024 + 128256 * 8192) / 4 / (0.7 * 989.4e12)
    attention_s = 4 * 80 * 64 * 128 * (1024 * 512 + 1024 * 1025 / 2) / 4 / (0.6 * 989.4e12)
    read_s = 1536 * 327_680 / 4 / (0.5 * 3.35e12)
    other_s = 80 * 30e-6 + 3e-6 + REDUCES * REDUCE_S[1024] + 1e-3
    batch = Batch(prefill=((512, 1024),), sampled_rows=1)
    assert step_time().seconds(batch) == pytest.approx(matrices_s + attention_s + read_s + other_s, rel=1e-12)


def test_a_preset_can_have_all_reduces_of_its_own() -> None:
    """With a latency and a share of the link, each GPU sends 2 (tp - 1) / tp times the state, whatever was measured."""
    sent_s = 16 * 8192 * 2 * (2 * 3 / 4) / (0.75 * 450e9)
    extra_s = step_time(LINK).seconds(decode(16, 2000)) - step_time().seconds(decode(16, 2000))
    assert extra_s == pytest.approx(REDUCES * (5e-6 + sent_s - REDUCE_S[16]), rel=1e-9)


def test_all_reduces_that_nothing_tells_are_estimated_and_noted() -> None:
    """On a GPU without measurements, all-reduces are estimated as on the H100, and a note says so."""
    link = {"bandwidth_bytes_per_s": 3.35e12, "flops_per_s": 989.4e12, "link_bytes_per_s": 4.5e11}
    bare = load_gpu(GpuSettings.model_validate({"name": "bare", **link}))
    prices = CalibratedStepTime.of(LLAMA_70B, bare, 4, VALUES)
    sent_s = 16 * 8192 * 2 * (2 * 3 / 4) / (0.62 * 450e9)
    extra_s = prices.seconds(decode(16, 2000)) - step_time().seconds(decode(16, 2000))
    assert extra_s == pytest.approx(REDUCES * (4.7e-6 + sent_s - REDUCE_S[16]), rel=1e-9)
    notes = [note.text for note in hardware_notes(load_preset("vllm-h100"), LLAMA_70B, bare, 4)]
    assert "has to estimate all-reduces over 4 GPUs from the peak of the link: none were measured on bare" in notes


def test_reading_and_computing_overlap_in_part() -> None:
    """With an exponent of 2, a step that would read for 3 units and compute for 4 takes 5; without one it takes 4."""
    values = VALUES.model_copy(update={"overlap_exponent": 2.0})
    batch = decode(256, 1)
    read_s = 2 * (LAYERS + 128256 * 8192) / 4 / (0.8 * 3.35e12)
    compute_s = 256 * 2 * (LAYERS + 128256 * 8192) / 4 / (0.7 * 989.4e12)
    assert min(read_s, compute_s) > 0.5 * max(read_s, compute_s)
    extra_s = step_time(values).seconds(batch) - step_time().seconds(batch)
    assert extra_s == pytest.approx((read_s**2 + compute_s**2) ** 0.5 - max(read_s, compute_s), rel=1e-9)


def test_decodes_beside_a_prompt_read_their_cache_more_slowly() -> None:
    """In a mixed step the KV of decodes is read at its own share, here five ninths as fast."""
    prompt = Batch(prefill=((0, 64),), sampled_rows=1)
    mixed = Batch(8, 8, 80_000, ((0, 64),), 9)
    without = Batch(8, 8, 0, ((0, 64),), 9)
    extra_s = step_time().seconds(mixed) - step_time().seconds(without)
    assert extra_s == pytest.approx(80_000 * 327_680 / 4 / (0.5 * 3.35e12), rel=1e-9)
    assert step_time().seconds(mixed) > step_time().seconds(prompt)


def test_rereading_is_capped_by_the_group() -> None:
    """With a small L2 cache, each of the eight heads of a group reads the keys and values of decodes again."""
    values = VALUES.model_copy(update={"reread_gb": 1e-6})
    batch, without = Batch(64, 64, 640_000, ((0, 64),), 65), Batch(64, 64, 0, ((0, 64),), 65)
    once = step_time().seconds(batch) - step_time().seconds(without)
    again = step_time(values).seconds(batch) - step_time(values).seconds(without)
    assert again / once == pytest.approx(8, rel=1e-9)


def test_the_longest_context_bounds_attention() -> None:
    """A few prompt tokens after a long cached prompt take at least 20 ns per cached token and layer."""
    values = VALUES.model_copy(update={"walk_ns": 20.0})
    batch = Batch(prefill=((30_000, 16),), sampled_rows=1)
    extra_s = step_time(values).seconds(batch) - step_time().seconds(batch)
    read_s = 30_016 * 327_680 / 4 / (0.5 * 3.35e12)
    attention_s = 4 * 80 * 64 * 128 * (16 * 30_000 + 16 * 17 / 2) / 4 / (0.6 * 989.4e12)
    assert extra_s == pytest.approx(20e-9 * 80 * 30_016 - read_s - attention_s, rel=1e-9)


def test_the_host_is_a_floor_and_not_a_summand() -> None:
    """A step takes the larger of the GPU's terms and the host's 30 ms + 0.3 ms per sequence."""
    values = VALUES.model_copy(update={"host_ms": 30.0, "host_seq_us": 300.0})
    assert step_time(values).seconds(decode(4, 100)) == pytest.approx(0.030 + 4 * 300e-6 + 1e-3, rel=1e-12)
    large = Batch(prefill=((0, 16_384),), sampled_rows=1)
    assert step_time(values).seconds(large) == step_time().seconds(large)


def test_fp8_reads_half_and_multiplies_twice_as_fast() -> None:
    """fp8 halves the bytes of the layers and their FLOP time; the output head, the KV and the rest are unchanged."""
    fp8 = step_time(model=LLAMA_70B.with_precision(weights="fp8"))
    saved_s = step_time().seconds(decode(4, 100)) - fp8.seconds(decode(4, 100))
    assert saved_s == pytest.approx(LAYERS / 4 / (0.8 * 3.35e12), rel=1e-9)
    prompt = Batch(prefill=((0, 8192),), sampled_rows=1)
    saved_s = step_time().seconds(prompt) - fp8.seconds(prompt)
    flops = 2 * LAYERS * 8192 / 4
    assert saved_s == pytest.approx(flops / (0.7 * 989.4e12) - flops / (0.7 * 1978.9e12), rel=1e-9)


def test_experts_are_read_as_far_as_tokens_reach_them() -> None:
    """One decode reads 8 of 128 experts per layer, 32 decodes read the expected 111.8."""
    model = load_model("qwen3-30b-a3b", HERE)
    prices = step_time(model=model, tensor_parallel=1)
    one, many = (
        {term.name: term.bytes_moved or 0.0 for term in prices.explain(decode(n, 1))}["experts, reading"]
        for n in (1, 32)
    )
    expert_bytes, pair_bytes = 48 * 3 * 2048 * 768 * 2, 48 * (3 * 2048 + 6 * 768) * 2
    expected = (128 * (1 - 0.9375**32) - 8) * expert_bytes + 31 * 8 * pair_bytes
    assert many - one == pytest.approx(expected, rel=1e-9)


def test_windows_cut_what_is_read() -> None:
    """Beyond the window, a longer context of Gemma 3 adds the KV of its ten global layers only."""
    model = load_model("gemma-3-27b", HERE)
    prices = step_time(model=model, tensor_parallel=1)
    extra_s = prices.seconds(decode(4, 10_000)) - prices.seconds(decode(4, 9_000))
    assert extra_s == pytest.approx(4 * 1000 * 81_920 / (0.9 * 3.35e12), rel=1e-9)
    extra_s = prices.seconds(decode(4, 900)) - prices.seconds(decode(4, 800))
    assert extra_s == pytest.approx(4 * 100 * 507_904 / (0.9 * 3.35e12), rel=1e-9)


def test_tensor_parallel_needs_a_link_and_a_width() -> None:
    """Several GPUs without a link, or a model without a hidden width, are rejected; the error names the missing key."""
    bare = load_gpu(GpuSettings(name="bare", bandwidth_bytes_per_s=3e12, flops_per_s=1e15))
    with pytest.raises(InputError, match="link_bytes_per_s of bare is unknown; tensor_parallel 2 needs it"):
        CalibratedStepTime.of(LLAMA_70B, bare, 2, VALUES)
    total = load_model(ModelSettings(parameters=8_000_000_000, layers=32, heads=32, kv_heads=8, head_dim=128))
    with pytest.raises(InputError, match="hidden of inline is unknown; tensor_parallel 2 needs it"):
        CalibratedStepTime.of(total, H100, 2, VALUES)
    assert CalibratedStepTime.of(total, bare, 1, VALUES).seconds(decode(1, 1)) > 0


BATCHES = st.builds(
    lambda n, context, prefill: Batch(n, n, n * context, tuple(prefill), n + len(prefill)),
    st.integers(0, 512),
    st.integers(1, 32_768),
    st.lists(st.tuples(st.integers(0, 16_384), st.integers(1, 8192)), max_size=3),
).filter(lambda batch: batch.decode_seqs or batch.prefill)

FITTED = [name for name in preset_names() if name != "ideal"]


@cache
def built(preset: str, model: str, tensor_parallel: int) -> tuple[CalibratedStepTime, RooflineStepTime]:
    """Return a preset's step time on its own GPU, and the bound of full bandwidth and full peak."""
    loaded = load_preset(preset)
    gpu, shape = load_gpu(loaded.card.gpu or "", HERE), load_model(model, HERE)
    bound = RooflineStepTime.of(shape, gpu, tensor_parallel, bandwidth_share=1.0, mfu=1.0)
    return CalibratedStepTime.of(shape, gpu, tensor_parallel, loaded.coefficients, loaded), bound


@pytest.mark.parametrize("preset", FITTED)
@examples(60)
@given(batch=BATCHES, tensor_parallel=st.sampled_from([1, 2, 4, 8]))
def test_no_preset_is_faster_than_the_peaks(preset: str, batch: Batch, tensor_parallel: int) -> None:
    """No calibrated step takes less than the ideal roofline at full bandwidth and full peak.

    Tokens that prefer the same experts touch fewer of them than the ideal roofline reads, but at least those of one
    token.
    """
    for model in ("llama-3.1-8b", "qwen3-30b-a3b", "gpt-oss-20b"):
        prices, bound = built(preset, model, tensor_parallel)
        least = bound.terms(batch)
        read = (
            bound.work.weight_bytes(1) if load_preset(preset).coefficients.routing_correlation else least.weight_bytes
        )
        least_s = max((read + least.kv_bytes) / bound.bytes_per_s, least.compute_s)
        assert prices.seconds(batch) >= least_s * (1 - 1e-12)


@pytest.mark.parametrize("preset", FITTED)
@examples(60)
@given(batch=BATCHES, tensor_parallel=st.sampled_from([1, 4]))
def test_the_terms_that_count_add_up(preset: str, batch: Batch, tensor_parallel: int) -> None:
    """The terms with `counts` add up to the duration of the step, in every preset and kind of step."""
    for model in ("llama-3.1-8b", "gpt-oss-20b"):
        prices, _ = built(preset, model, tensor_parallel)
        total = sum(term.seconds for term in prices.explain(batch) if term.counts)
        assert total == pytest.approx(prices.seconds(batch), rel=1e-9)


@pytest.mark.parametrize("preset", ["vllm-h100", "vllm-h200-kernels", "trtllm-h100"])
def test_eight_gpus_are_not_eight_times_as_fast(preset: str) -> None:
    """Launches and all-reduces do not shrink: eight GPUs take more than a sixth of the time of one GPU."""
    one, eight = (built(preset, "llama-3.1-8b", n)[0].seconds(decode(16, 1024)) for n in (1, 8))
    assert eight > one / 6
    assert eight < one


def test_a_given_share_replaces_the_presets() -> None:
    """bandwidth_share and mfu override those of a calibrated preset; the other values are unchanged."""
    settings_ = RooflineSettings(preset="vllm-h100-kernels", bandwidth_share=0.42)
    made, preset = build(settings_, LLAMA_70B, H100, 4), load_preset("vllm-h100-kernels")
    expected = preset.coefficients.model_copy(update={"bandwidth_share": 0.42})
    assert isinstance(made, CalibratedStepTime)
    assert made.rates == step_time(expected).rates
    assert settings_.shares() == (0.42, preset.coefficients.mfu)
