"""What a run says about the error of its step times, and which preset it proposes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simqueue.experiment import run
from simqueue.hardware import load_gpu, load_model
from simqueue.scenario import from_mapping
from simqueue.steptime import load_preset
from simqueue.steptime.model_error import measured_errors
from simqueue.steptime.proposal import proposal


def preset(**card: Any) -> dict[str, Any]:
    """Return a preset of Llama 3.1 8B on one H100, with errors as they are on cards."""
    errors = [
        {"data": "served", "rows": 9, "mape_percent": 1.0, "median_percent": 0.5, "bias_percent": 0.1},
        {"data": "5-fold held out", "rows": 9, "mape_percent": 4.0, "median_percent": 3.0, "bias_percent": 0.1},
        {"data": "5-fold held out, TTFT", "rows": 9, "mape_percent": 9.0, "median_percent": 8.0, "bias_percent": 0.1},
    ]
    valid = {"tensor_parallel": [1, 2], "weights": ["bf16"], "parameters_b": [8, 9], "decode_seqs": [1, 8]}
    facts = [{"source": "by hand", "bandwidth_share": 0.8, "mfu": 0.6, "layer_us": 20.0}]
    return {"description": "x", "gpu": "h100-sxm", "errors": errors, "valid": valid, "facts": facts} | card


def row(folder: Path, card: dict[str, Any] | None, **keys: Any) -> dict[str, Any]:
    """Return the summary of a short run with this preset; None: the ideal roofline."""
    file = folder / "p.yaml"
    file.write_text(json.dumps(card))
    step_time = {"kind": "roofline", "preset": "ideal" if card is None else str(file)}
    scenario = {
        "name": "error",
        "model": "llama-3.1-8b",
        "gpu": "h100-sxm",
        "step_time": step_time,
        "workload": {"requests": [{"arrival_s": 0.0, "prompt_tokens": 20, "output_tokens": 5}] * 4},
        "policies": {"p": {"scheduler": "chunked"}},
    }
    return dict(run(scenario | keys).summary_rows[0])


def test_within_its_range_a_preset_has_its_held_out_error(tmp_path: Path) -> None:
    """The median of TPOT that was not fitted; without one, what the card has."""
    found = row(tmp_path, preset())
    assert (found["model_error_pct"], found["model_error_regime"]) == (3.0, "in range")
    assert row(tmp_path, preset(errors=preset()["errors"][:1]))["model_error_pct"] == 0.5
    assert row(tmp_path, preset(errors=[]))["model_error_pct"] is None


@pytest.mark.parametrize(
    ("card", "keys", "regime"),
    [
        ({}, {"gpu": "h200-sxm"}, "another GPU"),
        ({}, {"model": "qwen3-32b", "tensor_parallel": 2}, "another model"),
        ({"valid": {"models": ["llama-3.1-70b bf16"]}}, {}, "another model"),
        ({}, {"dtype": {"weights": "fp8"}}, "another weight format"),
        ({"valid": {"tensor_parallel": [1]}}, {"tensor_parallel": 2}, "another number of GPUs"),
        ({"valid": {"decode_seqs": [1, 2]}}, {}, "other batches"),
        ({"valid": {"experts": ["none"]}}, {"model": "qwen3-30b-a3b"}, "another kind of model"),
        ({"kernels": True}, {}, "kernels alone"),
        ({"engine": "SGLang 0.5"}, {"policies": {"p": {"engine": "vllm", "version": "0.19.0"}}}, "another engine"),
    ],
)
def test_outside_it_is_the_error_that_was_measured_there(
    tmp_path: Path, card: dict[str, Any], keys: dict[str, Any], regime: str
) -> None:
    """The regime and its error are those of the table of the package, but the error is not below that in the range."""
    found = row(tmp_path, preset(**card), **keys)
    assert (found["model_error_pct"], found["model_error_regime"]) == (max(3.0, measured_errors()[regime]), regime)
    bad = [error | {"median_percent": 60.0} for error in preset()["errors"]]
    assert row(tmp_path, preset(errors=bad, **card), **keys)["model_error_pct"] == 60.0


def test_values_of_ones_own_have_no_known_error(tmp_path: Path) -> None:
    """The error of a preset is not that of other values."""
    step_time = {"kind": "roofline", "preset": str(tmp_path / "p.yaml"), "mfu": 0.1}
    found = row(tmp_path, preset(), step_time=step_time)
    assert (found["model_error_pct"], found["model_error_regime"]) == (None, "values of your own")


def test_a_preset_without_held_out_rows_has_the_error_of_its_tokens(tmp_path: Path) -> None:
    """Not that of all rows, which has TTFT in it."""
    errors = [{"data": data, "rows": 9, "mape_percent": p, "bias_percent": 0.0} for data, p in FITTED_ONLY.items()]
    assert row(tmp_path, preset(errors=errors))["model_error_pct"] == FITTED_ONLY["served"]


FITTED_ONLY = {"all": 9.0, "served": 2.0, "served TTFT": 16.0}


def test_the_largest_error_counts(tmp_path: Path) -> None:
    """Of several differences the worst is told."""
    found = row(tmp_path, preset(kernels=True), dtype={"weights": "fp8"}, gpu="h200-sxm")
    worst = max(("kernels alone", "another weight format", "another GPU"), key=lambda one: measured_errors()[one])
    assert found["model_error_regime"] == worst


def test_what_was_not_fitted_has_no_error(tmp_path: Path) -> None:
    """Neither the ideal roofline nor constant steps have one."""
    assert row(tmp_path, None)["model_error_pct"] is None
    constant = row(tmp_path, None, step_time={"kind": "constant", "seconds": 0.01})
    assert (constant["model_error_pct"], constant["model_error_regime"]) == (None, None)


def test_the_nearest_server_is_proposed() -> None:
    """The one that differs in least; of equal ones, one that knows its server. None of another GPU, and no kernels."""
    h100, h200, a100 = (load_gpu(name) for name in ("h100-sxm", "h200-sxm", "a100-80gb"))
    bf16 = {name: load_model(name).with_precision(everything="bf16") for name in ("llama-3.1-8b", "qwen3-235b-a22b")}
    assert proposal(bf16["llama-3.1-8b"], h100, 1).endswith("preset: vllm-h100-llama-8b")
    assert proposal(load_model("qwen3-32b"), h100, 4).endswith("preset: vllm-h100-qwen3-32b")
    assert proposal(bf16["qwen3-235b-a22b"], h100, 8, expert_parallel=True).endswith("preset: vllm-h100-qwen3-235b")
    fp8 = load_model("qwen3-235b-a22b").with_precision(weights="fp8")
    assert proposal(fp8, h100, 8, expert_parallel=True).endswith("preset: trtllm-h100-qwen3-235b")
    assert proposal(load_model("deepseek-v3"), h200, 8, "sglang").endswith("preset: sglang-h200-deepseek")
    assert "no server was measured with models of this kind on a100-80gb" in proposal(bf16["llama-3.1-8b"], a100, 1)
    assert "no llamacpp was measured" in proposal(bf16["llama-3.1-8b"], h100, 1, "llamacpp")
    assert "-kernels" not in proposal(load_model("llama-3.1-70b"), h100, 4)


def test_only_runs_that_name_no_preset_are_told() -> None:
    """The ideal roofline as a choice is not doubted."""

    def warnings(**step_time: Any) -> tuple[str, ...]:
        scenario = {
            "model": "llama-3.1-8b",
            "gpu": "h100-sxm",
            "workload": {"requests": [{"arrival_s": 0.0, "prompt_tokens": 20, "output_tokens": 5}]},
            "policies": {"p": {"scheduler": "chunked"}},
        }
        given = {"step_time": {"kind": "roofline", **step_time}} if step_time else {}
        return from_mapping(scenario | given).resolve().policies[0].warnings

    assert [line.partition(":")[0] for line in warnings()] == ["step_time"]
    assert warnings(preset="ideal") == warnings(mfu=0.5) == warnings(preset="vllm-h100") == ()


def test_every_kernel_preset_says_so() -> None:
    """Kernels are known by their card, not by their name."""
    for gpu in ("h100", "h200", "a100", "rtx-4090", "rtx-pro-6000"):
        assert load_preset(f"vllm-{gpu}-kernels").card.kernels
        assert gpu in ("h200", "a100") or not load_preset(f"vllm-{gpu}").card.kernels
