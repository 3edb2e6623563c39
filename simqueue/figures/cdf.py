"""Figures of latency distributions: one line per policy over logarithmic milliseconds, with their tails and SLOs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.figures.canvas import LEVEL, MUTED, WIDTH, Margins, legend_below, new_figure, say_empty, set_margins
from simqueue.figures.style import LineStyle, figure_style, line_styles, literal
from simqueue.figures.ticks import plain_ticks
from simqueue.names import unknown
from simqueue.statistics.gapcurve import thinned
from simqueue.statistics.intervals import student_t

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simqueue.figures.view import ResultView

Floats = NDArray[np.float64]
ITL: Final = "itl_ms"
METRICS: Final = {
    "ttft_ms": "Time to first token (TTFT)",
    "tpot_ms": "Time per output token (TPOT)",
    ITL: "Inter-token latency (ITL)",
    "e2el_ms": "End-to-end latency (E2EL)",
}
_MARGINS: Final = Margins(left=1.5, right=0.2, top=0.55, bottom=0.6, between_columns=0.28, between_rows=0.15)
_BAND_POINTS: Final = 400
_LEVELS: Final = (0.5, 0.1, 0.01, 1e-3, 1e-4)
"""Shares above x at which a tail has ticks: P50, P90, P99, P99.9 and P99.99."""


@dataclass(frozen=True, slots=True)
class _Curve:
    """One policy's distribution of a metric.

    Attributes
    ----------
    policy : str
    x_ms, share : array
        Values in ascending order, and the share of the sample that is not above each.
    n : int
        Size of the sample.
    finished : int
        Number of finished requests after the warm-up, also of those for which the metric is undefined.
    style : LineStyle
    samples_ms : tuple of array
        The sample of each replication, if there are several.
    """

    policy: str
    x_ms: Floats
    share: Floats
    n: int
    finished: int
    style: LineStyle
    samples_ms: tuple[Floats, ...] = ()

    def handle(self, note: str = "") -> Line2D:
        """Return the legend entry, with the number of values and an optional note."""
        label = f"{literal(self.policy)} (n = {self.n:,}{note})"
        return Line2D([], [], linewidth=2, label=label, **self.style.look)


def cdf_axes(result: ResultView, metric: str, ax: Axes | None = None) -> Axes:
    """Draw one metric on `ax`, or on the first axes of a new figure, and return the axes.

    Raises
    ------
    InputError
        If `metric` is not in `METRICS`.
    """
    if ax is None:
        return cdf_figure(result, metric).axes[0]
    curves = _curves(result, metric)
    _draw_body(ax, curves, metric, _limit(result, metric))
    plain_ticks(ax)
    handles = [_own_handle(curve, metric) for curve in curves]
    ax.legend(handles, [str(handle.get_label()) for handle in handles], loc="lower right")
    return ax


def cdf_figure(result: ResultView, metric: str) -> Figure:
    """Return a figure of one metric: its distribution, its tail, and a legend below.

    Raises
    ------
    InputError
        If `metric` is not in `METRICS`.
    """
    curves = _curves(result, metric)
    with figure_style():
        figure = new_figure(WIDTH, 4.0)
        body, tail = figure.subplots(1, 2)
        _draw_column((body, tail), curves, metric, _limit(result, metric), _lowest([curves]))
        for ax in (body, tail):
            plain_ticks(ax)
        legend_below(figure, [_own_handle(curve, metric) for curve in curves])
    return figure


def latency_figure(result: ResultView) -> Figure:
    """Return a figure with a column per metric of `METRICS`: above the distribution, below its tail."""
    columns = {metric: _curves(result, metric) for metric in METRICS}
    lowest = _lowest(list(columns.values()))
    with figure_style():
        figure = new_figure(WIDTH, 5.8)
        axes = figure.subplots(2, len(columns), sharex="col", sharey="row")
        for pair, (metric, curves) in zip(axes.T, columns.items(), strict=True):
            _draw_column(pair, curves, metric, _limit(result, metric), lowest)
        for ax in axes.flat:
            ax.label_outer()
        of_requests = [curves for metric, curves in columns.items() if metric != ITL]
        rows = legend_below(figure, [_shared_handle(*curves) for curves in zip(*of_requests, strict=True)])
        set_margins(figure, _MARGINS, 2, len(columns), rows)
    return figure


def _limit(result: ResultView, metric: str) -> float | None:
    found = result.slo.get(metric)
    return float(found) if isinstance(found, int | float) else None


def _curves(result: ResultView, metric: str) -> list[_Curve]:
    if metric not in METRICS:
        raise InputError(unknown("metric", metric, METRICS))
    styles = line_styles(len(result.policies))
    each = zip(result.policies, styles, strict=True)
    if metric == ITL:
        return [_gaps(result, policy, style) for policy, style in each]
    return [_requests(result, policy, style, metric) for policy, style in each]


def _requests(result: ResultView, policy: str, style: LineStyle, metric: str) -> _Curve:
    """Return the curve of the measured requests for which the metric is defined."""
    table = result.requests
    done = (table["status"] == "finished") & (table["policy"] == policy) & _measured(result, table)
    own = table.loc[done, ["replication", metric]]
    known = own.dropna()
    values = np.sort(known[metric].to_numpy(dtype=np.float64))
    parts = known.groupby("replication", sort=True)[metric] if result.replicated else ()
    samples = tuple(part.to_numpy(dtype=np.float64) for _, part in parts)
    x, last = np.unique(values[::-1], return_index=True)
    share = 1 - last / max(len(values), 1)
    kept = thinned(len(x))
    return _Curve(policy, x[kept], share[kept], len(values), len(own), style, samples)


def _measured(result: ResultView, table: pd.DataFrame) -> NDArray[np.bool_]:
    """Return a mask of the requests that arrived in the window of their run; of all without a warm-up."""
    rows = [row for row in result.replication_rows if row["request_class"] == "all" and row["window"] == "steady"]
    if not rows:
        return np.ones(len(table), dtype=np.bool_)
    found = np.zeros(len(table), dtype=np.bool_)
    for row in rows:
        own = (table["policy"] == row["policy"]) & (table["replication"] == row["replication"])
        end_s = row["warmup_s"] + (row["measured_duration_s"] or 0.0)
        found |= own & (table["arrival_s"] >= row["warmup_s"]) & (table["arrival_s"] <= end_s * (1 + 1e-12))
    return found


def _gaps(result: ResultView, policy: str, style: LineStyle) -> _Curve:
    """Return the curve of all gaps between tokens of a policy."""
    rows = [row for row in result.summary_rows if row["policy"] == policy and row["request_class"] == "all"]
    n = rows[0].get("itl_count") if rows else 0
    x, share = result.gap_curve(policy)
    return _Curve(policy, x, share, n if isinstance(n, int) else 0, 0, style)


def _draw_column(axes: Sequence[Axes], curves: list[_Curve], metric: str, slo_ms: float | None, lowest: float) -> None:
    """Draw a metric's distribution on the first axes and its tail on the second."""
    body, tail = axes
    _draw_body(body, curves, metric, slo_ms)
    _draw_tail(tail, curves, metric, slo_ms, lowest)


def _draw_body(ax: Axes, curves: list[_Curve], metric: str, slo_ms: float | None) -> None:
    for curve in curves:
        if len(curve.x_ms):
            look: dict[str, Any] = curve.style.look | {"linewidth": 2}
            x, share = np.append(curve.x_ms[0], curve.x_ms), np.append(0.0, curve.share)
            ax.plot(x, share, drawstyle="steps-post", **look)
            _draw_band(ax, curve)
            if not curve.x_ms.any():
                ax.axhline(1, **look)  # if all values are 0, no other part of the curve is on the axes
    if not any(len(curve.x_ms) for curve in curves):
        say_empty(ax, _why_empty(curves, metric))
    _set_x(ax, curves, slo_ms)
    if slo_ms is not None:
        _mark_slo(ax, slo_ms)
    # The space below the title is for the label of the SLO, which must not cover a curve.
    ax.set_title(METRICS[metric], pad=22)
    whose = "gaps" if metric == ITL else "finished requests"
    ax.set(xlabel=f"{_short(metric)} (ms)", ylabel=f"share of {whose}", ylim=(0, 1.02))
    ax.yaxis.set_major_formatter(PercentFormatter(1))


def _draw_tail(ax: Axes, curves: list[_Curve], metric: str, slo_ms: float | None, lowest: float) -> None:
    """Draw the share above each value on a logarithmic axis."""
    ax.set_yscale("log", nonpositive="clip")
    for curve in curves:
        if len(curve.x_ms):
            x = np.append(curve.x_ms[0], curve.x_ms)
            above = np.append(1.0, 1 - curve.share)
            above[-1] = 0.0  # rounding must not leave a rest above the largest value
            ax.plot(x, above, drawstyle="steps-post", **curve.style.look | {"linewidth": 2})
    _set_x(ax, curves, slo_ms)
    if slo_ms is not None:
        ax.axvline(slo_ms, zorder=1.5, **LEVEL)
    ax.set(xlabel=f"{_short(metric)} (ms)", ylabel="share above x", ylim=(lowest, 1.3))
    ax.yaxis.set_major_locator(FixedLocator([level for level in _LEVELS if level >= lowest]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}% (P{100 - 100 * share:g})"))
    ax.yaxis.set_minor_locator(NullLocator())


def _lowest(columns: Sequence[Sequence[_Curve]]) -> float:
    """Return the lower end of tails, below the share of a single request, but no lower than 0.01 %."""
    most = max((curve.n for curves in columns for curve in curves), default=0)
    return min(max(0.5 / max(most, 1), 0.9e-4), 0.05)


def _short(metric: str) -> str:
    return metric.removesuffix("_ms").upper()


def _why_empty(curves: Sequence[_Curve], metric: str) -> str:
    if metric == ITL:
        return "no gaps between tokens" if not any(curve.n for curve in curves) else "not saved with the result"
    return "no outputs of two or more tokens" if any(curve.finished for curve in curves) else "no finished requests"


def _draw_band(ax: Axes, curve: _Curve) -> None:
    """Shade the pointwise t-interval of the share over the curves of the replications."""
    samples = [np.sort(sample) for sample in curve.samples_ms if len(sample)]
    if len(samples) < 2:
        return
    grid = np.unique(np.quantile(np.concatenate(samples), np.linspace(0, 1, _BAND_POINTS)))
    shares = np.array([np.searchsorted(sample, grid, side="right") / len(sample) for sample in samples])
    error = shares.std(axis=0, ddof=1) / np.sqrt(len(samples))
    mean, width = shares.mean(axis=0), student_t(len(samples)) * error
    low, high = np.clip(mean - width, 0, 1), np.clip(mean + width, 0, 1)
    ax.fill_between(grid, low, high, color=curve.style.color, alpha=0.2, linewidth=0, step="post")


def _set_x(ax: Axes, curves: list[_Curve], slo_ms: float | None) -> None:
    shown = np.concatenate([*(curve.x_ms for curve in curves), [] if slo_ms is None else [slo_ms]])
    positive = shown[shown > 0]
    low, high = (float(positive.min()), float(positive.max())) if len(positive) else (1.0, 100.0)
    margin = max(1.15, (4 * low / high) ** 0.5)
    # Values of 0 are not on the axis: their line enters at the left edge at its height. The limits are set first,
    # because matplotlib finds none without a positive value.
    ax.set_xlim(low / margin, high * margin)
    ax.set_xscale("log", nonpositive="clip")


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


def _own_handle(curve: _Curve, metric: str) -> Line2D:
    return curve.handle(" gaps" if metric == ITL else "")


def _shared_handle(ttft: _Curve, tpot: _Curve, e2el: _Curve) -> Line2D:
    """Return a policy's entry in a legend for all panels; TPOT can have fewer requests than the other metrics."""
    return ttft.handle("" if tpot.n == e2el.n else f", TPOT {tpot.n:,}")
