"""The style of figures: colours for the colour-blind, and dashes that differ in black and white."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

import matplotlib.style
from matplotlib.colors import to_rgb
from matplotlib.font_manager import findfont, get_font

from simqueue.printable import printable_lines

PALETTE: Final = (
    "#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#ca9161", "#fbafe4", "#949494", "#ece133", "#56b4e9",
)  # fmt: skip
"""seaborn's palette "colorblind". It is written down here because loading seaborn takes longer than a small run."""

_SETTINGS: Final[dict[str, Any]] = {
    # the style "whitegrid" and the context "notebook" of seaborn, with a font scale of 0.9
    "axes.axisbelow": True,
    "axes.edgecolor": "0.4",
    "axes.grid": True,
    "axes.labelcolor": "0.15",
    "axes.labelsize": 10.8,
    "axes.linewidth": 1.25,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.8,
    "figure.titlesize": 10.8,
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],  # part of matplotlib, so that figures are the same on every machine
    "font.size": 10.8,
    "grid.color": "0.88",
    "grid.linewidth": 1,
    "legend.fontsize": 9.9,
    "legend.frameon": False,
    "legend.handlelength": 3.6,  # long enough to show every dash pattern
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "w",
    "patch.force_edgecolor": True,
    "savefig.dpi": 150,
    "svg.hashsalt": "simqueue",  # without it, element ids are random
    "text.color": "0.15",
    "xtick.bottom": False,
    "xtick.color": "0.15",
    "xtick.labelsize": 9.9,
    "ytick.color": "0.15",
    "ytick.labelsize": 9.9,
    "ytick.left": False,
}

_NO_GLYPH: Final = "\N{WHITE SQUARE}"

_YELLOW: Final = 8
"""Index in the palette of the colour that is too pale for a line on white."""

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
    palette = [to_rgb(color) for i, color in enumerate(PALETTE) if i != _YELLOW]
    return [LineStyle(palette[i % len(palette)], _DASHES[i % len(_DASHES)]) for i in range(n)]


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw and save with this package's settings instead of the user's."""
    with matplotlib.style.context(["default", _SETTINGS]):
        yield


def drawable(text: str) -> str:
    """Return `text` as the font of the figures can draw it: a square for each sign that it does not have."""
    plain = printable_lines(text)
    return plain if plain.isascii() else "".join(one if one == "\n" or _has_glyph(one) else _NO_GLYPH for one in plain)


@cache
def _has_glyph(sign: str) -> bool:
    return get_font(findfont(_SETTINGS["font.sans-serif"][0])).get_char_index(ord(sign)) != 0


def literal(text: str) -> str:
    """Return `text` with its dollar signs escaped, so that matplotlib shows it unchanged."""
    return text.replace("$", r"\$")
