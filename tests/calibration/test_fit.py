"""Fits find what made the data, and say what the data does not decide."""

from pathlib import Path

import numpy as np
import pytest

from simqueue.calibration import StepCase, error_row, error_rows, fit, predict
from simqueue.calibration.card import Provenance, preset_text, rounded, valid_range
from simqueue.errors import InputError
from simqueue.hardware import load_gpu, load_model
from simqueue.steptime import Batch, Coefficients, load_preset
from simqueue.steptime.calibrated import CalibratedStepTime

HERE = Path()
GPU = load_gpu("h100-sxm", HERE)
MODELS = [load_model(name, HERE) for name in ("llama-3.1-8b", "qwen3-32b", "qwen3-30b-a3b")]
MODELS.append(MODELS[1].with_precision(weights="fp8"))
TRUTH = Coefficients(
    bandwidth_share=0.83,
    mfu=0.71,
    fp8_mfu=0.61,
    overlap_exponent=2.5,
    kv_bandwidth_share=0.88,
    mixed_kv_bandwidth_share=0.47,
    reread_gb=900.0,
    attention_mfu=0.58,
    walk_ns=21.0,
    expert_bandwidth_share=0.78,
    expert_mfu=0.45,
    expert_overlap_exponent=1.6,
    expert_layer_us=33.0,
    routing_correlation=0.04,
    layer_us=26.0,
    prefill_layer_us=14.0,
    seq_us=6.0,
    link_share=0.66,
    allreduce_us=5.5,
    step_ms=0.9,
)
FREE = [name for name in Coefficients.model_fields if name not in {"host_ms", "host_seq_us"}]


def batches() -> list[Batch]:
    """Return decodes, prompts and mixtures of many sizes."""
    decodes = [Batch(n, n, n * c, (), n) for n in (1, 8, 64, 256) for c in (128, 1024, 8192)]
    prompts = [
        Batch(prefill=((past, new),) * k, sampled_rows=k)
        for past in (0, 8192)
        for new in (16, 512, 4096)
        for k in (1, 4)
    ]
    mixed = [
        Batch(n, n, n * c, ((p, m),), n + 1)
        for n in (4, 32, 128)
        for c in (512, 4096)
        for p in (0, 16_384)
        for m in (32, 1024)
    ]
    return decodes + prompts + mixed


def cases(truth: Coefficients = TRUTH, noise: float = 0.0) -> list[StepCase]:
    """Return the measurements of a server with these values, with relative noise."""
    generator = np.random.default_rng(5)
    made = []
    for model in MODELS:
        for tensor_parallel in (1, 2, 4):
            prices = CalibratedStepTime.of(model, GPU, tensor_parallel, truth)
            for i, batch in enumerate(batches()):
                measured_s = prices.seconds(batch) * (1 + noise * generator.standard_normal())
                made.append(StepCase(f"row {i}", model, GPU, tensor_parallel, batch, measured_s))
    return made


def test_clean_data_gives_its_values_back() -> None:
    """A fit to noiseless steps of four models on one to four GPUs recovers all twenty values."""
    found = fit(cases(), FREE)
    for name in FREE:
        assert getattr(found.coefficients, name) == pytest.approx(getattr(TRUTH, name), rel=0.02), name
    assert not found.not_identified


def test_noisy_data_gives_values_within_their_standard_errors() -> None:
    """With 2 % noise each value is within four of its standard errors of the truth."""
    found = fit(cases(noise=0.02), FREE)
    for name in FREE:
        error = abs(getattr(found.coefficients, name) - getattr(TRUTH, name))
        assert error < 4 * found.standard_errors[name], name


def test_what_no_row_depends_on_is_named() -> None:
    """Decodes on one GPU do not determine links and prompts: those values are listed as not identified."""
    rows = [case for case in cases() if case.phase == "decode" and case.tensor_parallel == 1]
    found = fit(rows, ["kv_bandwidth_share", "layer_us", "link_share", "walk_ns"])
    assert dict(found.not_identified) == {
        "link_share": "no row depends on it",
        "walk_ns": "no row depends on it",
    }


def test_a_value_at_its_bound_is_named() -> None:
    """With launch times that are too long, KV would have to be read faster than the peak: the value is at its bound."""
    truth = TRUTH.model_copy(update={"kv_bandwidth_share": 1.0})
    rows = [case for case in cases(truth) if case.phase == "decode"]
    fixed = {
        "bandwidth_share": 0.83,
        "layer_us": 80.0,
        "seq_us": 6.0,
        "link_share": 0.66,
        "allreduce_us": 5.5,
        "mfu": 0.71,
        "overlap_exponent": 2.5,
    }
    found = fit(rows, ["kv_bandwidth_share"], fixed)
    assert found.not_identified == {"kv_bandwidth_share": "at its upper bound, 1"}


def test_two_values_that_only_occur_together_are_not_identified() -> None:
    """With one model, time per layer and time per step cannot be separated, and both are listed."""
    rows = [case for case in cases(noise=0.01) if case.model is MODELS[0] and case.tensor_parallel == 1]
    fixed = {name: value for name, value in TRUTH if name not in {"layer_us", "step_ms"}}
    found = fit(rows, ["layer_us", "step_ms"], fixed)
    together_ms = 32 * found.coefficients.layer_us / 1e3 + found.coefficients.step_ms
    assert together_ms == pytest.approx(32 * 26e-3 + 0.9, rel=0.05)
    assert set(found.not_identified) == {"layer_us", "step_ms"}
    assert found.not_identified["layer_us"].endswith("hard to separate from step_ms")
    assert found.not_identified["step_ms"].endswith("hard to separate from layer_us")


def test_too_few_rows_and_unknown_values_are_rejected() -> None:
    """Fewer rows than values, or a value that does not exist, is an input error."""
    with pytest.raises(InputError, match="3 rows cannot determine 4 values"):
        fit(cases()[:3], ["mfu", "layer_us", "seq_us", "step_ms"])
    with pytest.raises(InputError, match="unknown coefficient 'speed'; known: bandwidth_share, "):
        fit(cases(), ["speed"])


def test_a_preset_written_is_the_preset_read(tmp_path: Path) -> None:
    """A fit written as YAML is read back with its rounded values, errors, range and sources."""
    rows = cases(noise=0.02)
    found = fit(rows, FREE)
    errors = error_rows(rows, predict(rows, rounded(found)), lambda case: case.phase)
    origin = Provenance("It's a test", "h100-sxm", "none", "made up", given={"host_ms": (0.0, "assumed")})
    (tmp_path / "own.yaml").write_text(preset_text(found, origin, errors, valid_range(rows)))
    preset = load_preset("own.yaml", tmp_path)
    assert preset.coefficients == rounded(found)
    assert (preset.card.description, preset.card.gpu) == ("It's a test", "h100-sxm")
    assert [error.data for error in preset.card.errors] == ["decode", "prefill", "mixed"]
    assert preset.card.valid.tensor_parallel == [1, 2, 4]
    assert preset.card.valid.decode_seqs == [1.0, 256.0]
    low, high = preset.card.valid.parameters_b or (0.0, 0.0)
    assert low <= 8.03
    assert high >= 32.76


def test_errors_are_told_by_group() -> None:
    """Mean, median, signed and worst errors of a group are those of its relative errors in percent."""
    row = error_row("x", np.array([-10.0, 2.0, 5.0, 1.0]))
    assert (row.rows, row.mape, row.median, row.bias, row.worst) == (4, 4.5, 3.5, -0.5, 10.0)
    rows = cases()
    slow = error_rows(rows, 1.1 * np.array([case.measured_s for case in rows]), lambda case: case.phase)
    assert [one.group for one in slow] == ["decode", "prefill", "mixed"]
    assert all(one.mape == pytest.approx(10) for one in slow)
