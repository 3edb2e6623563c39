"""The base of all figures: a canvas without a window, legends outside the axes, reproducible files."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from simqueue.figures.style import drawable, figure_style
from simqueue.figures.ticks import plain_ticks
from simqueue.outputs import Place, reserved_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

KINDS: Final = ("png", "svg")
WIDTH: Final = 11.5
"""Width of figures in inches: that of the text of a page, so that letters have the same size in all figures."""
MUTED: Final = "0.35"
LEVEL: Final[dict[str, Any]] = {"color": MUTED, "linestyle": (0, (4, 3)), "linewidth": 1.2}
"""The look of lines that mark a level, such as an SLO or a budget."""
# The size of an entry of a legend, and of its letters, in the font of `figure_style`.
_HANDLE_INCHES: Final = 0.85
_LETTER_INCHES: Final = 0.08
_ROW_INCHES: Final = 0.22


@dataclass(frozen=True, slots=True)
class Margins:
    """Space in inches around and between axes, without that of a legend."""

    left: float
    right: float
    top: float
    bottom: float
    between_columns: float = 0.0
    between_rows: float = 0.0


def new_figure(width: float = WIDTH, height: float = 4.2) -> Figure:
    """Return an empty figure of this size in inches, whose axes leave space for all texts. Use it in `figure_style`."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def set_margins(figure: Figure, margins: Margins, rows: int, columns: int, legend_rows: int) -> None:
    """Lay out a grid of axes with fixed margins, which saves most of the time of a layout that measures all texts."""
    figure.set_layout_engine(None)
    width, height = figure.get_size_inches()
    bottom = margins.bottom + _ROW_INCHES * legend_rows
    wide = (width - margins.left - margins.right - (columns - 1) * margins.between_columns) / columns
    high = (height - margins.top - bottom - (rows - 1) * margins.between_rows) / rows
    figure.subplots_adjust(
        left=margins.left / width,
        right=1 - margins.right / width,
        top=1 - margins.top / height,
        bottom=bottom / height,
        wspace=margins.between_columns / wide,
        hspace=margins.between_rows / high,
    )


def legend_below(figure: Figure, handles: Sequence[Any]) -> int:
    """Add a legend of the handles' labels below the axes, and return its rows; without handles there is none.

    Its rows are as few as fit and as equal as possible. The figure becomes higher by them, so that the axes keep their
    size.
    """
    if not handles:
        return 0
    labels = [str(handle.get_label()) for handle in handles]
    width, height = figure.get_size_inches()
    most = max(1, int(width / (_HANDLE_INCHES + _LETTER_INCHES * max(map(len, labels)))))
    rows = -(-len(labels) // most)
    columns = -(-len(labels) // rows)
    figure.set_size_inches(width, height + _ROW_INCHES * rows)
    figure.legend(list(handles), labels, loc="outside lower center", ncols=columns)
    return rows


def level_label(label: str) -> Line2D:
    """Return the legend entry of a line that marks a level."""
    return Line2D([], [], label=label, **LEVEL)


def say_empty(ax: Axes, why: str) -> None:
    """Write in the middle of the axes why they show nothing."""
    ground = {"facecolor": "white", "edgecolor": "none"}
    ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=MUTED, bbox=ground)


def number(value: float) -> str:
    """Return a number as text for a label, with three significant digits below 1,000."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def log_y(*axes: Axes) -> None:
    """Make the y axes logarithmic, all from below the smallest positive value that a line has, if there is one."""
    lines = [np.asarray(line.get_ydata(), dtype=np.float64) for ax in axes for line in ax.lines]
    drawn = np.concatenate([np.zeros(0), *lines])
    positive = drawn[drawn > 0]
    if not len(positive):
        return
    low = max(axes[0].get_ylim()[0], 0.6 * float(positive.min()))
    high = max(1.15 * float(positive.max()), *(ax.get_ylim()[1] for ax in axes))
    for ax in axes:  # the limits are chosen first: an interval can reach below 0
        ax.set_yscale("log", nonpositive="clip")
        ax.set_ylim(low, high)


def mark_cut(ax: Axes, ends: Sequence[tuple[float, float]], color: object) -> None:
    """Draw an arrow at the bottom of the axes for each interval, given as (x, lower end), that reaches below them."""
    bottom = ax.get_ylim()[0]
    cut = [x for x, low in ends if low < bottom]
    if cut:
        ax.plot(cut, [bottom] * len(cut), linestyle="none", marker=7, markersize=7, color=color, clip_on=False)
        ax.set_ylim(bottom=bottom)


def image(figure: Figure, kind: str) -> bytes:
    """Return the figure as ``png`` or ``svg``; the same figure gives the same bytes.

    The layout is computed once and then kept, because it takes longer than drawing.
    """
    with figure_style():
        settle(figure)
        return _rendered(figure, kind)


def settle(figure: Figure) -> None:
    """Choose the ticks of a figure and the places of its axes."""
    for ax in figure.axes:
        plain_ticks(ax)
    for text in figure.findobj(Text):
        if (shown := drawable(text.get_text())) != text.get_text():
            text.set_text(shown)
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)


def _rendered(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
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
