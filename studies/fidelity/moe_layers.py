"""Measured layers of experts: fits their rates for each GPU and format, and compares them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from simqueue.calibration.fit import BOUNDS, NOISE, START
from simqueue.datafiles.csvtable import Row, read_table
from simqueue.hardware import Gpu, GroupedGemm, load_gpu
from simqueue.hardware.precision import BYTES, WeightFormat
from simqueue.steptime.experts import ACTIVATION_BYTES
from studies.fidelity.moe_routing import measured_load

LAYERS_FILE: Final = "moe_layers.csv.gz"
GPUS: Final = {
    "A100-80GB-SXM": "a100-80gb",
    "H100-80GB-SXM": "h100-sxm",
    "H200-141GB-SXM": "h200-sxm",
    "RTX PRO 6000 Server": "rtx-pro-6000",
}
FORMATS: Final[Mapping[str, WeightFormat]] = {"bfloat16": "bf16", "fp8_block": "fp8", "w4a16_mxfp4": "fp4"}
RATES: Final = ("expert_bandwidth_share", "expert_mfu", "expert_overlap_exponent", "expert_layer_us")
"""The fitted values, in the order of `GroupedGemm`."""

NOT_PARALLEL: Final = (
    "fp4 with expert parallelism: as slow on 2, 4 and 8 GPUs as on one, so each GPU computed all experts"
)
UNKNOWN_LOAD: Final = (
    "expert parallelism, power law, at most one (token, expert) pair for each expert: which experts the measured GPU "
    "had is not known"
)

Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LayerCase:
    """A measured layer of experts on one GPU.

    Attributes
    ----------
    gpu : Gpu
    weights : {"bf16", "fp8", "fp4"}
    geometry, routing : str
    tensor_parallel, expert_parallel, tokens : int
    moved_bytes, flops : float
        Weights of the experts that tokens are routed to, and the activations of all (token, expert) pairs, which every
        GPU has; FLOPs.
    measured_s : float
    """

    gpu: Gpu
    weights: WeightFormat
    geometry: str
    routing: str
    tensor_parallel: int
    expert_parallel: int
    tokens: int
    moved_bytes: float
    flops: float
    measured_s: float


@dataclass(frozen=True, slots=True)
class FittedLayers:
    """The rates of one GPU and format.

    Attributes
    ----------
    gpu : str
    weights : {"bf16", "fp8", "fp4"}
    cases : sequence of LayerCase
    rates : GroupedGemm
    errors, left_out_errors : arrays
        In percent of the measured times, of `rates`, and of a fit without any row of the same geometry (with one
        geometry: empty).
    """

    gpu: str
    weights: WeightFormat
    cases: Sequence[LayerCase]
    rates: GroupedGemm
    errors: Seconds
    left_out_errors: Seconds


def layer_cases(folder: Path) -> list[LayerCase]:
    """Return the measured layers, without those of `reason_not_a_layer`."""
    gpus = {name: load_gpu(name, Path()) for name in GPUS.values()}
    rows = read_table(folder / LAYERS_FILE, LAYERS_FILE).rows()
    return [_case(row, gpus[GPUS[row["gpu"]]]) for row in rows if reason_not_a_layer(row) is None]


def reason_not_a_layer(row: Row) -> str | None:
    """Return why a row is not used; None if it is."""
    if row.integer("moe_expert_parallel") == 1:
        return None
    if row["weights"] == "w4a16_mxfp4":
        return NOT_PARALLEL
    few = row.integer("tokens") * row.integer("experts_per_token") <= row.integer("experts")
    return UNKNOWN_LOAD if few and row["routing"] != "balanced" else None


def fit_layers(cases: Sequence[LayerCase]) -> list[FittedLayers]:
    """Fit the rates of each GPU and format, in order of first appearance."""
    return [_fitted(group) for group in _groups(cases)]


def predicted_s(cases: Sequence[LayerCase], rates: GroupedGemm) -> Seconds:
    """Return the predicted duration of each layer on one GPU model, in seconds."""
    gpu, weights = cases[0].gpu, cases[0].weights
    peak = gpu.flops_per_s if weights == "fp4" else gpu.flops_for(weights)
    read_s = np.array([case.moved_bytes for case in cases]) / (gpu.bandwidth_bytes_per_s * rates.bandwidth_share)
    compute_s = np.array([case.flops for case in cases]) / (peak * rates.mfu)
    exponent = rates.overlap_exponent
    total: Seconds = (read_s**exponent + compute_s**exponent) ** (1 / exponent) + 1e-6 * rates.layer_us
    return total


def percent_of(cases: Sequence[LayerCase], rates: GroupedGemm) -> Seconds:
    """Return the errors of the predicted durations, in percent of the measured ones."""
    percent: Seconds = 100 * (predicted_s(cases, rates) / np.array([case.measured_s for case in cases]) - 1)
    return percent


def _groups(cases: Sequence[LayerCase]) -> Iterator[list[LayerCase]]:
    for key in dict.fromkeys((case.gpu.name, case.weights) for case in cases):
        yield [case for case in cases if (case.gpu.name, case.weights) == key]


def _fitted(cases: Sequence[LayerCase]) -> FittedLayers:
    rates = _rates(cases)
    geometries = list(dict.fromkeys(case.geometry for case in cases))
    left_out = np.full(len(cases) if len(geometries) > 1 else 0, np.nan)
    for geometry in geometries if len(geometries) > 1 else ():
        inside = np.array([case.geometry == geometry for case in cases])
        others = _rates([case for case in cases if case.geometry != geometry])
        left_out[inside] = percent_of([case for case in cases if case.geometry == geometry], others)
    return FittedLayers(cases[0].gpu.name, cases[0].weights, cases, rates, percent_of(cases, rates), left_out)


def _rates(cases: Sequence[LayerCase]) -> GroupedGemm:
    """Return the rates with the least soft-L1 loss of relative errors, as presets are fitted; rounded."""
    low, high = (np.array([BOUNDS[name][end] for name in RATES]) for end in (0, 1))
    start = np.array([START[name] for name in RATES])
    found = least_squares(
        lambda values: percent_of(cases, GroupedGemm(*values)) / 100,
        start,
        bounds=(low, high),
        loss="soft_l1",
        f_scale=NOISE,
        x_scale=start,
    )
    return GroupedGemm(*(float(f"{value:.3g}") for value in np.where(found.x > low, found.x, low)))


def _case(row: Row, gpu: Gpu) -> LayerCase:
    hidden, inner = row.integer("hidden_size"), row.integer("expert_inner_size")
    parts, ranks, tokens = (row.integer(key) for key in ("moe_tensor_parallel", "moe_expert_parallel", "tokens"))
    load = measured_load(row["routing"], tokens, row.integer("experts_per_token"), row.integer("experts"), ranks)
    weights, parameters = FORMATS[row["weights"]], 3 * hidden * inner / parts
    activations = ACTIVATION_BYTES * (3 * hidden + 6 * inner / parts) * tokens * row.integer("experts_per_token")
    return LayerCase(
        gpu=gpu,
        weights=weights,
        geometry=row["geometry_of"],
        routing=row["routing"],
        tensor_parallel=parts,
        expert_parallel=ranks,
        tokens=tokens,
        moved_bytes=load.experts * parameters * BYTES[weights] + activations,
        flops=2 * parameters * load.pairs,
        measured_s=1e-6 * row.number("layer_us", above=0),
    )
