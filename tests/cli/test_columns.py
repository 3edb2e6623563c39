"""Lists: one line a row for programs, as many columns as fit for people."""

from __future__ import annotations

from simqueue.cli.columns import Row, listed

LONG = "a description that is much longer than any cell of a table should ever be on a terminal"
ROWS: list[Row] = [
    {"name": "a-name-of-some-length", "description": LONG, "size_gb": 12.5, "count": 1234567, "kind": None},
    {"name": "b", "description": "short", "size_gb": None, "count": 1, "kind": "x"},
]


def test_elsewhere_than_on_a_terminal_a_row_is_a_line() -> None:
    """In a pipe each row is one whole line with every column, texts last, so that grep finds it."""
    head, first, second = listed(ROWS, None)
    assert head.split() == ["name", "size", "gb", "count", "kind", "description"]
    assert first.split(maxsplit=4) == ["a-name-of-some-length", "12.5", "1,234,567", "-", LONG]
    assert second.split() == ["b", "-", "1", "x", "short"]
    assert first.index(LONG) == second.index("short")


def test_on_a_terminal_texts_stand_below() -> None:
    """No line is wider than the terminal, names stay whole, and a text is folded under its row."""
    lines = listed(ROWS, 60)
    assert max(map(len, lines)) <= 60
    assert lines[1].split() == ["a-name-of-some-length", "12.5", "1,234,567", "-"]
    below = lines[2 : lines.index("    short") - 1]
    assert " ".join(line.strip() for line in below) == LONG
    assert all(line.startswith("    ") for line in below)


def test_on_a_narrow_terminal_the_essential_columns_stay() -> None:
    """Where not all columns fit, the essential ones come first and the last of them go."""
    assert listed(ROWS, 35, ["count", "size_gb"])[0].split() == ["name", "count"]
    assert listed(ROWS, 45, ["count", "size_gb"])[0].split() == ["name", "count", "size", "gb"]
    assert listed(ROWS, 10)[0] == "name"
