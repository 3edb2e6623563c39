"""The time to compute the ends of steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cells import STEP_TIME
from simqueue.hardware import load_gpu, load_model
from simqueue.steptime import Batch, RooflineSettings, StepTime
from simqueue.steptime.build import build

from .common import Measure

DECODES = Batch(decode_seqs=128, decode_tokens=128, context_tokens=128 * 1000, sampled_rows=128)
MIXED = DECODES._replace(prefill=((512, 384),))


def roofline(preset: str) -> StepTime:
    """Return a roofline for an 8-billion-parameter model on one H100."""
    here = Path()
    return build(RooflineSettings(preset=preset), load_model("llama-3.1-8b", here), load_gpu("h100-sxm", here))


@pytest.fixture(params=["linear", "roofline", "calibrated"])
def model(request: pytest.FixtureRequest) -> StepTime:
    """Each kind of step time."""
    if request.param == "linear":
        return STEP_TIME
    return roofline("ideal" if request.param == "roofline" else "vllm-h100")


@pytest.mark.parametrize("n", [1, 100])
def test_ends_of_decodes(benchmark: Measure, model: StepTime, n: int) -> None:
    """The ends of consecutive steps in which 128 requests decode."""
    ends_s = benchmark(model.ends, 1000.0, DECODES, n)
    assert len(ends_s) == n


def test_end_of_a_mixed_step(benchmark: Measure, model: StepTime) -> None:
    """The end of a step with a chunk of a prompt and 128 decodes."""
    assert len(benchmark(model.ends, 1000.0, MIXED, 1)) == 1
