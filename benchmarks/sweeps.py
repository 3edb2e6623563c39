"""What a sweep costs beside its runs: ``python -m benchmarks.sweeps [--cells N] [--requests N] [--workers N]``.

First the cells are run without a sweep, and then in one, with a store and a table, in the same process. The difference
of processor times over the number of cells is the overhead. With ``--workers``, a whole sweep is timed instead.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import simqueue as sq
from simqueue.scenario import from_mapping

RATE = "workload.arrivals.rate_rps"
LOW_RPS, HIGH_RPS = 4, 16


def _scenario(requests: int) -> dict[str, Any]:
    """Return the scenario: chunked prefill of an 8B model on one H100, below its capacity."""
    return {
        "seed": 1,
        "model": "llama-3.1-8b",
        "gpu": "h100-sxm",
        "workload": {
            "num_requests": requests,
            "arrivals": {"process": "poisson", "rate_rps": LOW_RPS},
            "prompt_tokens": {"distribution": "lognormal", "mean": 1024, "cv": 0.6, "min": 16, "max": 3072},
            "output_tokens": {"distribution": "lognormal", "mean": 192, "cv": 0.6, "min": 8, "max": 896},
        },
        "policies": {"chunked": {"scheduler": "chunked", "max_num_batched_tokens": 512, "max_num_seqs": 128}},
    }


def main() -> None:
    """Measure, and print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweeps", description="Overhead of sweeps.")
    parser.add_argument("--cells", type=int, default=100)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3, help="the shortest of so many times counts")
    parser.add_argument("--workers", type=int, help="time a whole sweep with so many processes instead")
    given = parser.parse_args()
    compiled = "compiled" if sq.__compiled__ else "pure Python"
    print(f"simqueue {sq.__version__}, {compiled}; {given.cells} cells of {given.requests} requests")
    if given.workers:
        started = time.perf_counter()
        _sweep(given.cells, given.requests, given.workers)
        print(f"{given.workers} workers: {time.perf_counter() - started:.1f} s")
        return
    times = [_both(given.cells, given.requests) for _ in range(given.repeats)]
    alone_s, sweep_s = (min(column) for column in zip(*times, strict=True))
    print(
        f"runs alone: {1000 * alone_s / given.cells:.2f} ms a cell; in a sweep: {1000 * sweep_s / given.cells:.2f} ms"
    )
    print(f"overhead: {1000 * (sweep_s - alone_s) / given.cells:.2f} ms a cell, {sweep_s / alone_s - 1:.1%}")


def _both(cells: int, requests: int) -> tuple[float, float]:
    """Return the processor time in seconds of the runs alone, and of the sweep."""
    settled = [from_mapping(_scenario(requests), [f"{RATE}={rate}"]).resolve() for rate in _rates(cells)]
    started = time.process_time()
    for one in settled:
        result = sq.run(one, workers=1)
        assert result.replication_rows
        assert result.warnings is not None
    alone_s = time.process_time() - started
    started = time.process_time()
    _sweep(cells, requests, 1)
    return alone_s, time.process_time() - started


def _rates(cells: int) -> list[float]:
    return [LOW_RPS + number * (HIGH_RPS - LOW_RPS) / (cells - 1) for number in range(cells)]


def _sweep(cells: int, requests: int, workers: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = sq.sweep(_scenario(requests), grid={RATE: _rates(cells)}, out=Path(folder), workers=workers)
    assert len(found.table) == cells
    assert not len(found.failures)


if __name__ == "__main__":
    main()
