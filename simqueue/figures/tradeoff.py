"""Figures of a knob: TTFT and TPOT over the chunk size, throughput and latency over the arrival rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from simqueue.figures.canvas import MUTED, legend_below, new_figure, number, plain_log_y, say_empty
from simqueue.figures.regions import mark_cut
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


def chunk_figure(
    results: Mapping[int, ResultView], policy: str, *, sweet_spot_tokens: float | None = None, title: str = ""
) -> Figure:
    """Return TTFT, TPOT and throughput of one policy over its chunk size.

    Parameters
    ----------
    results : mapping of chunk size in tokens to Result
    policy : str
    sweet_spot_tokens : float, optional
        The chunk that fills a step up to the point where it begins to take longer; marked where it is given.
    title : str
        What was run: the model, the GPU, the rate. Above the panels.
    """
    chunks = sorted(results)
    rows = [_row(results[chunk], policy) for chunk in chunks]
    style = line_styles(1)[0]
    with figure_style():
        figure = new_figure(12, 4)
        axes = figure.subplots(1, len(_CHUNK_PANELS))
        handles: list[Line2D] = [Line2D([], [], color=style.color, marker="o", markersize=4, label=literal(policy))]
        for ax, (metric, label) in zip(axes, _CHUNK_PANELS.items(), strict=True):
            _line(ax, chunks, [row.get(metric) for row in rows], rows, metric, style)
            if metric == "p95_ttft_ms" and ax.lines:
                plain_log_y(ax)
                mark_cut(ax, _lower_ends(chunks, rows, metric), style.color)
            if sweet_spot_tokens is not None:
                ax.axvline(sweet_spot_tokens, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2)
            ax.set(title=label, xlabel="chunk (tokens)")
            if chunks:
                _log_ticks(ax, chunks)
        if sweet_spot_tokens is not None:
            label = f"sweet spot: {number(sweet_spot_tokens)} tokens, the step is not lengthened"
            handles.append(Line2D([], [], color=MUTED, linestyle=(0, (4, 3)), label=label))
        if title:
            figure.suptitle(literal(title), x=0.01, ha="left", fontsize="medium")
        legend_below(figure, handles)
    return figure


def rate_figure(results: Mapping[float, ResultView]) -> Figure:
    """Return throughput and latency of every policy over the arrival rate in requests per second."""
    rates = sorted(results)
    policies = results[rates[0]].policies if rates else ()
    styles = line_styles(len(policies))
    with figure_style():
        figure = new_figure(13, 4)
        axes = figure.subplots(1, len(RATE_PANELS))
        for ax, (metric, label) in zip(axes, RATE_PANELS.items(), strict=True):
            for name, style in zip(policies, styles, strict=True):
                rows = [_row(results[rate], name) for rate in rates]
                _line(ax, rates, [row.get(metric) for row in rows], rows, metric, style)
            ax.set(title=label, xlabel="arrival rate (requests/s)")
            if metric != "output_throughput" and ax.lines:
                plain_log_y(ax)
                for name, style in zip(policies, styles, strict=True):
                    own = [_row(results[rate], name) for rate in rates]
                    mark_cut(ax, _lower_ends(rates, own, metric), style.color)
        legend_below(figure, [_handle(name, style) for name, style in zip(policies, styles, strict=True)])
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
    """Return lines over a common axis, with a level that a claim speaks of.

    Parameters
    ----------
    x : sequence of float
    series : mapping of name to values, None where undefined
    xlabel, ylabel, title : str
    threshold : (float, str), optional
        A level and what it is.
    second : float, optional
        Another level, drawn like the first, whose words speak of both.
    log : str
        Which axes are logarithmic: any of "x", "y", "xy", "".
    """
    styles = line_styles(len(series))
    with figure_style():
        figure = new_figure(8, 4.2)
        ax = figure.subplots()
        for (_, values), style in zip(series.items(), styles, strict=True):
            _line(ax, x, values, [], "", style)
        handles = [_handle(name, style) for name, style in zip(series, styles, strict=True)]
        if threshold is not None:
            for level in (threshold[0],) if second is None else (threshold[0], second):
                ax.axhline(level, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2)
            handles.append(Line2D([], [], color=MUTED, linestyle=(0, (4, 3)), label=threshold[1]))
        ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
        if "x" in log and len(x):
            _log_ticks(ax, x)
        if "y" in log and any(value is not None for values in series.values() for value in values):
            plain_log_y(ax)
        legend_below(figure, handles)
    return figure


def _row(result: ResultView, policy: str) -> Mapping[str, Any]:
    return next(row for row in result.summary_rows if row["policy"] == policy and row["request_class"] == "all")


def _line(
    ax: Axes,
    x: Sequence[float],
    values: Sequence[Any],
    rows: Sequence[Mapping[str, Any]],
    metric: str,
    style: LineStyle,
) -> None:
    """Draw known values, with their intervals where there are any."""
    known = [i for i, value in enumerate(values) if value is not None]
    if not known:
        say_empty(ax, "undefined")
        return
    look: dict[str, Any] = {"color": style.color, "linestyle": style.linestyle, "marker": "o", "markersize": 4}
    ax.plot([x[i] for i in known], [values[i] for i in known], **look)
    for i in known:
        low = rows[i].get(f"ci_low_{metric}") if rows else None
        high = rows[i].get(f"ci_high_{metric}") if rows else None
        if isinstance(low, float) and isinstance(high, float):
            ax.vlines(x[i], max(low, 1e-9), high, color=style.color, linewidth=1.2)


def _lower_ends(x: Sequence[float], rows: Sequence[Mapping[str, Any]], metric: str) -> list[tuple[float, float]]:
    ends = zip(x, (row.get(f"ci_low_{metric}") for row in rows), strict=True)
    return [(place, low) for place, low in ends if isinstance(low, float)]


def _log_ticks(ax: Axes, x: Sequence[float]) -> None:
    """Put the ticks of a logarithmic axis at the values that were tried."""
    ax.set_xscale("log")
    most = 9
    shown = list(x)[:: -(-len(x) // most)]
    ax.set_xticks(shown, [number(value) for value in shown])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.minorticks_off()


def _handle(name: str, style: LineStyle) -> Line2D:
    look: dict[str, Any] = {"color": style.color, "linestyle": style.linestyle, "marker": "o", "markersize": 4}
    return Line2D([], [], label=literal(name), **look)
