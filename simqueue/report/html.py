"""Writes a document as one HTML page without external resources."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jinja2

from simqueue.figures.canvas import image
from simqueue.printable import printable_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simqueue.report.document import Document

_LARGEST_SVG: Final = 400_000
"""Size in bytes above which a figure is embedded as PNG."""
_TEMPLATES: Final = Path(__file__).parent / "templates"


def html(document: Document) -> str:
    """Return the document as one HTML page. The page loads nothing, and all text is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["data_uri"] = data_uri
    blocks = [(type(block).__name__, block) for block in document.blocks]
    return environment.get_template("page.html.j2").render(title=document.title, blocks=blocks)


def _printed(value: Any) -> Any:
    """Return text of the page without control characters; what is markup already is left alone."""
    return printable_lines(value) if type(value) is str else value


def data_uri(figure: Figure) -> str:
    """Return a figure as a data URI: as SVG, or as PNG if the SVG is too large."""
    content, kind = image(figure, "svg"), "svg+xml"
    if len(content) > _LARGEST_SVG:
        content, kind = image(figure, "png"), "png"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
