"""Writes measurements as a table, as JSON, and as a figure."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.ratios import ratios

COLUMNS = (
    ("requests/s", "requests_per_s", ",.0f"),
    ("floor ratio", "floor_ratio", ".0f"),
    ("steps/s", "steps_per_s", ",.0f"),
    ("us/step", "us_per_step", ".1f"),
    ("events/request", "events_per_request", ".1f"),
    ("peak RSS MB", "peak_rss_mb", ".0f"),
    ("CPU s", "cpu_s", ".2f"),
)
EXPLAINED = """\
Times are processor times of the simulation phase, with all tables recorded and one SimPy process per request. The floor
ratio is the time per request, divided by the time of one timeout of one SimPy process, measured in the same process
before and after the run. Each row is measured in a new process. Its peak memory includes Python, SimPy, numpy and the
requests, and in streamed runs the summary, which is computed from the files.
"""
COMPARED = """\
Times of two rows are compared in units of the timeouts measured with each row, because the speed of a machine changes.
"""


def line(row: dict[str, Any]) -> str:
    """Return one measurement as a line of text."""
    values = "  ".join(f"{row[key]:{form}} {name}" for name, key, form in COLUMNS)
    return f"{row['cell']}, {row['way']}: {values}"


def write(found: dict[str, Any], folder: Path, *, partial: bool) -> None:
    """Write performance.json, performance-table.md and performance.png to `folder`, and print the table.

    The files of a partial measurement are named performance-quick instead.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = "performance-quick" if partial else "performance"
    table = _markdown(found)
    print(table)
    (folder / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (folder / f"{name}-table.md").write_text(table, encoding="utf-8")
    _figure(found, folder / f"{name}.png")


def _markdown(found: dict[str, Any]) -> str:
    machine, floor, start = found["machine"], found["floor"], found["start_up"]
    how = "compiled" if machine["compiled"] else "in pure Python"
    lines = [
        "# Speed and memory",
        "",
        f"`python -m benchmarks` on {machine['cores']} cores ({machine['processor']}), Python {machine['python']}, "
        f"SimPy {machine['simpy']}, simqueue {how}; load average before: {machine['load_before']:.1f}.",
        "",
        f"SimPy's floor: {floor['one_process_per_s']:,.0f} timeouts/s in one process, "
        f"{floor['thousand_processes_per_s']:,.0f} with 1,000 processes. "
        f"W1's server saturates at {found['saturation_rps']:.2f} requests/s; the arrival rate of W1 is 70 % of that.",
        "",
        f"Wall time of whole commands: `--help` {start['help_s']:.2f} s, `validate` {start['validate_s']:.2f} s, "
        f"`run` of W1 with `--no-figures` {start['w1_command_s']:.2f} s.",
        "",
        EXPLAINED,
        "| cell | way | requests | " + " | ".join(name for name, _, _ in COLUMNS) + " |",
        "|---|---|---:|" + "---:|" * len(COLUMNS),
    ]
    lines += [
        f"| {row['cell']} | {row['way']} | {row['requests']:,} | "
        + " | ".join(f"{row[key]:{form}}" for _, key, form in COLUMNS)
        + " |"
        for row in found["rows"]
    ]
    return "\n".join([*lines, "", COMPARED, *_compared(found)]) + "\n"


def _compared(found: dict[str, Any]) -> list[str]:
    """Return the table of comparisons."""
    lines = ["| comparison | measured | limit |", "|---|---:|---|"]
    return lines + [f"| {one.name} | {one.value:,.{one.digits}f} | {one.limit} |" for one in ratios(found)]


def _figure(found: dict[str, Any], path: Path) -> None:
    # Imported here: their memory would count as that of the processes of the cells.
    from matplotlib.lines import Line2D  # noqa: PLC0415 - see above
    from matplotlib.patches import Patch  # noqa: PLC0415 - see above

    from simqueue.figures.canvas import MUTED, WIDTH, legend_below, new_figure, write  # noqa: PLC0415 - see above
    from simqueue.figures.style import PALETTE, figure_style  # noqa: PLC0415 - see above

    colours = dict(zip(("fast", "stepped", "walk"), (PALETTE[0], PALETTE[1], PALETTE[7]), strict=True))
    rows = [row for row in found["rows"] if not row["cell"].endswith("seats full")]
    with figure_style():
        figure = new_figure(WIDTH, 0.28 * len(rows) + 1.2)
        axes = figure.subplots()
        places = range(len(rows))
        axes.barh(places, [row["requests_per_s"] for row in rows], color=[colours[row["way"]] for row in rows])
        axes.plot([row["floor_per_s"] / 50 for row in rows], places, "|", color="black", markersize=11)
        for place, row in zip(places, rows, strict=True):
            beside = max(row["requests_per_s"], row["floor_per_s"] / 50)
            axes.text(beside, place, f"  {row['requests_per_s']:,.0f}", va="center", fontsize=9)
        axes.set_yticks(places, [_bar_name(row) for row in rows])
        axes.invert_yaxis()
        axes.set(xlabel="simulated requests per processor second", title="Simulation phase, all tables recorded")
        axes.grid(visible=False, axis="y")
        axes.margins(x=0.08, y=0.01)
        floor = Line2D([], [], color=MUTED, marker="|", linestyle="none", markersize=11, label="SimPy floor / 50")
        legend_below(figure, [*(Patch(color=colour, label=way) for way, colour in colours.items()), floor])
    write(figure, path)


def _bar_name(row: dict[str, Any]) -> str:
    """Return the name of a cell with the way it is simulated, unless that is the usual one."""
    cell = re.sub(r"\d{4,}", lambda found: f"{int(found[0]):,}", row["cell"])
    return cell if row["way"] == "fast" else f"{cell} ({row['way']})"
