"""Replays of two measured vLLM runs: the same requests at the same instants through the same scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simqueue.datafiles.csvtable import Row, read_table
from simqueue.engines import ENGINES
from simqueue.engines.base import SettledEngine, Surroundings
from simqueue.hardware import load_gpu, load_model
from simqueue.kvcache import KVCache, KVCacheSettings, PagedKVCache, PrefixKVCache
from simqueue.request import Request
from simqueue.schedulers.door import Door
from simqueue.simulation import Recording, RunOptions, Simulation
from simqueue.steptime import RooflineSettings
from simqueue.steptime.build import build

Column = NDArray[np.float64]

MODEL: Final = "llama-3.1-8b"
ENGINE: Final = "vllm"
VERSION: Final = "0.19.0"
BLOCK_SIZE: Final = 16
METRICS: Final = ("ttft_ms", "tpot_ms", "e2el_ms")


@dataclass(frozen=True, slots=True)
class Served:
    """A measured run.

    Attributes
    ----------
    title, gpu, preset : str
        For people, of the library, and the step times it is replayed with.
    data_name : str
        The GPU in the data.
    blocks : int
        The KV pool.
    max_num_seqs, max_num_batched_tokens : int
    note : str
        Where a setting is not as the collection states it.
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
        note="128 seats: the measured run never has more than 128 running while up to 104 wait, so its max_num_seqs "
        "was not the 256 of the collection's description. The pool is ample (what 96 GB leave beside the weights).",
    ),
    Served(
        title="RTX 4090, Llama 3.1 8B",
        gpu="rtx-4090",
        preset="vllm-rtx-4090",
        data_name="RTX4090",
        blocks=2588,
        max_num_seqs=256,
        max_num_batched_tokens=2048,
        note="A pool of 2,588 blocks holds about 40 of the 300 requests, so the run preempts.",
    ),
)


@dataclass(frozen=True, slots=True)
class Replay:
    """One replay beside its measurement.

    Attributes
    ----------
    run : Served
    measured, simulated : mapping of str to array, one value a request
        ``ttft_ms``, ``tpot_ms``, ``e2el_ms``; from the instant at which the engine queued the request.
    measured_series, simulated_series : mapping of str to array
        ``t_s``, ``running``, ``waiting``.
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
    """Replay a run and return it beside its measurement."""
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


def simulate(run: Served, rows: list[Row]) -> Recording:
    """Play the measured requests through the engine; they arrive when the engine queued them."""
    requests = [
        Request(row["request_id"], row.number("queued_s"), row.integer("input_toks"), row.integer("output_toks"))
        for row in rows
    ]
    gpu, model = load_gpu(run.gpu, Path()), load_model(MODEL, Path())
    engine = _engine(run)
    policy = engine.make(_cache(engine, run.blocks), Door(None, refuse_oversized=True))
    step_time = build(RooflineSettings(preset=run.preset), model, gpu)
    return Simulation(requests, policy, step_time, RunOptions()).run()


def _engine(run: Served) -> SettledEngine:
    """Return the policy: the one place that says who schedules."""
    engine = ENGINES[ENGINE]
    flags = {
        "version": VERSION,
        "max_num_seqs": run.max_num_seqs,
        "max_num_batched_tokens": run.max_num_batched_tokens,
        "enable_prefix_caching": True,
    }
    return engine.settle(engine.Settings.model_validate(flags), Surroundings(run.gpu, None, KVCacheSettings(), None))


def _cache(engine: SettledEngine, blocks: int) -> KVCache:
    rules = engine.cache
    if not rules.prefix_caching:
        return PagedKVCache(blocks - rules.reserved_blocks, BLOCK_SIZE)
    return PrefixKVCache(
        blocks - rules.reserved_blocks,
        BLOCK_SIZE,
        unhashed_first=rules.unhashed_first,
        lag=rules.registration_lag,
    )


def least_preemptions(rows: list[Row], series: Mapping[str, Column]) -> int:
    """Return the least number of preemptions that explains the measured running requests.

    At each second, those that have been scheduled and have not ended, less those that run, have been preempted and
    wait. Whenever that number grows, somebody was preempted anew; preempted ones who come back in between hide others.
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
