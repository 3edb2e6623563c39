"""Power of a GPU: its terms by hand, its limit, and what `simqueue explain` prints of it."""

import json

import pytest

from simqueue.cli import run_command
from simqueue.hardware import GpuSettings, gpu_names, load_gpu

VALUES = {"running_w": 300.0, "pj_per_byte": 20.0, "pj_per_flop": 2.0, "limit_w": 700.0}
EXPLAIN = ["explain", "--model", "llama-3.1-70b", "--tensor-parallel", "4", "--preset", "vllm-h100", "--decode", "16"]


def test_power_by_hand_and_at_its_limit() -> None:
    """Half a step's bandwidth and a tenth of its FLOP/s add 40 W and 20 W to 300 W; ten times both are cut at 700 W."""
    rates = {"bandwidth_bytes_per_s": 4e12, "flops_per_s": 1e15}
    power = load_gpu(GpuSettings.model_validate({**rates, "power": VALUES})).power
    assert power is not None
    assert power.watts(0.01, 0.01 * 2e12, 0.01 * 1e13) == pytest.approx(360.0, rel=1e-12)
    assert power.watts(0.01, 0.01 * 2e13, 0.01 * 1e14) == 700.0


def test_explain_tells_power_and_energy(capsys: pytest.CaptureFixture[str]) -> None:
    """The power is that of the bytes and FLOPs of all terms; the energy is that of all four GPUs."""
    assert run_command([*EXPLAIN, "--gpu", "h100-sxm", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    moved, flops = (sum(term[key] or 0.0 for term in told["terms"]) for key in ("bytes", "flops"))
    power = load_gpu("h100-sxm").power
    assert power is not None
    seconds = 1e-3 * told["step_ms"]
    expected = power.running_w + (power.j_per_byte * moved + power.j_per_flop * flops) / seconds
    assert told["power_w"] == pytest.approx(min(expected, 700), rel=1e-9)
    assert told["energy_j"] == pytest.approx(4 * seconds * told["power_w"], rel=1e-9)


def test_a_gpu_without_measured_power_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Undefined is null in JSON, and a line in the table."""
    gpu = next(name for name in gpu_names() if load_gpu(name).power is None and load_gpu(name).link_bytes_per_s)
    assert run_command([*EXPLAIN, "--gpu", gpu, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["power_w"] is None
    assert told["energy_j"] is None
    assert run_command([*EXPLAIN, "--gpu", gpu]) == 0
    assert f"power: not measured on {gpu}" in capsys.readouterr().out
