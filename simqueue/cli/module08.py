"""``simqueue module08``: the course module's bench and its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simqueue.cli.common import Debug, console

if TYPE_CHECKING:
    from simqueue.module08.bench import BenchRun

app = typer.Typer(help="The course module on continuous batching: its bench in torch, and its report.")


@app.command("bench")
def bench(
    batch_size: Annotated[
        list[int] | None, typer.Option("--batch-size", min=1, help="Slots; repeatable. Default: 8 and 32.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for the slot figures, bench.json and the steps as CSV."),
    ] = None,
    debug: Debug = False,  # noqa: ARG001 - read where errors are shown
) -> None:
    """Fill slots with a small network: padded waves against slots refilled at once; print both, and the simulator.

    Needs torch: pip install 'simqueue[torch]'.
    """
    from simqueue.module08.bench import BENCH_POLICIES, module_lengths, run_bench
    from simqueue.module08.recorded import measurements
    from simqueue.module08.tinylm import load_torch

    torch = load_torch()
    lengths = module_lengths()
    runs = [run_bench(policy, lengths, size) for size in batch_size or [8, 32] for policy in BENCH_POLICIES]
    found = measurements(runs, torch.__version__, "cuda" if torch.cuda.is_available() else "cpu")
    _show(runs, lengths)
    if out is not None:
        from simqueue.figures.canvas import save
        from simqueue.module08.figures import slot_fill
        from simqueue.module08.recorded import step_rows, write

        write(found, out / "bench.json")
        (out / "steps.csv").write_text(step_rows(found.times), encoding="utf-8", newline="\n")
        sizes = dict.fromkeys(run.batch_size for run in runs)
        drawn = [
            path
            for size in sizes
            for path in save(slot_fill([r for r in runs if r.batch_size == size]), out, f"slots-{size}")
        ]
        for path in (out / "bench.json", out / "steps.csv", *drawn):
            typer.echo(f"written: {path}")


def _show(runs: list[BenchRun], lengths: list[int]) -> None:
    from rich import box
    from rich.table import Table

    from simqueue.module08.calibrated import call_times, fitted, simulated

    cost = fitted(call_times(runs))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("policy", "slots", "tokens", "calls", "slots useful", "tok/s", "tok/s simulated", "error"):
        table.add_column(title, justify="left" if title == "policy" else "right")
    for run in runs:
        measured = run.generated / run.seconds
        said = simulated(run.policy, lengths, run.batch_size, cost).tokens_per_s
        table.add_row(
            run.policy, str(run.batch_size), f"{run.generated:,}", f"{len(run.calls):,}", f"{run.utilisation:.1%}",
            f"{measured:,.0f}", f"{said:,.0f}", f"{100 * (said / measured - 1):+.1f} %",
        )  # fmt: skip
    console().print(table)
    typer.echo(
        f"step fitted to these calls: {1e3 * cost.overhead_s:.3g} ms + {1e3 * cost.per_prefill_token_s:.3g} ms a "
        f"prompt token; with decodes + {1e3 * cost.decode_base_s:.3g} ms + {1e3 * cost.per_decode_s:.3g} ms a row"
    )


@app.command("report")
def report(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the report.")] = Path("reports"),
    debug: Debug = False,  # noqa: ARG001 - read where errors are shown
) -> None:
    """Recompute the module's figures, put its claims on trial, and write module08.md and module08.html."""
    from simqueue.module08.report import write_report

    for path in write_report(out):
        typer.echo(f"written: {path}")
