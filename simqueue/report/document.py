"""The blocks of a report; `simqueue.report.markdown` and `simqueue.report.html` write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from simqueue.figures.canvas import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a section (level 2) or a subsection (level 3)."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list of lines. A page highlights the role ``warning``."""

    lines: tuple[str, ...]
    role: str = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms and their texts; with a summary, a page shows them on request."""

    texts: Mapping[str, str]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Cells:
    """A table of texts.

    Attributes
    ----------
    columns : tuple of str
    rows : tuple of tuple of str
    caption : str
    numeric : tuple of int
        Indices of the right-aligned columns.
    sections : mapping of int to str
        Index of the first row of each section, and the title of the section.
    best : frozenset of (int, int)
        Row and column of each cell that is emphasized.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    numeric: tuple[int, ...] = ()
    sections: Mapping[int, str] = field(default_factory=dict)
    best: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure, the name of its files without suffix, and its caption."""

    figure: Figure
    name: str
    caption: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text in a monospaced font, such as a scenario."""

    text: str
    summary: str = ""


Block = Heading | Paragraph | Items | Terms | Cells | Picture | Code


@dataclass(slots=True)
class Document:
    """A report: a title and blocks."""

    title: str
    blocks: list[Block] = field(default_factory=list)

    def add(self, *blocks: Block) -> None:
        """Append blocks."""
        self.blocks += blocks

    @property
    def pictures(self) -> list[Picture]:
        """The pictures, in order."""
        return [block for block in self.blocks if isinstance(block, Picture)]


def write_pictures(document: Document, folder: Path) -> list[Path]:
    """Write all pictures to a folder as PNG and SVG and return the paths."""
    return [path for picture in document.pictures for path in save(picture.figure, folder, picture.name)]
