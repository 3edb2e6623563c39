"""Asynchronous scheduling: a run says what its step times can show of it, and what they cannot."""

from __future__ import annotations

from typing import Any

import pytest

import simqueue
from simqueue.steptime import load_preset

ASYNC, SYNC = ({"engine": "vllm", "version": "0.33.0", "async_scheduling": value} for value in (True, False))
OLD = {"engine": "vllm", "version": "0.11.0"}


def notes(step_time: dict[str, Any], policies: dict[str, Any], gpu: str = "h100-sxm") -> list[str]:
    """Return the lines about asynchronous scheduling of a run."""
    scenario = {
        "model": "llama-3.1-8b",
        "gpu": gpu,
        "step_time": step_time,
        "workload": {"requests": [{"id": "a", "arrival_s": 0, "prompt_tokens": 100, "output_tokens": 2}]},
        "max_model_len": 4096,
        "policies": policies,
    }
    return [line for line in simqueue.run(scenario).warnings if line.startswith("asynchronous scheduling")]


@pytest.mark.parametrize(
    "step_time",
    [
        {"kind": "constant", "seconds": 0.01},
        {"kind": "roofline", "preset": "ideal"},
        {"kind": "roofline", "preset": "vllm-h100-kernels"},
    ],
)
def test_without_a_cpu_part_only_the_cost_is_modelled(step_time: dict[str, Any]) -> None:
    """One line for all policies that it is about, and none about the others."""
    policies = {"new": ASYNC, "old": OLD, "new too": ASYNC, "sync": SYNC, "own": {"scheduler": "chunked"}}
    policies = {name.replace(" ", "-"): keys for name, keys in policies.items()}
    said = "this step time has no CPU part that it could hide; its cost is modelled, its gain is not"
    assert notes(step_time, policies) == [f"asynchronous scheduling: {said} (new, new-too)"]


def test_with_a_cpu_part_it_is_not_known_how_much_is_hidden() -> None:
    """The preset has CPU time per step, from servers whose mode is not known: nothing is subtracted."""
    step_ms = load_preset("vllm-h100").coefficients.step_ms
    (line,) = notes({"kind": "roofline", "preset": "vllm-h100"}, {"new": ASYNC, "sync": SYNC})
    assert f"how much of the {step_ms:.3g} ms of CPU time per step it hides" in line
    assert line.endswith("(new)")


def test_steps_measured_with_it_have_its_gain_so_the_others_are_too_fast() -> None:
    """The CPU time that vLLM 0.19 hides is not in the preset, so it is not hidden twice, and sync policies lack it."""
    preset = {"kind": "roofline", "preset": "vllm-rtx-4090"}
    (line,) = notes(preset, {"new": ASYNC, "sync": SYNC, "old": OLD}, gpu="rtx-4090")
    assert "was measured with it" in line
    assert line.endswith("(sync, old)")
    assert notes(preset, {"new": ASYNC}, gpu="rtx-4090") == []


def test_without_asynchronous_scheduling_nothing_is_said() -> None:
    """Older versions and policies without an engine have no such line."""
    assert notes({"kind": "constant", "seconds": 0.01}, {"old": OLD, "sync": SYNC}) == []
