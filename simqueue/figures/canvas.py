"""The base of all figures: a canvas without a window, legends outside the axes, axis ticks, reproducible files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from simqueue.figures.style import figure_style
from simqueue.outputs import Place, reserved_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

KINDS: Final = ("png", "svg")
MUTED: Final = "0.35"
LEVEL: Final[dict[str, Any]] = {"color": MUTED, "linestyle": (0, (4, 3)), "linewidth": 1.2}
"""The look of lines that mark a level, such as an SLO or a budget."""
# The size of an entry of a legend, and of its letters, in the font of `figure_style`.
_HANDLE_INCHES: Final = 0.85
_LETTER_INCHES: Final = 0.08
_ROW_INCHES: Final = 0.22


def new_figure(width: float = 7.2, height: float = 4.2) -> Figure:
    """Return an empty figure of this size in inches. Use it within `figure_style`."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def legend_below(figure: Figure, handles: Sequence[Any], *, grow: bool = False) -> None:
    """Add a legend of the handles' labels below the axes, in as many columns as fit; without handles there is none.

    Parameters
    ----------
    figure : Figure
    handles : sequence of matplotlib artists
    grow : bool
        Whether the figure becomes higher by the height of the legend, so that the axes keep their size.
    """
    if not handles:
        return
    labels = [str(handle.get_label()) for handle in handles]
    width, height = figure.get_size_inches()
    columns = max(1, min(len(labels), int(width / (_HANDLE_INCHES + _LETTER_INCHES * max(map(len, labels))))))
    if grow:
        figure.set_size_inches(width, height + _ROW_INCHES * -(-len(labels) // columns))
    figure.legend(list(handles), labels, loc="outside lower center", ncols=columns)


def level_label(label: str) -> Line2D:
    """Return the legend entry of a line that marks a level."""
    return Line2D([], [], label=label, **LEVEL)


def say_empty(ax: Axes, why: str) -> None:
    """Write in the middle of the axes why they show nothing."""
    ground = {"facecolor": "white", "edgecolor": "none"}
    ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=MUTED, bbox=ground)


def number(value: float) -> str:
    """Return a number as text for an axis or a label, with three significant digits below 1,000."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def plain_log_y(ax: Axes) -> None:
    """Make the y axis logarithmic, with ticks in plain numbers.

    Precondition: a line with a positive value has been drawn.
    """
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in ax.lines])
    least = float(np.min(drawn[drawn > 0]))
    ax.set_yscale("log", nonpositive="clip")
    low, high = max(ax.get_ylim()[0], 0.6 * least), ax.get_ylim()[1]  # an interval can reach below 0
    ax.set_ylim(low, high)
    steps = (1.0,) if high > 300 * low else (1.0, 2.0, 5.0) if high > 8 * low else tuple(map(float, range(1, 10)))
    plain_log_ticks(ax.yaxis, steps)


def plain_log_ticks(axis: Axis, steps: Sequence[float]) -> None:
    """Set the ticks of a logarithmic axis to these multiples of powers of ten, in plain numbers."""
    axis.set_major_locator(LogLocator(subs=steps, numticks=15))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_formatter(NullFormatter())


def mark_cut(ax: Axes, ends: Sequence[tuple[float, float]], color: object) -> None:
    """Draw an arrow at the bottom of the axes for each interval, given as (x, lower end), that reaches below them."""
    bottom = ax.get_ylim()[0]
    cut = [x for x, low in ends if low < bottom]
    if cut:
        ax.plot(cut, [bottom] * len(cut), linestyle="none", marker=7, markersize=7, color=color, clip_on=False)
        ax.set_ylim(bottom=bottom)


def image(figure: Figure, kind: str) -> bytes:
    """Return the figure as ``png`` or ``svg``; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    with figure_style():
        figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def write(figure: Figure, path: Path | Place) -> None:
    """Write the figure to a file that ends in ``.png`` or ``.svg``; a missing folder is created.

    Parameters
    ----------
    figure : Figure
    path : Path or Place
        A file, or one that is reserved already.

    Raises
    ------
    InputError
        If the file cannot be written.
    RunError
        If writing fails; an earlier file is then unchanged.
    """
    with reserved_file(path) as place:
        place.write_bytes(image(figure, place.path.suffix.removeprefix(".")))


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``name.png`` and ``name.svg`` to `folder` and return the paths; a missing folder is created.

    It is for a folder that is written as a whole: earlier files are overwritten, and an OSError is raised as it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.{kind}" for kind in KINDS]
    for path, kind in zip(written, KINDS, strict=True):
        path.write_bytes(image(figure, kind))
    return written
