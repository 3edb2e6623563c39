"""The page of the coverage grid: tables, what they say, and a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from simqueue.figures.canvas import LEVEL, MUTED, new_figure
from simqueue.figures.style import figure_style, line_styles
from simqueue.scenario.precision import PrecisionSettings
from simqueue.statistics.dependence import LEAST_BEYOND, LEAST_STRETCHES
from simqueue.statistics.stopping import IN_A_ROW, checkpoints
from studies.certainty.batching import TRAFFIC
from studies.certainty.coverage import GROUP, LOADS, METRICS, PRECISION, SIZES, TRUTH_REQUESTS, TRUTH_RUNS, Cell

PAGE: Final = "coverage.md"
FIGURE: Final = "coverage.png"
PROMISED: Final = 0.9


def write_page(folder: Path, cells: Sequence[Cell]) -> list[Path]:
    """Write the page and its figure to a folder and return their paths."""
    with figure_style():
        figure = _figure(cells)
        figure.savefig(folder / FIGURE, dpi=110, metadata={"Software": None})
    (folder / PAGE).write_text("\n".join(_lines(cells)) + "\n", encoding="utf-8")
    return [folder / PAGE, folder / FIGURE]


def _lines(cells: Sequence[Cell]) -> Iterator[str]:
    yield "<!-- Made by: python -m studies.certainty coverage -->"
    yield "# Coverage of steady statistics"
    yield ""
    yield from _introduction()
    yield from _verdict(cells)
    yield ""
    yield f"![Coverage of four metrics in {len(cells)} cells, before and now]({FIGURE})"
    yield ""
    for metric in METRICS:
        yield from _table(metric, cells)
    yield from _precision(cells)
    yield from _workloads(cells)


def _introduction() -> Iterator[str]:
    sizes = " and ".join(f"{one.runs // GROUP} experiments of runs of {n:,}" for n, one in SIZES.items())
    yield (
        "How often does a nominal 95 % interval contain the true value? An experiment has "
        f"{GROUP} replications and `warmup_s: auto`. A cell (workload, load, requests of a run) has {sizes} requests. "
        "Requests are drawn and served by a small server of the study, which a test holds against the package; "
        "warm-up, window, intervals and warnings are the package's own. True values of M/M/1 are exact, and so is the "
        f"throughput; the others are from {TRUTH_RUNS} runs of {TRUTH_REQUESTS:,} requests, whose first fifth is cut. "
        "The limit of goodput is a TTFT that 80 % of the requests meet."
    )
    yield ""
    yield (
        "*Before* is what the package did earlier: the latest warm-up of all replications cuts each, a percentile is "
        "the mean of the replications' percentiles, rates count the drain after the last arrival, and intervals are "
        "Student's; with a warm-up of a tenth of the requests. *Warned* is the share of experiments with a warning "
        "that names the metric, or without a number. An experiment is *right* if it covers or warns."
    )
    yield ""
    yield (
        f"Warnings: a run worth fewer than {LEAST_STRETCHES} independent values of TTFT, or a queue that "
        "grows in most of them (about all metrics); all runs "
        "together worth fewer than 40 times the squared skewness (about means); fewer than "
        f"{LEAST_BEYOND} independent values beyond a percentile."
    )
    yield ""


def _verdict(cells: Sequence[Cell]) -> Iterator[str]:
    below = [
        f"{metric} of {_name(cell)} ({cell.right[metric]:.0%})"
        for cell in cells
        for metric in METRICS
        if cell.right[metric] < PROMISED
    ]
    held = len(cells) * len(METRICS) - len(below)
    yield f"**{held} of {len(cells) * len(METRICS)} cells are right in at least {PROMISED:.0%} of their experiments.**"
    if below:
        noise = 1.96 * (PROMISED * (1 - PROMISED) / (min(size.runs for size in SIZES.values()) / GROUP)) ** 0.5
        yield f"Below, where shares of the smaller cells are known to ±{noise:.0%}: {'; '.join(below)}."
    easy = [cell for cell in cells if cell.load == min(LOADS) and cell.requests == max(SIZES)]
    told = ", ".join(f"{cell.workload} {cell.warned['mean TTFT']:.0%}" for cell in easy)
    yield (
        f"Warnings are no blanket: about the mean TTFT at a load of {min(LOADS):g} with runs of {max(SIZES):,} "
        f"requests, they come in these shares of experiments: {told}."
    )


def _table(metric: str, cells: Sequence[Cell]) -> Iterator[str]:
    yield f"## {metric}"
    yield ""
    yield "| workload | load | requests | before: covered | covered | warned | right |"
    yield "|---|---|---|---|---|---|---|"
    for cell in cells:
        shares = (cell.before[metric], cell.covered[metric], cell.warned[metric], cell.right[metric])
        yield f"| {cell.workload} | {cell.load:g} | {cell.requests:,} | {' | '.join(f'{one:.0%}' for one in shares)} |"
    yield ""


def _precision(cells: Sequence[Cell]) -> Iterator[str]:
    yield "## Precision"
    yield ""
    settings = PrecisionSettings.model_validate(PRECISION)
    yield (
        f"`precision: {{metric: {settings.metric}, relative: {settings.relative:g}}}`, `warmup_s: auto`, "
        f"{settings.min_replications} to {settings.max_replications} replications: how often it is reached, and how "
        "often the result is then right (it covers, or warns). A cell has up to "
        f"{max(size.sequences for size in SIZES.values())} sequences of replications, which have no run in common; at "
        "a load of 0.9, if the first two do not reach it, there are no more. An interval that is narrow enough but "
        "comes with a warning does not count as reached. A sequence is looked at after "
        f"{', '.join(map(str, checkpoints(settings.min_replications, settings.max_replications)))} replications, and "
        f"must be precise at {IN_A_ROW} of these in a row: a sequence that can stop at any moment stops where its "
        "interval happens to be short, or a doubt happens to be gone."
    )
    yield ""
    below = [cell for cell in cells if cell.precise is not None and cell.precise < PROMISED]
    known = [cell for cell in cells if cell.precise is not None]
    yield (
        f"**Right in at least {PROMISED:.0%} of the sequences that reach it: {len(known) - len(below)} of {len(known)} "
        f"cells.**{' Below: ' if below else ''}{'; '.join(map(_stopped, below))}"
    )
    left_out = [_name(cell) for cell in cells if not cell.sequences]
    if left_out:
        yield f"Not measured: {', '.join(left_out)}."
    yield ""
    yield "| workload | load | requests | sequences | reached | right where reached |"
    yield "|---|---|---|---|---|---|"
    for cell in cells:
        shares = " | ".join("-" if one is None else f"{one:.0%}" for one in (cell.reached, cell.precise))
        yield f"| {cell.workload} | {cell.load:g} | {cell.requests:,} | {cell.sequences} | {shares} |"
    yield ""


def _stopped(cell: Cell) -> str:
    reached = round((cell.reached or 0) * cell.sequences)
    return f"{_name(cell)} ({round((cell.precise or 0) * reached)} of {reached})"


def _workloads(cells: Sequence[Cell]) -> Iterator[str]:
    yield "## Workloads"
    yield ""
    yield (
        "Steps take 20 ms, 1 ms per decode and 50 us per prompt token; 8 slots unless the workload says otherwise; the "
        "load is the arrival rate over the rate at which all slots are always busy. The error is the standard error."
    )
    yield ""
    yield "| workload | requests | load | rate (req/s) | true mean TTFT (ms) | its error (ms) | true p99 (ms) |"
    yield "|---|---|---|---|---|---|---|"
    for cell in cells:
        if cell.requests == min(SIZES):
            true, described = cell.truth, TRAFFIC[cell.workload].described
            numbers = (
                cell.load,
                true.request_throughput,
                true.mean_ttft_ms,
                true.mean_error_ms,
                true.p99_ttft_ms,
            )
            yield f"| {cell.workload} | {described} | {' | '.join(f'{one:,.4g}' for one in numbers)} |"


def _name(cell: Cell) -> str:
    return f"{cell.workload} {cell.load:g} × {cell.requests:,}"


def _figure(cells: Sequence[Cell]) -> Figure:
    """Draw a row per cell and a panel per metric: coverage before and now, and covered or warned."""
    figure = new_figure(height=0.26 * len(cells) + 1.3)
    axes = figure.subplots(1, len(METRICS), sharey=True)
    now, before, right = (style.color for style in line_styles(3))
    rows = range(len(cells))
    for axis, metric in zip(axes, METRICS, strict=True):
        axis.axvspan(PROMISED, 1.03, color="0.93", zorder=0)
        axis.axvline(0.95, **LEVEL)
        for row, cell in zip(rows, cells, strict=True):
            ends = [cell.before[metric], cell.covered[metric], cell.right[metric]]
            axis.plot([min(ends), max(ends)], [row, row], color=MUTED, linewidth=0.6, zorder=1)
        axis.scatter([c.before[metric] for c in cells], rows, marker="x", s=26, color=before, label="covered, before")
        axis.scatter([c.covered[metric] for c in cells], rows, marker="o", s=22, color=now, label="covered, now")
        shares = [c.right[metric] for c in cells]
        axis.scatter(
            shares, rows, marker="D", s=30, facecolors="none", edgecolors=right, label="covered or warned, now"
        )
        axis.set(title=metric, xlim=(-0.02, 1.03), xlabel="share of experiments")
        axis.xaxis.set_major_formatter(PercentFormatter(1))
    axes[0].set_yticks(list(rows), [_name(cell) for cell in cells])
    axes[0].invert_yaxis()
    axes[0].set_ylabel("workload, load × requests of a run")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure
