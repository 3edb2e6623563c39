"""Lists: one line per row in a pipe, as many columns as fit on a terminal."""

from __future__ import annotations

from simqueue.cli.columns import Row, listed

LONG = "a description that is much longer than any cell of a table should ever be on a terminal"
ROWS: list[Row] = [
    {"name": "a-name-of-some-length", "description": LONG, "size_gb": 12.5, "count": 1234567, "kind": None},
    {"name": "b", "description": "short", "size_gb": None, "count": 1, "kind": "x"},
]


def test_in_a_pipe_a_row_is_a_line() -> None:
    """In a pipe, each row is one line with all columns, texts last, so that grep finds it."""
    head, first, second = listed(ROWS, None)
    assert head.split() == ["name", "size", "gb", "count", "kind", "description"]
    assert first.split(maxsplit=4) == ["a-name-of-some-length", "12.5", "1,234,567", "-", LONG]
    assert second.split() == ["b", "-", "1", "x", "short"]
    assert first.index(LONG) == second.index("short")


def test_on_a_terminal_texts_follow_below_their_row() -> None:
    """No line is wider than the terminal, names are not cut, and a text is wrapped below its row."""
    lines = listed(ROWS, 60)
    assert max(map(len, lines)) <= 60
    assert lines[1].split() == ["a-name-of-some-length", "12.5", "1,234,567", "-"]
    below = lines[2 : lines.index("    short") - 1]
    assert " ".join(line.strip() for line in below) == LONG
    assert all(line.startswith("    ") for line in below)


def test_on_a_narrow_terminal_essential_columns_are_kept() -> None:
    """If not all columns fit, the essential ones are kept, and the last of them are dropped first."""
    assert listed(ROWS, 35, ["count", "size_gb"])[0].split() == ["name", "count"]
    assert listed(ROWS, 45, ["count", "size_gb"])[0].split() == ["name", "count", "size", "gb"]
    assert listed(ROWS, 10)[0] == "name"
