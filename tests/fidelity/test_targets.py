"""Limits on the errors of the package's presets against the measurements."""

from collections.abc import Sequence

import numpy as np
import pytest

from studies.fidelity.evaluate import (
    SERVED_PRESETS,
    STEP_PRESETS,
    Compared,
    ComparedServed,
    phase_of,
)
from studies.fidelity.replay import Replay
from studies.fidelity.report import Findings


@pytest.fixture
def steps(found: Findings) -> dict[tuple[str, str], Compared]:
    """Comparisons of single steps, by source and GPU."""
    return {(one.source, one.gpu): one for one in found.steps}


@pytest.fixture
def served(found: Findings) -> Sequence[ComparedServed]:
    """Comparisons of the means of served runs."""
    return found.served


@pytest.fixture
def replays(found: Findings) -> dict[str, Replay]:
    """Both replays."""
    return {one.run.gpu: one for one in found.replays}


@pytest.mark.parametrize(("gpu", "limit"), [("h100-sxm", 3), ("h200-sxm", 4), ("a100-80gb", 4)])
def test_kernels_of_decode_and_prefill(steps: dict[tuple[str, str], Compared], gpu: str, limit: float) -> None:
    """The mean error over decode and prefill on one to eight GPUs is at most 3 % (H100) or 4 % (H200, A100)."""
    one = steps["aiconfigurator", gpu]
    assert {case.tensor_parallel for case in one.cases} == {1, 2, 4, 8}
    assert np.abs(one.calibrated).mean() <= limit
    assert np.abs(one.ideal).mean() > 25


@pytest.mark.parametrize("gpu", ["rtx-4090", "rtx-pro-6000"])
def test_mixed_steps(steps: dict[tuple[str, str], Compared], gpu: str) -> None:
    """The mean error is at most 6 %, both of mixed steps alone and of all steps."""
    one = steps["llmservingsim", gpu]
    mixed = np.array([phase_of(case) == "mixed" for case in one.cases])
    assert mixed.sum() > 200
    assert np.abs(one.calibrated[mixed]).mean() <= 6
    assert np.abs(one.calibrated).mean() <= 6


@pytest.mark.parametrize("gpu", ["h100-sxm", "a100-80gb"])
def test_host_bound_decodes(steps: dict[tuple[str, str], Compared], gpu: str) -> None:
    """The mean error of decode steps that wait for the CPU is at most 4 %."""
    one = steps["splitwise", gpu]
    decode = np.array([phase_of(case) == "decode" for case in one.cases])
    assert decode.sum() > 30
    assert np.abs(one.calibrated[decode]).mean() <= 4


@pytest.mark.parametrize("place", range(len(SERVED_PRESETS)))
def test_served_time_per_token(served: Sequence[ComparedServed], place: int) -> None:
    """The median error of mean TPOT in closed loops is at most 8 %; the ideal roofline's is above 40 %."""
    one = served[place]
    assert len(one.rows) > 30
    assert np.median(np.abs(one.tpot.calibrated)) <= 8
    assert np.median(np.abs(one.tpot.ideal)) > 40


@pytest.mark.parametrize(("gpu", "ttft_limit"), [("rtx-pro-6000", 12), ("rtx-4090", 10)])
def test_replays(replays: dict[str, Replay], gpu: str, ttft_limit: float) -> None:
    """The error of mean TPOT and E2EL is at most 6 %, that of mean TTFT 12 % (RTX PRO 6000) or 10 % (RTX 4090)."""
    one = replays[gpu]
    off = {name: 100 * abs(one.simulated[name].mean() / one.measured[name].mean() - 1) for name in one.measured}
    assert off["tpot_ms"] <= 6
    assert off["e2el_ms"] <= 6
    assert off["ttft_ms"] <= ttft_limit


def test_preemptions_are_near_the_measured_number(replays: dict[str, Replay]) -> None:
    """On the RTX 4090 preemptions are one to three times the least measured number; the RTX PRO 6000 has none."""
    one = replays["rtx-4090"]
    assert one.measured_preemptions <= one.simulated_preemptions <= 3 * one.measured_preemptions
    assert replays["rtx-pro-6000"].simulated_preemptions == 0


def test_replays_follow_the_measured_series(replays: dict[str, Replay]) -> None:
    """The numbers of running and waiting requests differ by a tenth of the measured peak or less, on average."""
    for one in replays.values():
        t_s = one.measured_series["t_s"]
        place = np.searchsorted(one.simulated_series["t_s"], t_s, "right") - 1
        for name in ("running", "waiting"):
            measured = one.measured_series[name]
            distance = np.abs(one.simulated_series[name][place] - measured).mean()
            assert distance <= 0.1 * measured.max()


def test_every_step_preset_is_compared() -> None:
    """Each source and GPU is listed once, each with a different preset."""
    assert len({(source, gpu) for source, gpu, _ in STEP_PRESETS}) == len(STEP_PRESETS)
    assert len({preset for _, _, preset in STEP_PRESETS}) == len(STEP_PRESETS)
