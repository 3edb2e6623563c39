"""Layers of experts: the routing that was measured, the rows that are used, and limits on the errors."""

import csv
import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies import ROOT
from studies.fidelity.moe_routing import balanced, measured_load, power_law
from studies.fidelity.report import Findings

from ..helpers.profiles import examples

SHAPES = st.sampled_from([(8, 128), (8, 256), (4, 128), (2, 8)])


@examples(30)
@given(shape=SHAPES, tokens=st.integers(1, 3000), seed=st.integers(0, 100))
def test_every_token_has_its_experts(shape: tuple[int, int], tokens: int, seed: int) -> None:
    """Both routings give each token its number of different experts."""
    active, experts = shape
    drawn = power_law(tokens, active, experts, np.random.default_rng(seed))
    for counts in (drawn, balanced(tokens, active, experts)):
        assert counts.sum() == tokens * active
        assert 0 <= counts.min() <= counts.max() <= tokens


def test_balanced_tokens_go_round() -> None:
    """With as many tokens as it takes, all experts have equally many; with fewer, each reaches experts of its own."""
    assert set(balanced(16, 8, 128)) == {1}
    assert set(balanced(2048, 8, 256)) == {64}
    assert measured_load("balanced", 4, 8, 256, 1).experts == 32
    assert measured_load("balanced", 4, 8, 256, 8).experts == 4


def test_a_power_law_reaches_fewer_experts_and_loads_one_gpu_more() -> None:
    """Drawn loads leave experts without tokens, and give the measured GPU of eight more than an eighth."""
    even, drawn = (measured_load(routing, 64, 8, 256, 8) for routing in ("balanced", "power_law_1.2"))
    assert even.experts == 32
    assert even.pairs == 64
    assert drawn.experts < 32
    assert drawn.pairs > 64


def test_every_layer_is_used_or_left_out_with_a_reason(found: Findings) -> None:
    """Each row of the table is fitted or left out."""
    with gzip.open(ROOT / "data" / "groundtruth" / "moe_layers.csv.gz", "rt", newline="") as lines:
        total = sum(1 for _ in csv.DictReader(lines))
    left_out = sum(group.rows for group in found.left_out if group.table == "moe_layers.csv.gz")
    assert sum(len(one.cases) for one in found.layers) + left_out == total


def test_experts_in_fp4_were_not_divided_over_gpus() -> None:
    """The rows that are left out for it are as slow with expert parallelism as without, within 7 %."""
    times: dict[tuple[str, ...], dict[str, float]] = {}
    with gzip.open(ROOT / "data" / "groundtruth" / "moe_layers.csv.gz", "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["weights"] == "w4a16_mxfp4" and row["moe_tensor_parallel"] == "1":
                times.setdefault((row["routing"], row["tokens"]), {})[row["moe_expert_parallel"]] = float(
                    row["layer_us"]
                )
    for found in times.values():
        assert found["8"] == pytest.approx(found["1"], rel=0.07)


@pytest.mark.parametrize(
    ("gpu", "weights", "limit"),
    [("h100-sxm", "bf16", 8), ("h100-sxm", "fp8", 8), ("h200-sxm", "bf16", 8), ("h200-sxm", "fp4", 8)],
)
def test_layers(found: Findings, gpu: str, weights: str, limit: float) -> None:
    """The mean error over geometries, parallelism and routing is at most 8 %."""
    (one,) = [one for one in found.layers if (one.gpu, one.weights) == (gpu, weights)]
    assert np.abs(one.errors).mean() <= limit
