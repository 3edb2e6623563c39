"""The figures of the fidelity report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from simqueue.figures.canvas import new_figure
from simqueue.figures.style import figure_style, line_styles
from studies.fidelity.evaluate import Compared, ComparedServed
from studies.fidelity.replay import METRICS, Replay

METRIC_TITLES: Final = {"ttft_ms": "TTFT", "tpot_ms": "TPOT", "e2el_ms": "E2EL"}
MEASURED, SIMULATED = 0, 1
IDEAL, CALIBRATED = 1, 0


def draw_all(
    steps: Sequence[Compared], served: Sequence[ComparedServed], replays: Sequence[Replay], folder: Path
) -> list[Path]:
    """Draw every figure into `folder` and return the files, in the order of the report."""
    with figure_style():
        files = [_steps(steps, folder / "steps.png"), _served(served, folder / "served.png")]
        for replay in replays:
            files.append(_cdf(replay, folder / f"replay-{replay.run.gpu}-cdf.png"))
            files.append(_series(replay, folder / f"replay-{replay.run.gpu}-series.png"))
    return files


def _steps(compared: Sequence[Compared], file: Path) -> Path:
    """Draw the ratio of predicted to measured time over the measured time, one panel per source and GPU."""
    panels = [one for one in compared if len(one.cases) > 10]
    figure, axes = _grid(len(panels), columns=3)
    styles = line_styles(2)
    for axis, one in zip(axes, panels, strict=False):
        measured_ms = np.array([1e3 * case.measured_s for case in one.cases])
        for percent, style, label in ((one.ideal, IDEAL, "ideal"), (one.calibrated, CALIBRATED, "calibrated")):
            axis.scatter(
                measured_ms, 1 + percent / 100, s=7, alpha=0.5, linewidths=0, color=styles[style].color, label=label
            )
        axis.axhline(1, color="0.3", linewidth=0.8)
        axis.set(xscale="log", ylim=(0, 1.8), title=f"{one.source}, {one.gpu}")
        axis.set_xlabel("measured step (ms)")
        axis.set_ylabel("predicted / measured")
    _legend(figure, axes[0], markerscale=2.5)
    return _saved(figure, file)


def _served(compared: Sequence[ComparedServed], file: Path) -> Path:
    """Draw predicted over measured TPOT, one panel per engine and model."""
    figure, axes = _grid(len(compared), columns=3)
    styles = line_styles(2)
    for axis, one in zip(axes, compared, strict=False):
        measured_ms = np.array([1e3 * row.tpot.measured_s for row in one.rows])
        ends = [0.85 * measured_ms.min(), 1.15 * measured_ms.max()]
        axis.plot(ends, ends, color="0.3", linewidth=0.8)
        for percent, style, marker, label in (
            (one.tpot.ideal, IDEAL, "x", "ideal"),
            (one.tpot.calibrated, CALIBRATED, "o", "calibrated"),
        ):
            axis.scatter(
                measured_ms,
                measured_ms * (1 + percent / 100),
                s=14,
                alpha=0.75,
                marker=marker,
                color=styles[style].color,
                label=label,
            )
        axis.set(xscale="log", yscale="log", title=f"{one.tpot.source}\n{one.tpot.gpu}, preset {one.tpot.preset}")
        axis.set_xlabel("measured mean TPOT (ms)")
        axis.set_ylabel("predicted (ms)")
        _plain_ticks(axis)
    _legend(figure, axes[0])
    return _saved(figure, file)


def _cdf(replay: Replay, file: Path) -> Path:
    figure, axes = _grid(len(METRICS), columns=3)
    for axis, metric in zip(axes, METRICS, strict=True):
        unit, scale = ("ms", 1.0) if metric == "tpot_ms" else ("s", 1e-3)
        for values, style, label in _pairs(replay.measured, replay.simulated, metric):
            ordered = np.sort(values) * scale
            shares = np.arange(1, len(ordered) + 1) / len(ordered)
            axis.step(ordered, shares, where="post", label=label, color=style.color, linestyle=style.linestyle)
        axis.set(title=METRIC_TITLES[metric], xlabel=f"{METRIC_TITLES[metric]} ({unit})", ylim=(0, 1.02))
        axis.set_xlim(left=0)
    axes[0].set_ylabel("share of requests")
    _legend(figure, axes[0])
    figure.suptitle(f"{replay.run.title}: measured and replayed", x=0.01, ha="left")
    return _saved(figure, file)


def _series(replay: Replay, file: Path) -> Path:
    figure, axes = _grid(2, columns=2)
    for axis, name in zip(axes, ("running", "waiting"), strict=True):
        for series, style, label in (
            (replay.measured_series, line_styles(2)[MEASURED], "measured, each second"),
            (replay.simulated_series, line_styles(2)[SIMULATED], "replayed"),
        ):
            axis.step(
                series["t_s"],
                series[name],
                where="post",
                label=label,
                color=style.color,
                linestyle=style.linestyle,
                linewidth=1.2,
            )
        axis.set(title=f"{name.capitalize()} requests", xlabel="time (s)", ylabel="requests")
        axis.set_xlim(left=0)
        axis.set_ylim(bottom=0)
    _legend(figure, axes[0])
    figure.suptitle(f"{replay.run.title}: measured and replayed", x=0.01, ha="left")
    return _saved(figure, file)


def _pairs(measured: Mapping[str, Any], simulated: Mapping[str, Any], metric: str) -> list[tuple[Any, Any, str]]:
    styles = line_styles(2)
    return [(measured[metric], styles[MEASURED], "measured"), (simulated[metric], styles[SIMULATED], "replayed")]


def _grid(panels: int, columns: int) -> tuple[Figure, list[Axes]]:
    rows = -(-panels // columns)
    figure = new_figure(3.9 * columns, 3.3 * rows)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in axes[panels:]:
        unused.set_axis_off()
    return figure, axes


def _legend(figure: Figure, axis: Axes, markerscale: float = 1.0) -> None:
    """Add one legend for all panels below them."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), markerscale=markerscale)


def _plain_ticks(axis: Axes) -> None:
    for one in (axis.xaxis, axis.yaxis):
        one.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        one.set_major_formatter(ScalarFormatter())
        one.set_minor_formatter(NullFormatter())


def _saved(figure: Figure, file: Path) -> Path:
    figure.savefig(file, metadata={"Software": None})
    return file
