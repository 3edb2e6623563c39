"""Routed experts: how many a step reaches, on which GPU, and what that takes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import betabinom

from simqueue.errors import InputError
from simqueue.hardware import load_gpu, load_model
from simqueue.steptime import Batch, Coefficients, RooflineSettings, load_preset
from simqueue.steptime.build import build
from simqueue.steptime.calibrated import CalibratedStepTime
from simqueue.steptime.experts import UNMEASURED, ExpertTime, routed_to
from simqueue.steptime.validity import hardware_notes

from ..helpers.profiles import examples

HERE = Path()
H100 = load_gpu("h100-sxm", HERE)
QWEN = load_model("qwen3-30b-a3b", HERE)
VALUES = Coefficients(
    bandwidth_share=0.8,
    mfu=0.7,
    expert_bandwidth_share=0.5,
    expert_mfu=0.4,
    expert_overlap_exponent=2.0,
    expert_layer_us=10.0,
)
EXPERT = 3 * 2048 * 768  # parameters of one of 128 experts, of which 8 are active, in each of 48 layers
MOVED = 3 * 2048 + 6 * 768  # numbers of a token with one expert: its state, and what is between the matrices


def experts_of(values: Coefficients, gpus: int = 1, *, expert_parallel: bool = False) -> ExpertTime:
    """Return the experts of Qwen3 30B-A3B on H100s."""
    found = ExpertTime.of(values, QWEN, H100, gpus, expert_parallel=expert_parallel)
    assert found is not None
    return found


def decode(n: int) -> Batch:
    """Return a step of `n` decodes with a short context."""
    return Batch(n, n, n, (), n)


@pytest.mark.parametrize("tokens", [1, 32, 4096])
def test_experts_by_hand(tokens: int) -> None:
    """Reading and computing overlap as the exponent says, in each of 48 layers, beside 10 us for routing."""
    read_s = (128 * (1 - 0.9375**tokens) * EXPERT + 8 * tokens * MOVED) * 2 / (0.5 * 3.35e12)
    compute_s = 8 * tokens * 2 * EXPERT / (0.4 * 989.4e12)
    expected = 48 * (10e-6 + (read_s**2 + compute_s**2) ** 0.5)
    assert experts_of(VALUES).seconds(tokens) == pytest.approx(expected, rel=1e-9)


def test_the_rest_of_the_model_is_that_without_experts() -> None:
    """A step takes the time of the model without its routed experts, and that of the experts."""
    whole, rest = (CalibratedStepTime.of(model, H100, 1, VALUES) for model in (QWEN, QWEN.without_experts()))
    assert rest.experts is None
    assert QWEN.parameters - QWEN.without_experts().parameters == 48 * 128 * EXPERT
    assert whole.seconds(decode(7)) == pytest.approx(rest.seconds(decode(7)) + experts_of(VALUES).seconds(7), rel=1e-12)


def test_without_rates_of_its_own_a_preset_takes_those_of_the_gpu() -> None:
    """The measured rates of the format count: bf16 here, fp8 for a model in fp8."""
    bare = Coefficients(bandwidth_share=0.8, mfu=0.7)
    for weights in ("bf16", "fp8"):
        measured = H100.grouped_gemm(weights)
        assert measured is not None
        own = bare.model_copy(
            update={
                "expert_bandwidth_share": measured.bandwidth_share,
                "expert_mfu": measured.mfu,
                "expert_overlap_exponent": measured.overlap_exponent,
                "expert_layer_us": measured.layer_us,
            }
        )
        model = QWEN if weights == "bf16" else QWEN.with_precision(weights="fp8")
        found, expected = (ExpertTime.of(values, model, H100, 1, expert_parallel=False) for values in (bare, own))
        assert found == expected


def test_rates_that_were_not_measured_are_those_of_another_gpu_and_noted() -> None:
    """On a GPU without measured experts the rates are those of the H100 (fp4: of the H200), and a note says so."""
    assert {weights: H100.grouped_gemm(weights) for weights in ("bf16", "fp8")} == {
        weights: UNMEASURED[weights] for weights in ("bf16", "fp8")
    }
    assert load_gpu("h200-sxm", HERE).grouped_gemm("fp4") == UNMEASURED["fp4"]
    preset, l4 = load_preset("vllm-h100-kernels"), load_gpu("l4", HERE)
    said = "has to take the rates of experts in bf16 from another GPU: none were measured on l4"
    assert said in [note.text for note in hardware_notes(preset, QWEN, l4, 1)]
    assert said not in [note.text for note in hardware_notes(preset, QWEN.without_experts(), l4, 1)]
    assert not [note for note in hardware_notes(preset, QWEN, H100, 1) if "rates of experts" in note.text]


@examples(40)
@given(
    active=st.integers(1, 8),
    others=st.integers(1, 248),
    correlation=st.floats(0.01, 0.6),
    tokens=st.integers(1, 400),
)
def test_distinct_experts_are_those_of_a_beta_binomial_distribution(
    active: int, others: int, correlation: float, tokens: int
) -> None:
    """An expert is missed if none of T draws of a beta-binomial distribution hits it; one token reaches its own."""
    experts = active + others
    mean, total = active / experts, 1 / correlation - 1
    missed = float(betabinom(tokens, mean * total, (1 - mean) * total).pmf(0))
    found = routed_to(experts, active, correlation, tokens)
    assert found == pytest.approx(experts * (1 - missed), rel=1e-7)
    assert found <= routed_to(experts, active, 0.0, tokens) * (1 + 1e-9)
    assert routed_to(experts, active, correlation, 1) == pytest.approx(active, rel=1e-9)


@examples(60)
@given(exponent=st.floats(0.5, 18), tokens=st.integers(1, 20_000))
def test_distinct_experts_are_a_product_for_any_correlation(exponent: float, tokens: int) -> None:
    """Token by token, an expert is missed with probability (b + t) / (s + t); this holds for tiny correlations too."""
    total = 10.0**exponent - 1
    unused = 0.9375 * total
    missed = np.exp(np.log1p(-(total - unused) / (total + np.arange(tokens))).sum())
    assert routed_to(128, 8, 10.0**-exponent, tokens) == pytest.approx(128 * (1 - missed), rel=1e-7)


@examples(40)
@given(tokens=st.integers(1, 5000))
def test_no_correlation_is_the_limit_of_a_small_one(tokens: int) -> None:
    """With a correlation of 1e-12, as many experts are reached as if all were equally likely."""
    assert routed_to(128, 8, 1e-12, tokens) == pytest.approx(routed_to(128, 8, 0.0, tokens), rel=1e-9)


def draws(tokens: int, n: int = 200) -> NDArray[np.int64]:
    """Return the tokens of each of 128 experts in `n` layers, for tokens with 8 of them, all equally likely."""
    generator = np.random.default_rng(3)
    chosen = np.argpartition(generator.random((n, tokens, 128)), 8, axis=2)[:, :, :8]
    return np.stack([np.bincount(layer.ravel(), minlength=128) for layer in chosen])


@pytest.mark.parametrize("tokens", [16, 128])
@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_the_busiest_gpu_has_what_a_draw_gives_it(tokens: int, gpus: int) -> None:
    """With whole experts on each GPU, the busiest has the pairs that random routing gives it, within 3 %."""
    most = draws(tokens).reshape(200, gpus, -1).sum(axis=2).max(axis=1).mean()
    _, pairs = experts_of(VALUES, gpus, expert_parallel=True).load(tokens)
    assert pairs == pytest.approx(most, rel=0.03)


@examples(60)
@given(
    tokens=st.integers(1, 20_000),
    gpus=st.sampled_from([1, 2, 4, 8, 16]),
    correlation=st.one_of(st.just(0.0), st.floats(1e-4, 0.9)),
)
def test_the_busiest_gpu_has_at_least_its_part_and_at_most_all(tokens: int, gpus: int, correlation: float) -> None:
    """Experts and pairs of the busiest GPU are between the mean over the GPUs and all that can be there."""
    one, many = (
        experts_of(VALUES.model_copy(update={"routing_correlation": correlation}), n, expert_parallel=n > 1)
        for n in (1, gpus)
    )
    experts, pairs = many.load(tokens)
    all_experts, all_pairs = one.load(tokens)
    assert all_pairs == 8 * tokens
    assert all_experts / gpus * (1 - 1e-12) <= experts <= min(all_experts, 128 / gpus) * (1 + 1e-12)
    assert all_pairs / gpus * (1 - 1e-12) <= pairs <= min(all_pairs, tokens * 128 / gpus)


def test_whole_experts_are_slower_than_parts_of_all() -> None:
    """With random routing, a step waits for the busiest GPU; parts of all experts are equally busy."""
    batch = decode(64)
    parts, whole = (
        build(RooflineSettings(preset="vllm-h100-kernels", expert_parallel=chosen), QWEN, H100, 4).seconds(batch)
        for chosen in (False, True)
    )
    assert whole > parts


def test_experts_have_to_be_there_and_to_divide() -> None:
    """Expert parallelism of a dense model, or of experts that cannot be divided over the GPUs, is refused."""
    settings = RooflineSettings(preset="vllm-h100-kernels", expert_parallel=True)
    with pytest.raises(InputError, match=r"llama-3\.1-8b has no experts; leave it out"):
        build(settings, load_model("llama-3.1-8b", HERE), H100, 2)
    with pytest.raises(InputError, match=r"the 8 experts .* over 16 GPUs; allowed: 1, 2, 4, 8$"):
        build(settings, load_model("mixtral-8x7b", HERE), H100, 16)
