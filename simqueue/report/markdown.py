"""Writes a document as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from simqueue.report.document import Block, Cells, Code, Document, Heading, Items, Paragraph, Picture, Terms


def markdown(document: Document, figures: str) -> str:
    """Return the document as Markdown. Its pictures are links to PNG files in the folder `figures`."""
    parts = [f"# {document.title}", *(_markdown(block, figures) for block in document.blocks)]
    return "\n\n".join(parts) + "\n"


def _markdown(block: Block, figures: str) -> str:
    match block:
        case Items():
            return _list(block.lines)
        case Terms():
            return _list([f"**{term}**: {text}" for term, text in block.texts.items()])
        case Cells():
            return _table(block)
        case Picture():
            return f"![{block.caption}]({figures}/{block.name}.png)\n\n{block.caption}"
        case _:
            return _text(block)


def _text(block: Heading | Paragraph | Code) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    return block.text if isinstance(block, Paragraph) else f"```\n{block.text}\n```"


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(table: Cells) -> str:
    marks = ["---:" if index in table.numeric else "---" for index in range(len(table.columns))]
    lines = [_line(table.columns), _line(marks)]
    for index, row in enumerate(table.rows):
        if title := table.sections.get(index):
            lines.append(_line((f"**{title}**", *[""] * (len(row) - 1))))
        lines.append(_line([f"**{cell}**" if (index, at) in table.best else cell for at, cell in enumerate(row)]))
    return "\n".join([*([f"*{table.caption}*", ""] if table.caption else []), *lines])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|").replace("\n", " ") for cell in cells) + " |"
