"""The command that measures: ``python -m benchmarks [--quick] [--out DIR] [--only TEXT]``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import simpy

import simqueue
from benchmarks import ROOT, floor, report
from benchmarks.cells import LOAD
from benchmarks.fleets import all_cells

COMMAND_SCENARIO = """\
name: w1
seed: 1
step_time: {{kind: linear, overhead_s: 0.006, per_prefill_token_s: 5.0e-5, decode_base_s: 0,
            per_decode_s: 3.0e-5, per_context_token_s: 4.0e-8}}
kv_cache: {{layout: paged, block_size: 16, blocks: 6886}}
workload:
  num_requests: {requests}
  arrivals: {{process: poisson, rate_rps: {rate_rps}}}
  prompt_tokens: {{distribution: lognormal, mean: 1024, cv: 0.6, min: 16, max: 3072}}
  output_tokens: {{distribution: lognormal, mean: 192, cv: 0.6, min: 8, max: 896}}
policies:
  chunked: {{scheduler: chunked, max_num_batched_tokens: 512, max_num_seqs: 128}}
"""


def main() -> None:
    """Measure all cells, print a table, and write JSON, Markdown and a figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed and memory on this machine.")
    parser.add_argument("--quick", action="store_true", help="smaller runs, about two minutes")
    parser.add_argument("--out", type=Path, default=ROOT / "reports", help="folder of the results (default: reports)")
    parser.add_argument("--only", default="", help="only cells whose name contains this text")
    given = parser.parse_args()
    quick = given.quick
    found: dict[str, Any] = {
        "machine": _machine(),
        "floor": {
            "one_process_per_s": max(floor.one_process_per_s() for _ in range(3)),
            "thousand_processes_per_s": max(floor.thousand_processes_per_s() for _ in range(3)),
        },
        "rows": [],
    }
    full = _measured("saturation", 1.0, quick)
    found["saturation_rps"] = full["requests"] / full["simulated_s"]
    rate_rps = LOAD * found["saturation_rps"]
    for number, cell in enumerate(all_cells(quick=quick)):
        if given.only in cell.name:
            found["rows"].append(_measured(str(number), rate_rps, quick))
            print(report.line(found["rows"][-1]), flush=True)
    found["start_up"] = _start_up(rate_rps, 2_000 if quick else 10_000)
    report.write(found, given.out, partial=quick or bool(given.only))


def _measured(cell: str, rate_rps: float, quick: bool) -> dict[str, Any]:
    """Measure a cell in a fresh process, so that its memory is its own."""
    command = [sys.executable, "-m", "benchmarks.measure", *(["--quick"] if quick else []), cell, str(rate_rps)]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", cwd=ROOT)
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def _start_up(rate_rps: float, requests: int) -> dict[str, float]:
    """Return the wall time of whole commands: the minimum of three runs, or one run of the longest command."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder, "w1.yaml")
        scenario.write_text(COMMAND_SCENARIO.format(requests=requests, rate_rps=rate_rps), encoding="utf-8")
        run = ["run", str(scenario), "--no-figures", "--quiet", "--out", str(Path(folder, "out"))]
        return {
            "help_s": _fastest_s(["--help"]),
            "validate_s": _fastest_s(["validate", str(scenario)]),
            "w1_command_s": _fastest_s(run, times=1),
        }


def _fastest_s(arguments: list[str], times: int = 3) -> float:
    took_s = []
    for _ in range(times):
        started_s = time.perf_counter()
        command = [sys.executable, "-m", "simqueue", *arguments]
        # in a folder without sources, which `-m` would use instead of the installed package
        subprocess.run(command, check=True, capture_output=True, cwd=tempfile.gettempdir())
        took_s.append(time.perf_counter() - started_s)
    return min(took_s)


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "simpy": simpy.__version__,
        "compiled": simqueue.__compiled__,
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
    }


if __name__ == "__main__":
    main()
