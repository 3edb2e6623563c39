"""What all figures share: a canvas without a window, legends outside the axes, files that are the same every time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from simqueue.figures.style import figure_style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

KINDS = ("png", "svg")
MUTED = "0.35"
# Room that an entry of a legend takes in the font of `figure_style`.
_HANDLE_INCHES = 0.85
_LETTER_INCHES = 0.08


def new_figure(width: float = 7.2, height: float = 4.2) -> Figure:
    """Return an empty figure of this size in inches. Call it, and draw, inside `figure_style`."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def legend_below(figure: Figure, handles: Sequence[Any]) -> None:
    """Add a legend under the axes, where it covers nothing, in as many columns as fit; none without handles."""
    if handles:
        longest = max(len(str(handle.get_label())) for handle in handles)
        fit = int(figure.get_figwidth() / (_HANDLE_INCHES + _LETTER_INCHES * longest))
        figure.legend(handles=list(handles), loc="outside lower center", ncols=max(1, min(fit, len(handles))))


def say_empty(ax: Axes, why: str) -> None:
    """Write in the middle of axes why they show nothing."""
    ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=MUTED)


def number(value: float) -> str:
    """Return a number for an axis or a label."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def plain_log_y(ax: Axes) -> None:
    """Make the y axis logarithmic, with numbers as people write them. Precondition: something positive is drawn."""
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in ax.lines])
    least = float(np.min(drawn[drawn > 0]))
    ax.set_yscale("log", nonpositive="clip")
    low, high = max(ax.get_ylim()[0], 0.6 * least), ax.get_ylim()[1]  # an interval may reach below 0
    ax.set_ylim(low, high)
    steps = (1.0,) if high > 300 * low else (1.0, 2.0, 5.0) if high > 8 * low else tuple(map(float, range(1, 10)))
    ax.yaxis.set_major_locator(LogLocator(subs=steps, numticks=15))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    ax.yaxis.set_minor_formatter(NullFormatter())


def image(figure: Figure, kind: str) -> bytes:
    """Return the figure as ``png`` or ``svg``; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    with figure_style():
        figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``name.png`` and ``name.svg`` to `folder` and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.{kind}" for kind in KINDS]
    for path, kind in zip(written, KINDS, strict=True):
        path.write_bytes(image(figure, kind))
    return written
