"""Figures over a parameter: latency and throughput over the chunk size or the arrival rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from simqueue.figures.canvas import (
    LEVEL,
    WIDTH,
    legend_below,
    level_label,
    log_y,
    mark_cut,
    new_figure,
    number,
    say_empty,
)
from simqueue.figures.style import LineStyle, figure_style, line_styles, literal
from simqueue.figures.view import ResultView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
RATE_PANELS: Final = {
    "output_throughput": "Output (tokens/s)",
    "p95_ttft_ms": "TTFT p95 (ms)",
    "p95_tpot_ms": "TPOT p95 (ms)",
}
_CHUNK_PANELS: Final = {
    "p95_ttft_ms": "TTFT p95 (ms)",
    "p95_tpot_ms": "TPOT p95 (ms)",
    "output_throughput": "Output (tokens/s)",
}
_DOTS: Final[dict[str, Any]] = {"marker": "o", "markersize": 4}


def chunk_figure(
    results: Mapping[int, ResultView], policy: str, *, sweet_spot_tokens: float | None = None, title: str = ""
) -> Figure:
    """Return TTFT, TPOT and throughput of one policy over its chunk size.

    Parameters
    ----------
    results : mapping of chunk size in tokens to ResultView
    policy : str
    sweet_spot_tokens : float, optional
        The largest chunk that does not lengthen a step, which is marked.
    title : str
        Shown above the panels, for example the model, the GPU and the rate.
    """
    chunks = sorted(results)
    rows = [_row(results[chunk], policy) for chunk in chunks]
    style = line_styles(1)[0]
    with figure_style():
        figure = new_figure(WIDTH, 4)
        axes = figure.subplots(1, len(_CHUNK_PANELS))
        handles = [_handle(policy, style)]
        for ax, (metric, label) in zip(axes, _CHUNK_PANELS.items(), strict=True):
            _metric_line(ax, chunks, rows, metric, style)
            if metric == "p95_ttft_ms" and ax.lines:
                log_y(ax)
                mark_cut(ax, _lower_ends(chunks, rows, metric), style.color)
            if sweet_spot_tokens is not None:
                ax.axvline(sweet_spot_tokens, **LEVEL)
            ax.set(title=label, xlabel="chunk (tokens)")
            if chunks:
                _log_ticks(ax, chunks)
        if sweet_spot_tokens is not None:
            tokens = number(sweet_spot_tokens)
            handles.append(level_label(f"sweet spot: {tokens} tokens, the largest chunk that does not lengthen a step"))
        if title:
            figure.suptitle(literal(title), x=0.01, ha="left", fontsize="medium")
        legend_below(figure, handles)
    return figure


def rate_figure(results: Mapping[float, ResultView]) -> Figure:
    """Return throughput and latency of all policies over the arrival rate in requests per second."""
    rates = sorted(results)
    policies = results[rates[0]].policies if rates else ()
    styles = dict(zip(policies, line_styles(len(policies)), strict=True))
    rows = {name: [_row(results[rate], name) for rate in rates] for name in policies}
    with figure_style():
        figure = new_figure(WIDTH, 4)
        axes = figure.subplots(1, len(RATE_PANELS))
        for ax, (metric, label) in zip(axes, RATE_PANELS.items(), strict=True):
            for name, style in styles.items():
                _metric_line(ax, rates, rows[name], metric, style)
            ax.set(title=label, xlabel="arrival rate (requests/s)")
            if metric != "output_throughput" and ax.lines:
                log_y(ax)
                for name, style in styles.items():
                    mark_cut(ax, _lower_ends(rates, rows[name], metric), style.color)
        legend_below(figure, [_handle(name, style) for name, style in styles.items()])
    return figure


def series_figure(
    x: Sequence[float],
    series: Mapping[str, Sequence[float | None]],
    *,
    xlabel: str,
    ylabel: str,
    title: str,
    threshold: tuple[float, str] | None = None,
    second: float | None = None,
    log: str = "",
) -> Figure:
    """Return lines over a common x axis, with a level to compare them with.

    Parameters
    ----------
    x : sequence of float
    series : mapping of name to values, None if undefined
    xlabel, ylabel, title : str
    threshold : (float, str), optional
        A level and its label.
    second : float, optional
        A second level with the same look; the label describes both.
    log : {"", "x", "y", "xy"}
        The logarithmic axes.
    """
    styles = line_styles(len(series))
    with figure_style():
        figure = new_figure(WIDTH, 4.2)
        ax = figure.subplots()
        for (_, values), style in zip(series.items(), styles, strict=True):
            _line(ax, x, values, style)
        defined = bool(ax.lines)
        handles = [_handle(name, style) for name, style in zip(series, styles, strict=True)]
        if threshold is not None:
            for level in (threshold[0],) if second is None else (threshold[0], second):
                ax.axhline(level, **LEVEL)
            handles.append(level_label(threshold[1]))
        ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
        if "x" in log and len(x):
            _log_ticks(ax, x)
        if "y" in log and defined:
            log_y(ax)
        legend_below(figure, handles)
    return figure


def _row(result: ResultView, policy: str) -> Mapping[str, Any]:
    return next(row for row in result.summary_rows if row["policy"] == policy and row["request_class"] == "all")


def _metric_line(
    ax: Axes, x: Sequence[float], rows: Sequence[Mapping[str, Any]], metric: str, style: LineStyle
) -> None:
    """Draw a metric of the summary, with its intervals if there are any."""
    _line(ax, x, [row.get(metric) for row in rows], style)
    for place, row in zip(x, rows, strict=True):
        low, high = row.get(f"ci_low_{metric}"), row.get(f"ci_high_{metric}")
        if isinstance(low, float) and isinstance(high, float):
            ax.vlines(place, max(low, 1e-9), high, color=style.color, linewidth=1.2)


def _line(ax: Axes, x: Sequence[float], values: Sequence[Any], style: LineStyle) -> None:
    """Draw the defined values."""
    known = [i for i, value in enumerate(values) if value is not None]
    if not known:
        say_empty(ax, "undefined")
        return
    ax.plot([x[i] for i in known], [values[i] for i in known], **_DOTS, **style.look)


def _lower_ends(x: Sequence[float], rows: Sequence[Mapping[str, Any]], metric: str) -> list[tuple[float, float]]:
    ends = zip(x, (row.get(f"ci_low_{metric}") for row in rows), strict=True)
    return [(place, low) for place, low in ends if isinstance(low, float)]


def _log_ticks(ax: Axes, x: Sequence[float]) -> None:
    """Make the x axis logarithmic, with ticks at the given values."""
    ax.set_xscale("log")
    most = 9
    shown = list(x)[:: -(-len(x) // most)]
    ax.set_xticks(shown, [number(value) for value in shown])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.minorticks_off()


def _handle(name: str, style: LineStyle) -> Line2D:
    return Line2D([], [], label=literal(name), **_DOTS, **style.look)
