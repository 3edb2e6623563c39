"""Peak memory and time of a streamed trace: ``python -m benchmarks.trace_streaming [--rows 5000000] [--run]``.

Writes a file in BurstGPT's format to a temporary folder and reads it with ``stream: true``. With ``--run`` it also
simulates the trace on one replica, which shows the memory that a run needs per request. Each measurement runs in a new
process; its wall time and its peak resident memory are printed.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import ROOT
from simqueue.kvcache import PagedKVCache
from simqueue.schedulers import Chunked
from simqueue.schedulers.keys import ChunkedSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.simulation import RunOptions, Simulation
from simqueue.steptime.linear import ConstantStepTime
from simqueue.workload import WorkloadSettings
from simqueue.workload.generate import generate

_HEADER = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
_AT_ONCE = 100_000


def write_rows(path: Path, rows: int) -> None:
    """Write a file with Poisson arrivals at 3 requests/s; a quarter of them are failed calls."""
    rng = np.random.default_rng(1)
    last_s = 0.0
    with path.open("w", encoding="utf-8") as file:
        file.write(_HEADER)
        for start in range(0, rows, _AT_ONCE):
            n = min(_AT_ONCE, rows - start)
            times = last_s + np.cumsum(rng.exponential(1 / 3, n))
            last_s = float(times[-1])
            prompts, outputs = rng.integers(1, 2000, n), rng.integers(0, 4, n)
            columns = zip(times.tolist(), prompts.tolist(), outputs.tolist(), strict=True)
            file.writelines(f"{t:.3f},ChatGPT,{p},{o},{p + o},API log\n" for t, p, o in columns)


def measure(path: Path, mode: str) -> None:
    """Read or simulate the trace; print the time and the peak memory of this process."""
    keys = {"format": "burstgpt", "path": str(path), "stream": mode != "list"}
    started = time.perf_counter()
    traffic = generate(WorkloadSettings.model_validate({"trace": keys}), seed=1, base_dir=Path())
    count = sum(1 for _ in traffic.requests)
    if mode == "run":
        policy = Chunked(ChunkedSettings(), PagedKVCache(100_000, 16), RequestLimits())
        Simulation(traffic, policy, ConstantStepTime(0.01), RunOptions()).run()
    seconds = time.perf_counter() - started
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{mode:>8}: {count:>9,} requests, {seconds:7.1f} s, peak {peak_mib:8.1f} MiB")


def main() -> None:
    """Write the file and measure each mode in a new process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trace_streaming", description=main.__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--list", action="store_true", help="also read without streaming")
    parser.add_argument("--run", action="store_true", help="also simulate the streamed trace")
    parser.add_argument("--measure", nargs=2, metavar=("FILE", "MODE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        measure(Path(asked.measure[0]), asked.measure[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.csv")
        write_rows(path, asked.rows)
        print(f"{asked.rows:,} rows, {path.stat().st_size / 2**20:.0f} MiB", flush=True)
        for mode in ("stream", *(["list"] if asked.list else []), *(["run"] if asked.run else [])):
            command = [sys.executable, "-m", "benchmarks.trace_streaming", "--measure", str(path), mode]
            subprocess.run(command, check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
