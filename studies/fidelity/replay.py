"""Replays of two measured vLLM runs: the same requests at the same times through the same scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

import simqueue
from simqueue.datafiles.csvtable import Row, read_table
from simqueue.simulation import Recording

Column = NDArray[np.float64]

MODEL: Final = "llama-3.1-8b"
VERSION: Final = "0.19.0"
RESERVED_BLOCKS: Final = 1
"""Blocks of vLLM's pool that hold no tokens: its null block."""
METRICS: Final = ("ttft_ms", "tpot_ms", "e2el_ms")


@dataclass(frozen=True, slots=True)
class Served:
    """A measured run, and the settings of its replay.

    Attributes
    ----------
    title : str
    gpu : str
        Name in the library.
    preset : str
        Step times of the replay.
    data_name : str
        Name of the GPU in the data.
    blocks : int
        Size of the KV pool, with vLLM's null block.
    max_num_seqs, max_num_batched_tokens : int
    note : str
        About the run and its settings, for the report.
    """

    title: str
    gpu: str
    preset: str
    data_name: str
    blocks: int
    max_num_seqs: int
    max_num_batched_tokens: int
    note: str


RUNS: Final = (
    Served(
        title="RTX PRO 6000, Llama 3.1 8B",
        gpu="rtx-pro-6000",
        preset="vllm-rtx-pro-6000",
        data_name="RTXPRO6000",
        blocks=32_000,
        max_num_seqs=128,
        max_num_batched_tokens=2048,
        note="In the measured run at most 128 requests run while up to 104 wait. So its max_num_seqs was 128 and not "
        "256, as the description of the collection says. The KV pool, all of the 96 GB that the weights leave, is "
        "large enough.",
    ),
    Served(
        title="RTX 4090, Llama 3.1 8B",
        gpu="rtx-4090",
        preset="vllm-rtx-4090",
        data_name="RTX4090",
        blocks=2588,
        max_num_seqs=256,
        max_num_batched_tokens=2048,
        note="The pool of 2,588 blocks holds about 40 of the 300 requests, so requests are preempted.",
    ),
)


@dataclass(frozen=True, slots=True)
class Replay:
    """One replay and its measurement.

    Attributes
    ----------
    run : Served
    measured, simulated : mapping of str to array of shape (requests,)
        ``ttft_ms``, ``tpot_ms``, ``e2el_ms``, from the time at which the engine queued the request.
    measured_series, simulated_series : mapping of str to array
        ``t_s``, ``running``, ``waiting``: requests over time.
    measured_preemptions : int
        The least number that explains the measured series; see `least_preemptions`.
    simulated_preemptions : int
    """

    run: Served
    measured: Mapping[str, Column]
    simulated: Mapping[str, Column]
    measured_series: Mapping[str, Column]
    simulated_series: Mapping[str, Column]
    measured_preemptions: int
    simulated_preemptions: int


def replay(run: Served, folder: Path) -> Replay:
    """Replay a run; return the replay and its measurement."""
    rows = _rows(folder / "vllm_request_times.csv", run.data_name)
    series = _series(folder / "vllm_timeseries.csv", run.data_name)
    recording = simulate(run, rows)
    requests = recording.requests
    several = requests["output_tokens"] - 1
    simulated = {
        "ttft_ms": 1e3 * (requests["first_token_s"] - requests["arrival_s"]),
        "tpot_ms": 1e3 * (requests["last_token_s"] - requests["first_token_s"]) / several,
        "e2el_ms": 1e3 * (requests["finish_s"] - requests["arrival_s"]),
    }
    measured = {
        "ttft_ms": _column(rows, "ttft_from_queued_ms"),
        "tpot_ms": _column(rows, "tpot_ms"),
        "e2el_ms": _column(rows, "e2e_from_queued_ms"),
    }
    steps = recording.steps
    return Replay(
        run,
        measured,
        simulated,
        series,
        {"t_s": steps["start_s"], "running": steps["running"], "waiting": steps["waiting"]},
        least_preemptions(rows, series),
        int(requests["preemptions"].sum()),
    )


def simulate(run: Served, rows: Sequence[Row]) -> Recording:
    """Simulate the measured requests; each arrives when the engine queued it."""
    requests = [
        {
            "id": row["request_id"],
            "arrival_s": row.number("queued_s"),
            "prompt_tokens": row.integer("input_toks"),
            "output_tokens": row.integer("output_toks"),
        }
        for row in rows
    ]
    policy = {
        "engine": "vllm",
        "version": VERSION,
        "max_num_seqs": run.max_num_seqs,
        "max_num_batched_tokens": run.max_num_batched_tokens,
        "enable_prefix_caching": True,
    }
    result = simqueue.run(
        {
            "name": run.gpu,
            "model": MODEL,
            "gpu": run.gpu,
            "step_time": {"kind": "roofline", "preset": run.preset},
            "kv_cache": {"blocks": run.blocks - RESERVED_BLOCKS},
            "workload": {"requests": requests},
            "policies": {"vllm": policy},
        }
    )
    return result.runs[0].recording


def least_preemptions(rows: list[Row], series: Mapping[str, Column]) -> int:
    """Return the least number of preemptions that explains the measured running requests.

    At each second the preempted requests are those that were scheduled and have not ended, minus those that run. Each
    increase of this number is at least that many preemptions. A preempted request that runs again within the same
    second hides another preemption, so the true number may be higher.
    """
    started, ended = np.sort(_column(rows, "scheduled_s")), np.sort(_column(rows, "last_token_s"))
    t_s = series["t_s"]
    inside = np.searchsorted(started, t_s, "right") - np.searchsorted(ended, t_s, "right")
    out = np.maximum(0, inside - series["running"])
    return int(np.maximum(0, np.diff(out, prepend=0)).sum())


def _rows(file: Path, data_name: str) -> list[Row]:
    rows = [row for row in read_table(file, file.name).rows() if row["gpu"] == data_name]
    return sorted(rows, key=lambda row: row.number("queued_s"))


def _series(file: Path, data_name: str) -> dict[str, Column]:
    rows = [row for row in read_table(file, file.name).rows() if row["gpu"] == data_name]
    return {
        name: _column(rows, column) for name, column in (("t_s", "t"), ("running", "running"), ("waiting", "waiting"))
    }


def _column(rows: list[Row], name: str) -> Column:
    return np.array([row.number(name) for row in rows])
