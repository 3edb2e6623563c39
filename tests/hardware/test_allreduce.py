"""All-reduces: measured durations by size, and what is taken where none were measured."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from simqueue.hardware import AllReduce, GpuSettings, gpu_names, load_gpu
from simqueue.steptime.calibrated import UNMEASURED_SHARE, UNMEASURED_US
from studies import ROOT

MEASURED = {"gpus": 4, "sizes_bytes": [1024, 4096, 8192], "times_us": [5.0, 9.0, 7.0]}
RATES: dict[str, Any] = {"bandwidth_bytes_per_s": 1e12, "flops_per_s": 1e14}


def test_linear_between_sizes_and_beyond_the_largest() -> None:
    """A message below the smallest size takes as long as that; beyond the largest one, the last slope continues."""
    measured = AllReduce((1000.0, 2000.0, 4000.0), (1.0, 2.0, 6.0))
    found = [measured.seconds(size) for size in (0, 1000, 1500, 2000, 3000, 4000, 5000)]
    assert found == [1.0, 1.0, 1.5, 2.0, 4.0, 6.0, 8.0]


def test_a_link_has_a_latency_and_a_rate() -> None:
    """Without measurements, an all-reduce is a straight line."""
    link = AllReduce.of_link(5e-6, 1 / 2e11)
    assert link.seconds(0) == 5e-6
    assert link.seconds(4_000_000) == pytest.approx(25e-6, rel=1e-9)


def test_a_disturbed_measurement_counts_at_most_as_a_larger_message() -> None:
    """A message of 4 KiB that took longer than one of 8 KiB was disturbed; it is taken to be as long as that one."""
    gpu = load_gpu(GpuSettings.model_validate({**RATES, "allreduces": [MEASURED]}))
    measured = gpu.allreduce(4)
    assert measured is not None
    assert measured.times_s == pytest.approx([5e-6, 7e-6, 7e-6], rel=1e-12)
    assert gpu.allreduce(2) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"times_us": [5.0, 9.0]}, "has 3 values, times_us has 2"),
        ({"sizes_bytes": [1024, 1024, 8192]}, "each larger than the one before"),
        ({"sizes_bytes": [-1, 1024, 8192]}, "must be >= 0"),
        ({"times_us": [0.0, 1.0, 2.0]}, "must be > 0"),
        ({"gpus": 1}, "greater than or equal to 2"),
    ],
)
def test_tables_that_cannot_be_are_rejected(change: dict[str, Any], said: str) -> None:
    """Each size needs a duration, sizes ascend, and durations are above 0."""
    with pytest.raises(ValidationError, match=said):
        GpuSettings.model_validate({**RATES, "allreduces": [{**MEASURED, **change}]})


def test_a_number_of_gpus_is_given_once() -> None:
    """Two tables for the same number of GPUs are a mistake."""
    with pytest.raises(ValidationError, match="is there twice"):
        GpuSettings.model_validate({**RATES, "allreduces": [MEASURED, MEASURED]})


PACKAGED = {
    "a100-80gb": ("A100-80GB-SXM", {2: "0.14.0", 4: "0.14.0", 8: "0.14.0"}),
    "h100-sxm": ("H100-80GB-SXM", {2: "0.19.0", 4: "0.19.0", 8: "0.19.0"}),
    "h200-sxm": ("H200-141GB-SXM", {2: "0.19.0", 4: "0.19.0", 8: "0.19.0"}),
    "l40s": ("L40S", {2: "0.22.0", 4: "0.22.0", 8: "0.22.0"}),
    "rtx-pro-6000": ("RTX PRO 6000 Server", {2: "0.19.0", 4: "0.24.0", 8: "0.24.0"}),
}
"""GPU -> its name in the data, and by number of GPUs the version of vLLM whose all-reduce was measured."""


def test_what_stands_for_unmeasured_links_is_the_line_through_the_h100() -> None:
    """Latency and share of the link are those of the line with the least squared relative errors, over 2 to 8 GPUs."""
    h100 = load_gpu("h100-sxm", Path())
    rows = np.array(
        [
            (1 / time_s, 2 * (gpus - 1) / gpus * size / time_s)
            for gpus, measured in h100.allreduces
            for size, time_s in zip(measured.sizes_bytes, measured.times_s, strict=True)
        ]
    )
    (latency_s, s_per_byte), *_ = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)
    assert pytest.approx(1e6 * latency_s, abs=0.05) == UNMEASURED_US
    assert pytest.approx(1 / (s_per_byte * 4.5e11), abs=0.005) == UNMEASURED_SHARE


def test_the_tables_of_the_package_are_the_measured_ones() -> None:
    """Every measured size is hit: within the data's rounding, and never above the measured duration."""
    with (ROOT / "data" / "groundtruth" / "collectives.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["operation"] == "all_reduce"]
    assert [name for name in gpu_names() if load_gpu(name, Path()).allreduces] == sorted(PACKAGED)
    for name, (measured_on, versions) in PACKAGED.items():
        gpu = load_gpu(name, Path())
        for gpus, version in versions.items():
            wanted = (measured_on, version, "custom_graph", str(gpus))
            found = [row for row in rows if wanted == tuple(row[k] for k in ("gpu", "library_version", "mode", "gpus"))]
            allreduce = gpu.allreduce(gpus)
            assert len(found) == 19
            assert allreduce is not None
            for row in found:
                later = [float(r["time_us"]) for r in found if int(r["message_bytes"]) >= int(row["message_bytes"])]
                assert allreduce.seconds(int(row["message_bytes"])) == pytest.approx(1e-6 * min(later), rel=1e-12)
