"""The bench command: runs both policies in torch, and prints what was measured beside what the simulator gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from simqueue.figures.canvas import save
from simqueue.module08.bench import BENCH_POLICIES, BenchRun, module_lengths, run_bench
from simqueue.module08.tinylm import load_torch
from studies.module08.calibrated import cost_text, fitted, simulated
from studies.module08.figures import slot_fill
from studies.module08.recorded import Measurements, measurements, step_rows, write


def measure(batch_sizes: Sequence[int], out: Path | None) -> list[Path]:
    """Run the bench at each batch size, print a table, and return the files written to `out`, if it is given.

    Raises
    ------
    InputError
        If torch is not installed.
    """
    torch = load_torch()
    lengths = module_lengths()
    runs = [run_bench(policy, lengths, size) for size in batch_sizes for policy in BENCH_POLICIES]
    found = measurements(runs, torch.__version__, "cuda" if torch.cuda.is_available() else "cpu")
    print(_table(runs, found, lengths))
    print(f"step fitted to these calls: {cost_text(fitted(found.times))}")
    return [] if out is None else _write(runs, found, out)


def _table(runs: Sequence[BenchRun], found: Measurements, lengths: Sequence[int]) -> str:
    cost = fitted(found.times)
    rows = []
    for run, measured in zip(runs, found.runs, strict=True):
        tokens_per_s = simulated(run.policy, lengths, run.batch_size, cost).tokens_per_s
        rows.append(
            {
                "policy": run.policy,
                "slots": run.batch_size,
                "tokens": f"{run.generated:,}",
                "calls": f"{measured.calls:,}",
                "slots useful": f"{run.utilisation:.1%}",
                "tok/s": f"{measured.tokens_per_s:,.0f}",
                "tok/s simulated": f"{tokens_per_s:,.0f}",
                "error": f"{100 * (tokens_per_s / measured.tokens_per_s - 1):+.1f} %",
            }
        )
    return pd.DataFrame(rows).to_string(index=False)


def _write(runs: Sequence[BenchRun], found: Measurements, out: Path) -> list[Path]:
    bench, steps = out / "bench.json", out / "steps.csv"
    write(found, bench)
    steps.write_text(step_rows(found.times), encoding="utf-8", newline="\n")
    sizes = dict.fromkeys(run.batch_size for run in runs)
    figures = {size: slot_fill([run for run in runs if run.batch_size == size]) for size in sizes}
    return [bench, steps, *(path for size, figure in figures.items() for path in save(figure, out, f"slots-{size}"))]
