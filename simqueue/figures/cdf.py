"""Figures of latency distributions: one line a policy, logarithmic milliseconds, SLOs marked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import seaborn as sns
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.figures.style import LineStyle, figure_style, line_styles, literal
from simqueue.names import unknown
from simqueue.statistics.intervals import student_t

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from simqueue.figures.view import ResultView

METRICS: Final = {
    "ttft_ms": "Time to first token (TTFT)",
    "tpot_ms": "Time per output token (TPOT)",
    "e2el_ms": "End-to-end latency (E2EL)",
}
_BAND_POINTS: Final = 400
_SLO_COLOR: Final = "0.25"
# Room that a legend takes in the font of `figure_style`.
_HANDLE_INCHES: Final = 0.8
_LETTER_INCHES: Final = 0.076
_ROW_INCHES: Final = 0.22


@dataclass(frozen=True, slots=True)
class _Curve:
    """One policy's sample of a metric: finished requests after the warm-up for which it is defined."""

    policy: str
    values_ms: NDArray[np.float64]
    finished: int
    style: LineStyle
    samples_ms: tuple[NDArray[np.float64], ...] = ()


def cdf_axes(result: ResultView, metric: str, ax: Axes | None = None) -> Axes:
    """Draw one metric onto `ax`, or onto the axes of a new figure, and return the axes.

    Raises InputError if `metric` is not one of `METRICS`.
    """
    if ax is None:
        return cdf_figure(result, metric).axes[0]
    curves = _curves(result, metric)
    _draw(ax, curves, metric, result.slo.get(metric))
    ax.legend(_handles(curves), _labels(curves), loc="lower right")
    return ax


def cdf_figure(result: ResultView, metric: str) -> Figure:
    """Return a figure of one metric, its legend below.

    Raises InputError if `metric` is not one of `METRICS`.
    """
    curves = _curves(result, metric)
    with figure_style():
        figure = _figure(7.2, 4.2)
        _draw(figure.subplots(), curves, metric, result.slo.get(metric))
        _legend_below(figure, curves, _labels(curves))
    return figure


def latency_figure(result: ResultView) -> Figure:
    """Return one figure with a panel for each of `METRICS` and a common legend below."""
    panels = {metric: _curves(result, metric) for metric in METRICS}
    first = next(iter(panels.values()))
    with figure_style():
        figure = _figure(15, 4.2)
        axes = figure.subplots(1, len(panels), sharey=True)
        for ax, (metric, curves) in zip(axes, panels.items(), strict=True):
            _draw(ax, curves, metric, result.slo.get(metric))
            ax.label_outer()
        labels = [_shared_label(*same) for same in zip(*panels.values(), strict=True)]
        _legend_below(figure, first, labels)
    return figure


def save_figures(result: ResultView, folder: Path) -> list[Path]:
    """Write every figure to `folder` as PNG and SVG and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {f"{metric.removesuffix('_ms')}_cdf": cdf_figure(result, metric) for metric in METRICS}
    figures["latency_cdfs"] = latency_figure(result)
    written = []
    for name, figure in figures.items():
        for kind, metadata in (("png", None), ("svg", {"Date": None})):
            path = folder / f"{name}.{kind}"
            with figure_style():
                figure.savefig(path, metadata=metadata)
            written.append(path)
    return written


def _curves(result: ResultView, metric: str) -> list[_Curve]:
    if metric not in METRICS:
        raise InputError(unknown("metric", metric, METRICS))
    table = result.requests
    done = table[(table["status"] == "finished") & (table["arrival_s"] >= result.warmup_s)]
    styles = line_styles(len(result.policies))
    found = []
    for policy, style in zip(result.policies, styles, strict=True):
        own = done.loc[done["policy"] == policy, ["replication", metric]]
        values = own[metric].to_numpy(dtype=np.float64)
        known = own.dropna().groupby("replication", sort=True)[metric]
        samples = tuple(part.to_numpy(dtype=np.float64) for _, part in known) if result.replicated else ()
        found.append(_Curve(policy, values[~np.isnan(values)], len(values), style, samples))
    return found


def _draw(ax: Axes, curves: list[_Curve], metric: str, slo_ms: float | None) -> None:
    for curve in curves:
        if len(curve.values_ms):
            look: dict[str, Any] = {"color": curve.style.color, "linestyle": curve.style.linestyle, "linewidth": 2}
            sns.ecdfplot(x=curve.values_ms, ax=ax, **look)
            _draw_band(ax, curve)
            if not curve.values_ms.any():
                ax.axhline(1, **look)  # where every value is 0, nothing of the curve but this is on the axis
    if not any(len(curve.values_ms) for curve in curves):
        _say_why_empty(ax, curves)
    _set_x(ax, curves, slo_ms)
    if slo_ms is not None:
        _mark_slo(ax, slo_ms)
    # The title leaves a line for the label of the SLO, which must not lie on a curve.
    ax.set_title(METRICS[metric], pad=22)
    short = metric.removesuffix("_ms").upper()
    ax.set(xlabel=f"{short} in ms", ylabel="share of finished requests", ylim=(0, 1.02))
    ax.yaxis.set_major_formatter(PercentFormatter(1))


def _draw_band(ax: Axes, curve: _Curve) -> None:
    """Shade, point by point, the t-interval of the share over the replications' own curves."""
    samples = [np.sort(sample) for sample in curve.samples_ms if len(sample)]
    if len(samples) < 2:
        return
    grid = np.unique(np.quantile(curve.values_ms, np.linspace(0, 1, _BAND_POINTS)))
    shares = np.array([np.searchsorted(sample, grid, side="right") / len(sample) for sample in samples])
    error = shares.std(axis=0, ddof=1) / np.sqrt(len(samples))
    mean, width = shares.mean(axis=0), student_t(len(samples)) * error
    low, high = np.clip(mean - width, 0, 1), np.clip(mean + width, 0, 1)
    ax.fill_between(grid, low, high, color=curve.style.color, alpha=0.2, linewidth=0, step="post")


def _say_why_empty(ax: Axes, curves: list[_Curve]) -> None:
    why = "no output of two tokens or more" if any(c.finished for c in curves) else "no finished requests"
    ax.text(
        0.5,
        0.5,
        why,
        transform=ax.transAxes,
        ha="center",
        va="center",
        color="0.4",
        bbox={"facecolor": "white", "edgecolor": "none"},
    )


def _set_x(ax: Axes, curves: list[_Curve], slo_ms: float | None) -> None:
    shown = np.concatenate([*(curve.values_ms for curve in curves), [] if slo_ms is None else [slo_ms]])
    positive = shown[shown > 0]
    low, high = (float(positive.min()), float(positive.max())) if len(positive) else (1.0, 100.0)
    margin = max(1.15, (4 * low / high) ** 0.5)
    low, high = low / margin, high * margin
    # A value of 0 has no place on the axis: its line comes in from the left edge at its height. The limits come
    # first, for matplotlib cannot find any where no value is positive.
    ax.set_xlim(low, high)
    ax.set_xscale("log", nonpositive="clip")
    decades = np.log10(high / low)
    steps = (1.0,) if decades > 3 else (1.0, 2.0, 5.0) if decades > 1 else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    ax.xaxis.set_major_locator(LogLocator(subs=steps, numticks=15))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _number(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _mark_slo(ax: Axes, slo_ms: float) -> None:
    ax.axvline(slo_ms, color=_SLO_COLOR, linewidth=1.3, linestyle=(0, (4, 3)), zorder=1.5)
    ax.annotate(
        f"SLO {_number(slo_ms)} ms",
        xy=(slo_ms, 1),
        xycoords=("data", "axes fraction"),
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize="small",
        color=_SLO_COLOR,
    )


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _legend_below(figure: Figure, curves: list[_Curve], labels: list[str]) -> None:
    """Add a legend in as many columns as fit, and make the figure that much higher."""
    longest = max(map(len, labels), default=1)
    width, height = figure.get_size_inches()
    columns = max(1, min(len(labels), int(width / (_HANDLE_INCHES + _LETTER_INCHES * longest))))
    rows = -(-len(labels) // columns)
    figure.set_size_inches(width, height + _ROW_INCHES * rows)
    figure.legend(_handles(curves), labels, loc="outside lower center", ncols=columns)


def _handles(curves: list[_Curve]) -> list[Line2D]:
    return [Line2D([], [], linewidth=2, color=c.style.color, linestyle=c.style.linestyle) for c in curves]


def _labels(curves: list[_Curve]) -> list[str]:
    return [f"{literal(curve.policy)} (n = {len(curve.values_ms):,})" for curve in curves]


def _shared_label(ttft: _Curve, tpot: _Curve, e2el: _Curve) -> str:
    """Label a policy in a legend common to all panels; TPOT may have fewer requests than the others."""
    note = "" if len(tpot.values_ms) == len(e2el.values_ms) else f", TPOT {len(tpot.values_ms):,}"
    return f"{literal(ttft.policy)} (n = {len(ttft.values_ms):,}{note})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"
