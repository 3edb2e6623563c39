"""Measured rates of experts: what a GPU file can say, and that the package's are those of the fit."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from simqueue.hardware import GpuSettings, GroupedGemm, gpu_names, load_gpu
from studies import ROOT
from studies.fidelity.moe_layers import fit_layers, layer_cases

RATES: dict[str, Any] = {"bandwidth_bytes_per_s": 1e12, "flops_per_s": 1e14}
MEASURED = {"weights": "fp8", "bandwidth_share": 0.8, "mfu": 0.4, "overlap_exponent": 1.5, "layer_us": 20.0}


def test_rates_are_those_of_the_format() -> None:
    """A GPU has the rates of the formats that its file gives, and of no others."""
    gpu = load_gpu(GpuSettings.model_validate({**RATES, "grouped_gemms": [MEASURED]}))
    assert gpu.grouped_gemm("fp8") == GroupedGemm(0.8, 0.4, 1.5, 20.0)
    assert gpu.grouped_gemm("bf16") is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bandwidth_share": 1.2}, "less than or equal to 1"),
        ({"mfu": 0.0}, "greater than or equal to 0.001"),
        ({"overlap_exponent": 0.5}, "greater than or equal to 1"),
        ({"layer_us": -1.0}, "greater than or equal to 0"),
        ({"weights": "int8"}, "'fp32', 'bf16', 'fp8' or 'fp4'"),
    ],
)
def test_rates_that_cannot_be_are_rejected(change: dict[str, Any], said: str) -> None:
    """Shares are at most 1, exponents at least 1, times not negative."""
    with pytest.raises(ValidationError, match=said):
        GpuSettings.model_validate({**RATES, "grouped_gemms": [{**MEASURED, **change}]})


def test_a_format_is_given_once() -> None:
    """Two rates for the same format are a mistake."""
    with pytest.raises(ValidationError, match="is there twice"):
        GpuSettings.model_validate({**RATES, "grouped_gemms": [MEASURED, MEASURED]})


def test_the_rates_of_the_package_are_the_fitted_ones() -> None:
    """The files of the GPUs have what the fit to the measured layers gives, for these GPUs and formats alone."""
    fitted = {(one.gpu, one.weights): one.rates for one in fit_layers(layer_cases(ROOT / "data" / "groundtruth"))}
    packaged = {
        (name, weights): rates for name in gpu_names() for weights, rates in load_gpu(name, Path()).grouped_gemms
    }
    assert packaged.keys() == fitted.keys()
    for key, rates in packaged.items():
        found = (rates.bandwidth_share, rates.mfu, rates.overlap_exponent, rates.layer_us)
        again = fitted[key]
        expected = (again.bandwidth_share, again.mfu, again.overlap_exponent, again.layer_us)
        assert found == pytest.approx(expected, rel=0.01), key
