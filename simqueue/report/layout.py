"""Tables of texts on a terminal that cut nothing: side by side if they fit, else turned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_GAP: Final = 3
"""Characters between two columns."""
_EDGES: Final = 2
_LABELS_WIDTH: Final = 20
"""Least number of characters of the labels column."""
_SHORTEST_TEXT: Final = 16
"""Columns of texts can be as narrow as this; their texts are then broken into several lines."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a table of several names: a label, its unit, and a text for each name.

    Attributes
    ----------
    label, unit : str
    texts : tuple of str
    best : frozenset of int
        Indices of the texts to show in bold.
    """

    label: str
    unit: str
    texts: tuple[str, ...]
    best: frozenset[int] = frozenset()

    @property
    def titled(self) -> str:
        """The label with the unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    @property
    def head(self) -> str:
        """The label with the unit below it."""
        return f"{self.label}\n({self.unit})" if self.unit else self.label

    @property
    def width(self) -> int:
        """The characters that a column of this entry needs."""
        return max(map(len, (*self.head.splitlines(), *self.texts)))

    def shown(self, index: int) -> Text:
        """Return one text."""
        return Text(self.texts[index], style="bold" if index in self.best else "")


@dataclass(frozen=True, slots=True)
class Section:
    """Entries that stand together, with a title or an empty one.

    Attributes
    ----------
    title : str
    entries : tuple of Entry
    apart : bool
        Whether they have tables of their own when the table is turned.
    """

    title: str
    entries: tuple[Entry, ...]
    apart: bool = False


def by_name(names: Sequence[str], sections: Sequence[Section], width: int) -> RenderableType:
    """Return a table with a column per name if it is at most this wide, else tables with a row per name."""
    if _width(names, sections) <= width:
        return _side_by_side(names, sections)
    return Group(*_turned(names, sections, width))


def by_row(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: Sequence[str] = (),
    wrapped: Sequence[str] = (),
    width: int,
) -> RenderableType:
    """Return a table of rows if it is at most this wide, else a block of lines per row.

    Parameters
    ----------
    titles : sequence of str
        Titles of the columns.
    rows : sequence of sequence of str
    left : sequence of str
        Titles of the columns that are aligned to the left; in blocks their texts are the first line of a row.
    wrapped : sequence of str
        Titles of columns whose texts can be broken into several lines. They are aligned to the left too.
    width : int
    """
    widths = [max([len(title), *(len(row[at]) for row in rows)]) for at, title in enumerate(titles)]
    least = [
        min(wide, _SHORTEST_TEXT) if title in wrapped else wide for wide, title in zip(widths, titles, strict=True)
    ]
    if _EDGES + sum(least) + _GAP * (len(titles) - 1) <= width:
        return _rows(titles, rows, (*left, *wrapped), wrapped)
    return Group(*(Text(line) for row in rows for line in _block(titles, row, left)))


def _rows(titles: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str], wrapped: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(title, justify="left" if title in left else "right", no_wrap=title not in wrapped)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _block(titles: Sequence[str], row: Sequence[str], left: Sequence[str]) -> list[str]:
    """Return the lines of one row: its names, then one line per column that has a text."""
    named = dict(zip(titles, row, strict=True))
    others = [title for title in titles if title not in left]
    wide = max(map(len, others), default=0)
    names = ", ".join(named[title] for title in titles if title in left)
    return ["", names, *(f"  {title:{wide}}  {named[title]}" for title in others if named[title])]


def _width(names: Sequence[str], sections: Sequence[Section]) -> int:
    """Return the width of the table with names side by side."""
    entries = [entry for section in sections for entry in section.entries]
    columns = [max(len(name), *(len(entry.texts[at]) for entry in entries)) for at, name in enumerate(names)]
    labels = [_LABELS_WIDTH, *(len(entry.titled) for entry in entries), *(len(section.title) for section in sections)]
    return _EDGES + max(labels) + sum(_GAP + column for column in columns)


def _side_by_side(names: Sequence[str], sections: Sequence[Section]) -> Table:
    """Return one table with a column per name."""
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(no_wrap=True, min_width=_LABELS_WIDTH)
    for _ in names:
        table.add_column(justify="right", no_wrap=True)
    if names:
        table.add_row("", *(Text(name, style="bold") for name in names))
    for section in sections:
        table.add_section()
        if section.title:
            table.add_row(Text(section.title, style="bold"))
        for entry in section.entries:
            label = f" {entry.titled}" if section.title else entry.titled
            table.add_row(Text(label), *(entry.shown(at) for at in range(len(names))))
    return table


def _turned(names: Sequence[str], sections: Sequence[Section], width: int) -> Iterator[Table]:
    """Yield tables with a row per name, with as many entries side by side as fit."""
    together = [entry for section in sections if not section.apart for entry in section.entries]
    yield from _rows_of_names("", names, together, width)
    for section in sections:
        if section.apart:
            yield from _rows_of_names(section.title, names, section.entries, width)


def _rows_of_names(title: str, names: Sequence[str], entries: Sequence[Entry], width: int) -> Iterator[Table]:
    longest = min(max(map(len, (title, *names))), width // 2)  # longer names are broken into several lines
    for part in _fitting(entries, width - _EDGES - longest):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
        table.add_column(Text(title), width=longest, overflow="fold", vertical="bottom")
        for entry in part:
            table.add_column(Text(entry.head), justify="right", no_wrap=True, min_width=entry.width)
        for at, name in enumerate(names):
            table.add_row(Text(name), *(entry.shown(at) for entry in part))
        yield table


def _fitting(entries: Sequence[Entry], width: int) -> Iterator[list[Entry]]:
    """Yield the entries in parts that are at most this wide, each with at least one entry."""
    part: list[Entry] = []
    used = 0
    for entry in entries:
        needed = _GAP + entry.width
        if part and used + needed > width:
            yield part
            part, used = [], 0
        part.append(entry)
        used += needed
    if part:
        yield part
