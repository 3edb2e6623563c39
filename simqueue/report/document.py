"""A report as blocks, written out as Markdown or as one self-contained HTML page."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from simqueue.figures.canvas import image, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LARGEST_SVG: Final = 400_000
"""Bytes above which a figure goes into a page as PNG."""
_TEMPLATES: Final = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a section (level 2) or of a part of one (level 3)."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list of lines; `role` says how a page shows it (``warning`` stands out)."""

    lines: tuple[str, ...]
    role: str = ""


@dataclass(frozen=True, slots=True)
class Cells:
    """A table of texts; columns named in `numeric` (by place) are set to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    numeric: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure with the name of its files and what it shows in words."""

    figure: Figure
    name: str
    caption: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text in a fixed width, such as a scenario."""

    text: str
    summary: str = ""


Block = Heading | Paragraph | Items | Cells | Picture | Code


@dataclass(slots=True)
class Document:
    """A title and blocks."""

    title: str
    blocks: list[Block] = field(default_factory=list)

    def add(self, *blocks: Block) -> None:
        """Append blocks."""
        self.blocks += blocks

    @property
    def pictures(self) -> list[Picture]:
        """Its pictures, in order."""
        return [block for block in self.blocks if isinstance(block, Picture)]


def markdown(document: Document, figures: str) -> str:
    """Return the document as Markdown; its pictures are linked as PNG files in the folder `figures`."""
    parts = [f"# {document.title}", *(_markdown(block, figures) for block in document.blocks)]
    return "\n\n".join(parts) + "\n"


def html(document: Document) -> str:
    """Return the document as one HTML page that loads nothing from anywhere; all text is escaped."""
    import jinja2  # noqa: PLC0415 - only pages need it

    loader = jinja2.FileSystemLoader(_TEMPLATES)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["data_uri"] = data_uri
    blocks = [(type(block).__name__, block) for block in document.blocks]
    return environment.get_template("page.html.j2").render(title=document.title, blocks=blocks)


def write_pictures(document: Document, folder: Path) -> list[Path]:
    """Write all pictures as PNG and SVG."""
    return [path for picture in document.pictures for path in save(picture.figure, folder, picture.name)]


def data_uri(figure: Figure) -> str:
    """Return a figure as an address that holds the picture itself; SVG, or PNG where that is smaller."""
    content, kind = image(figure, "svg"), "svg+xml"
    if len(content) > _LARGEST_SVG:
        content, kind = image(figure, "png"), "png"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _markdown(block: Block, figures: str) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {block.text}"
        case Paragraph():
            return block.text
        case Items():
            return "\n".join(f"- {line}" for line in block.lines)
        case Cells():
            return _table(block)
        case Picture():
            return f"![{block.caption}]({figures}/{block.name}.png)\n\n{block.caption}"
        case Code():
            return f"```\n{block.text}\n```"


def _table(table: Cells) -> str:
    marks = ["---:" if place in table.numeric else "---" for place in range(len(table.columns))]
    lines = [_line(table.columns), _line(marks), *(_line(row) for row in table.rows)]
    return "\n".join([*([f"*{table.caption}*", ""] if table.caption else []), *lines])


def _line(cells: Iterable[str] | Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|").replace("\n", " ") for cell in cells) + " |"
