"""Figures of latency distributions: one line per policy over logarithmic milliseconds, with SLOs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import seaborn as sns
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.figures.canvas import LEVEL, MUTED, legend_below, new_figure, plain_log_ticks, save, say_empty
from simqueue.figures.style import LineStyle, figure_style, line_styles, literal
from simqueue.names import unknown
from simqueue.statistics.intervals import student_t

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simqueue.figures.view import ResultView

METRICS: Final = {
    "ttft_ms": "Time to first token (TTFT)",
    "tpot_ms": "Time per output token (TPOT)",
    "e2el_ms": "End-to-end latency (E2EL)",
}
_BAND_POINTS: Final = 400


@dataclass(frozen=True, slots=True)
class _Curve:
    """One policy's sample of a metric: the finished requests after the warm-up for which it is defined."""

    policy: str
    values_ms: NDArray[np.float64]
    finished: int
    style: LineStyle
    samples_ms: tuple[NDArray[np.float64], ...] = ()

    def handle(self, note: str = "") -> Line2D:
        """Return the legend entry, with the number of requests and an optional note."""
        label = f"{literal(self.policy)} (n = {len(self.values_ms):,}{note})"
        return Line2D([], [], linewidth=2, label=label, **self.style.look)


def cdf_axes(result: ResultView, metric: str, ax: Axes | None = None) -> Axes:
    """Draw one metric on `ax`, or on the axes of a new figure, and return the axes.

    Raises
    ------
    InputError
        If `metric` is not in `METRICS`.
    """
    if ax is None:
        return cdf_figure(result, metric).axes[0]
    curves = _curves(result, metric)
    _draw(ax, curves, metric, result.slo.get(metric))
    handles = [curve.handle() for curve in curves]
    ax.legend(handles, [str(handle.get_label()) for handle in handles], loc="lower right")
    return ax


def cdf_figure(result: ResultView, metric: str) -> Figure:
    """Return a figure of one metric with its legend below.

    Raises
    ------
    InputError
        If `metric` is not in `METRICS`.
    """
    curves = _curves(result, metric)
    with figure_style():
        figure = new_figure(7.2, 4.2)
        _draw(figure.subplots(), curves, metric, result.slo.get(metric))
        legend_below(figure, [curve.handle() for curve in curves], grow=True)
    return figure


def latency_figure(result: ResultView) -> Figure:
    """Return a figure with one panel per metric of `METRICS` and a common legend below."""
    panels = {metric: _curves(result, metric) for metric in METRICS}
    with figure_style():
        figure = new_figure(15, 4.2)
        axes = figure.subplots(1, len(panels), sharey=True)
        for ax, (metric, curves) in zip(axes, panels.items(), strict=True):
            _draw(ax, curves, metric, result.slo.get(metric))
            ax.label_outer()
        handles = [_shared_handle(*curves) for curves in zip(*panels.values(), strict=True)]
        legend_below(figure, handles, grow=True)
    return figure


def save_figures(result: ResultView, folder: Path) -> list[Path]:
    """Write the figures of all metrics to `folder` as PNG and SVG and return the paths."""
    figures = {f"{metric.removesuffix('_ms')}_cdf": cdf_figure(result, metric) for metric in METRICS}
    figures["latency_cdfs"] = latency_figure(result)
    return [path for name, figure in figures.items() for path in save(figure, folder, name)]


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
            look: dict[str, Any] = curve.style.look | {"linewidth": 2}
            sns.ecdfplot(x=curve.values_ms, ax=ax, **look)
            _draw_band(ax, curve)
            if not curve.values_ms.any():
                ax.axhline(1, **look)  # if all values are 0, no other part of the curve is on the axes
    if not any(len(curve.values_ms) for curve in curves):
        finished = any(curve.finished for curve in curves)
        say_empty(ax, "no outputs of two or more tokens" if finished else "no finished requests")
    _set_x(ax, curves, slo_ms)
    if slo_ms is not None:
        _mark_slo(ax, slo_ms)
    # The space below the title is for the label of the SLO, which must not cover a curve.
    ax.set_title(METRICS[metric], pad=22)
    short = metric.removesuffix("_ms").upper()
    ax.set(xlabel=f"{short} (ms)", ylabel="share of finished requests", ylim=(0, 1.02))
    ax.yaxis.set_major_formatter(PercentFormatter(1))


def _draw_band(ax: Axes, curve: _Curve) -> None:
    """Shade the pointwise t-interval of the share over the curves of the replications."""
    samples = [np.sort(sample) for sample in curve.samples_ms if len(sample)]
    if len(samples) < 2:
        return
    grid = np.unique(np.quantile(curve.values_ms, np.linspace(0, 1, _BAND_POINTS)))
    shares = np.array([np.searchsorted(sample, grid, side="right") / len(sample) for sample in samples])
    error = shares.std(axis=0, ddof=1) / np.sqrt(len(samples))
    mean, width = shares.mean(axis=0), student_t(len(samples)) * error
    low, high = np.clip(mean - width, 0, 1), np.clip(mean + width, 0, 1)
    ax.fill_between(grid, low, high, color=curve.style.color, alpha=0.2, linewidth=0, step="post")


def _set_x(ax: Axes, curves: list[_Curve], slo_ms: float | None) -> None:
    shown = np.concatenate([*(curve.values_ms for curve in curves), [] if slo_ms is None else [slo_ms]])
    positive = shown[shown > 0]
    low, high = (float(positive.min()), float(positive.max())) if len(positive) else (1.0, 100.0)
    margin = max(1.15, (4 * low / high) ** 0.5)
    low, high = low / margin, high * margin
    # Values of 0 are not on the axis: their line enters at the left edge at its height. The limits are set first,
    # because matplotlib finds none without a positive value.
    ax.set_xlim(low, high)
    ax.set_xscale("log", nonpositive="clip")
    decades = np.log10(high / low)
    steps = (1.0,) if decades > 3 else (1.0, 2.0, 5.0) if decades > 1 else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    plain_log_ticks(ax.xaxis, steps)


def _mark_slo(ax: Axes, slo_ms: float) -> None:
    ax.axvline(slo_ms, zorder=1.5, **LEVEL)
    ax.annotate(
        f"SLO {slo_ms:,g} ms",
        xy=(slo_ms, 1),
        xycoords=("data", "axes fraction"),
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize="small",
        color=MUTED,
    )


def _shared_handle(ttft: _Curve, tpot: _Curve, e2el: _Curve) -> Line2D:
    """Return a policy's entry in a legend for all panels; TPOT can have fewer requests than the other metrics."""
    return ttft.handle("" if len(tpot.values_ms) == len(e2el.values_ms) else f", TPOT {len(tpot.values_ms):,}")
