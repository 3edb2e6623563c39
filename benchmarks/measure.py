"""Measures one cell in this process; `__main__` starts a new process for each cell."""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.cells import Cell, saturation
from benchmarks.fleets import all_cells
from benchmarks.floor import one_process_per_s
from simqueue.simulation import Recording

KIB_PER_MB = 1e6 / 1024
T = TypeVar("T")


def measure(cell: Cell, rate_rps: float) -> dict[str, Any]:
    """Simulate a cell and return its times and memory.

    SimPy's floor is measured before and after it, because the speed of a machine changes. Times are processor times, so
    that other processes on the machine matter as little as possible. The peak memory of a streamed run includes its
    summary, which is computed from its files.
    """
    with tempfile.TemporaryDirectory() as folder:
        return _measure(cell, rate_rps, Path(folder))


def _measure(cell: Cell, rate_rps: float, folder: Path) -> dict[str, Any]:
    sinks = None
    if cell.streamed:
        from simqueue.results import streaming, summary  # noqa: PLC0415 - would count as memory of the other cells

        sinks = streaming.streamed_to(folder)
    simulation = cell.simulation(cell.requests(rate_rps), sinks)
    floors = [one_process_per_s()]
    recording, cpu_s, wall_s = _timed(simulation.run)
    summary_s = _timed(lambda: summary.summarize("policy", 0, recording))[1] if cell.streamed else None
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MB
    floors.append(one_process_per_s())
    events = next(simulation.env._eid)
    times = {"cpu_s": cpu_s, "wall_s": wall_s, "summary_cpu_s": summary_s, "peak_rss_mb": peak_mb}
    return {"cell": cell.name, "way": cell.way} | times | _rates(recording, cpu_s, events, sum(floors) / 2)


def _timed(run: Callable[[], T]) -> tuple[T, float, float]:
    """Return the result of `run`, and its processor and wall time in seconds."""
    started_s, wall_s = time.process_time(), time.perf_counter()
    result = run()
    return result, time.process_time() - started_s, time.perf_counter() - wall_s


def _rates(recording: Recording, cpu_s: float, events: int, floor_per_s: float) -> dict[str, Any]:
    n, steps = len(recording.requests["status"]), int(recording.steps["repeat"].sum())
    return {
        "requests": n,
        "steps": steps,
        "simulated_s": recording.end_s,
        "requests_per_s": n / cpu_s,
        "steps_per_s": steps / cpu_s,
        "us_per_step": 1e6 * cpu_s / steps,
        "events_per_request": events / n,
        "step_rows": len(recording.steps["repeat"]),
        "preemptions": int(recording.requests["preemptions"].sum()),
        "floor_per_s": floor_per_s,
        "floor_ratio": floor_per_s * cpu_s / n,
    }


def main() -> None:
    """Measure the cell with the given number and print one JSON object."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cell", help="number of the cell, or 'saturation'")
    parser.add_argument("rate_rps", type=float)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    quick = given.quick
    whole = given.cell == "saturation"
    chosen = saturation(2_000 if quick else 10_000) if whole else all_cells(quick=quick)[int(given.cell)]
    print(json.dumps(measure(chosen, given.rate_rps)))


if __name__ == "__main__":
    main()
