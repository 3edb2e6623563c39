"""Presets: what a file must say, where it may lie, and what a run outside its range is told."""

import re
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from simqueue.errors import InputError
from simqueue.hardware import load_gpu, load_model
from simqueue.steptime import (
    Batch,
    RooflineSettings,
    load_preset,
    preset_names,
)
from simqueue.steptime.build import build
from simqueue.steptime.calibrated import CalibratedStepTime
from simqueue.steptime.preset import preset_rows
from simqueue.steptime.roofline import RooflineStepTime
from simqueue.steptime.validity import as_columns

HERE = Path()
TEXT = """\
description: test
gpu: h100-sxm
valid:
  tensor_parallel: [1, 2]
  weights: [bf16]
  parameters_b: [7, 9]
  decode_seqs: [1, 64]
  context_tokens: [1, 4096]
  prefill_tokens: [16, 2048]
facts:
  - source: a test
    bandwidth_share: 0.8
    mfu: 0.7
    layer_us: 10
"""


def fitted(
    folder: Path, model: str = "llama-3.1-8b", gpu: str = "h100-sxm", tensor_parallel: int = 1
) -> CalibratedStepTime:
    """Return the step time of the test's preset file."""
    (folder / "own.yaml").write_text(TEXT)
    settings = RooflineSettings(preset="own.yaml")
    built = build(settings, load_model(model, HERE), load_gpu(gpu, HERE), tensor_parallel, folder)
    assert isinstance(built, CalibratedStepTime)
    return built


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_states_where_it_comes_from(name: str) -> None:
    """Each fitted preset states its GPU, engine, data, errors and range; the ideal preset is a bound and needs none."""
    preset = load_preset(name)
    if name == "ideal":
        assert preset.ideal
        return
    card = preset.card
    assert all((card.gpu, card.engine, card.fitted_on, card.errors, card.valid.tensor_parallel))
    assert all(error.rows > 0 for error in card.errors)
    assert any("held out" in error.data for error in card.errors)
    load_gpu(card.gpu or "", HERE)


def test_the_table_of_presets_shows_errors() -> None:
    """The table has one row per preset with its errors and its GPU."""
    rows = {row["name"]: row for row in preset_rows()}
    assert list(rows) == preset_names()
    assert "held out" in rows["vllm-h100"]["mean_abs_error"]
    assert rows["ideal"]["mean_abs_error"] is None


def test_a_file_is_found_from_a_folder(tmp_path: Path) -> None:
    """A relative path of a preset starts at the given folder; a missing file is named."""
    assert fitted(tmp_path).rates.fixed_s == pytest.approx(32 * 10e-6)
    assert RooflineSettings(preset="own.yaml").resolved(tmp_path).bandwidth_share == 0.8
    with pytest.raises(InputError, match=r"nowhere.yaml: cannot be read"):
        load_preset("nowhere.yaml", tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("mfu: 0.7", "mfuu: 0.7", "did you mean 'mfu'"),
        ("mfu: 0.7", "mfu: 1.7", "mfu: Input should be less than or equal to 1"),
        ("  - source: a test\n    bandwidth_share", "  - bandwidth_share", "must occur once, in a group with a source"),
        ("decode_seqs: [1, 64]", "decode_seqs: [1]", "valid.decode_seqs"),
        ("gpu: h100-sxm", "gp: h100-sxm", "did you mean 'gpu'"),
    ],
)
def test_files_that_break_the_rules_are_rejected(tmp_path: Path, old: str, new: str, said: str) -> None:
    """A misspelt or impossible value, a fact without source or a broken range is rejected in one line."""
    assert old in TEXT
    (tmp_path / "own.yaml").write_text(TEXT.replace(old, new))
    with pytest.raises(InputError, match=said) as caught:
        load_preset("own.yaml", tmp_path)
    assert "\n" not in str(caught.value)


def test_names_are_checked_and_ideal_stays_ideal() -> None:
    """An unknown name is rejected with the nearest name; the ideal preset gives the ideal roofline."""
    with pytest.raises(ValidationError, match="did you mean 'vllm-h100'"):
        RooflineSettings(preset="vllm-h10")
    model, gpu = load_model("llama-3.1-8b", HERE), load_gpu("h100-sxm", HERE)
    assert build(RooflineSettings(), model, gpu, 1) == RooflineStepTime.of(model, gpu, bandwidth_share=1.0, mfu=0.7)


def test_a_run_inside_the_range_is_told_nothing(tmp_path: Path) -> None:
    """Steps at the bounds of the range, on the measured GPU and for the measured model, give no warning."""
    prices = fitted(tmp_path)
    assert prices.warnings(as_columns(Batch(64, 64, 64 * 4096, (), 64))) == []
    assert prices.warnings(as_columns(Batch(1, 1, 1, ((0, 2048),), 2))) == []
    assert prices.warnings(as_columns(Batch(prefill=((0, 16),)))) == []


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (Batch(65, 65, 65, (), 65), "1 to 64 decodes per step; 100 % of the steps are outside, with 65 to 65"),
        (Batch(2, 2, 10_000, (), 2), "1 to 4,096 tokens of context per decode; 100 % .* with 5,000 to 5,000"),
        (Batch(prefill=((0, 8),)), "16 to 2,048 prompt tokens per step; 100 % .* with 8 to 8"),
    ],
)
def test_leaving_the_range_is_told_with_the_range(tmp_path: Path, batch: Batch, said: str) -> None:
    """A step outside the range gives one warning with the preset, the range, the share of steps and the values."""
    (warning,) = fitted(tmp_path).warnings(as_columns(batch))
    assert warning.startswith("step_time: preset own.yaml was fitted for ")
    assert re.search(said, warning)


def test_repeated_steps_count_at_their_last_context(tmp_path: Path) -> None:
    """A row of many consecutive steps is outside the range if its last step is, and counts with its number of steps."""
    steps = {
        "decode_seqs": np.array([2, 2]),
        "context_tokens": np.array([8190, 100]),
        "prefill_tokens": np.array([0, 0]),
        "repeat": np.array([3, 297]),
    }
    (warning,) = fitted(tmp_path).warnings(steps)
    assert "1 % of the steps are outside, with 4,097 to 4,097" in warning


def test_other_hardware_is_told(tmp_path: Path) -> None:
    """Another GPU, another number of GPUs, another format and another size of model each give a warning."""
    prices = fitted(tmp_path, "gpt-oss-120b", "h200-sxm", 4)
    told = prices.warnings(as_columns(Batch(1, 1, 1, (), 1)))
    assert [line.removeprefix("step_time: preset own.yaml was fitted ") for line in told] == [
        "on h100-sxm; here the GPU is h200-sxm",
        "for tensor_parallel 1, 2; here it is 4",
        "for weights in bf16; gpt-oss-120b has fp4",
        "for models of 7 to 9 B parameters; gpt-oss-120b has 5.71 B",
    ]


def test_a_preset_knows_how_experts_were_on_its_gpus() -> None:
    """A dense preset with a mixture of experts, or divided experts where whole ones were measured, is told."""
    model, gpu = load_model("qwen3-235b-a22b", HERE).with_precision(weights="fp8"), load_gpu("h100-sxm", HERE)
    split, whole = "a share of each expert on every GPU", "whole experts on each GPU"
    expected = {
        ("vllm-h100", False): f"was fitted for a dense model; here it is a mixture of experts with {split}",
        ("vllm-h100", True): f"was fitted for a dense model; here it is a mixture of experts with {whole}",
        ("trtllm-h100-qwen3-235b", False): (
            f"was fitted for a mixture of experts with {whole}; here it is a mixture of experts with {split}"
        ),
        ("trtllm-h100-qwen3-235b", True): None,
    }
    for (name, expert_parallel), said in expected.items():
        settings = RooflineSettings(preset=name, expert_parallel=expert_parallel)
        built = build(settings, model, gpu, 4)
        assert isinstance(built, CalibratedStepTime)
        assert [note.text for note in built.notes if "experts" in note.text] == ([] if said is None else [said])
