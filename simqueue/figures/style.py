"""The style of figures: colours for the colour-blind, and dashes that differ in black and white."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

import matplotlib.style
import seaborn as sns

_SETTINGS: Final[dict[str, Any]] = {
    **sns.axes_style("whitegrid"),
    **sns.plotting_context("notebook", font_scale=0.9),
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],  # part of matplotlib, so that figures are the same on every machine
    "axes.edgecolor": "0.4",
    "axes.titlelocation": "left",
    "grid.color": "0.88",
    "legend.frameon": False,
    "legend.handlelength": 3.6,  # long enough to show every dash pattern
    "savefig.dpi": 150,
    "svg.hashsalt": "simqueue",  # without it, element ids are random
}

_YELLOW: Final = 8
"""Index in seaborn's palette of the colour that is too pale for a line on white."""

_DASHES: Final[tuple[tuple[float, ...], ...]] = (
    (),
    (5, 2),
    (1.2, 1.2),
    (6, 1.5, 1.5, 1.5),
    (9, 2.5),
    (4, 1.2, 1.2, 1.2, 1.2, 1.2),
    (2.5, 1),
)


@dataclass(frozen=True, slots=True)
class LineStyle:
    """Colour and dashes of one policy's line."""

    color: tuple[float, float, float]
    dashes: tuple[float, ...]

    @property
    def linestyle(self) -> tuple[float, tuple[float, ...]] | Literal["-"]:
        """The dashes in matplotlib's form."""
        return (0, self.dashes) if self.dashes else "-"

    @property
    def look(self) -> dict[str, Any]:
        """Colour and dashes as keyword arguments of matplotlib's lines."""
        return {"color": self.color, "linestyle": self.linestyle}


def line_styles(n: int) -> list[LineStyle]:
    """Return `n` styles. The first 63 differ; the first 7 differ in their dashes alone."""
    palette = [color for i, color in enumerate(sns.color_palette("colorblind")) if i != _YELLOW]
    return [LineStyle(tuple(palette[i % len(palette)]), _DASHES[i % len(_DASHES)]) for i in range(n)]


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw and save with this package's settings instead of the user's."""
    with matplotlib.style.context(["default", _SETTINGS]):
        yield


def literal(text: str) -> str:
    """Return `text` with its dollar signs escaped, so that matplotlib shows it unchanged."""
    return text.replace("$", r"\$")
