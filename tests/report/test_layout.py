"""Tables on terminals of any width: no name and no number is cut."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from simqueue.experiment.comparing import Compared
from simqueue.report.layout import Entry, Section, by_name, by_row
from simqueue.report.lines import metric_label
from simqueue.statistics.comparison import paired

WORD = st.text("abcdefghij-_", min_size=1, max_size=14)
NUMBER = st.integers(0, 10**9).map("{:,}".format)


def rendered(table: Any, width: int) -> list[str]:
    """Return the lines that a terminal of this width shows."""
    screen = StringIO()
    Console(file=screen, width=width, color_system=None).print(table)
    return screen.getvalue().splitlines()


@given(st.lists(WORD, min_size=1, max_size=9, unique=True), st.data(), st.integers(40, 120))
def test_names_and_numbers_are_whole(names: list[str], data: st.DataObject, width: int) -> None:
    """Whether side by side or turned, each text is there as a word, and no line is wider than the terminal."""
    count = data.draw(st.integers(1, 6))
    entries = tuple(Entry(f"label {i}", "ms", tuple(data.draw(NUMBER) for _ in names)) for i in range(count))
    lines = rendered(by_name(names, [Section("", entries)], width), width)
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    assert all(words.count(text) >= 1 for entry in entries for text in entry.texts)
    assert set(names) <= set(words)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_rows_become_blocks_before_anything_is_cut(width: int) -> None:
    """At any width each row has its names, its numbers, and all words of its text."""
    rows = [
        ("TTFT mean (ms)", "continuous", "-12,980 ±5,123", "0.0025 [0.0021, 0.0031]", "better"),
        ("TTFT mean (ms)", "chunked", "-12,900 ±5,100", "0.0026 [0.0022, 0.0032]", "static is overloaded: no state"),
    ]
    titles = ("metric", "policy", "difference", "ratio", "verdict")
    lines = rendered(by_row(titles, rows, left=titles[:2], wrapped=titles[4:], width=width), width)
    assert max(map(len, lines)) <= width
    shown = " ".join(lines)
    for row in rows:
        assert all(text in shown for text in row[:4])
        assert all(word in shown for word in row[4].split())


@pytest.mark.parametrize(
    ("column", "label"),
    [
        ("mean_ttft_ms", "TTFT mean (ms)"),
        ("median_itl_ms", "ITL p50 (ms)"),
        ("p99_e2el_ms", "E2EL p99 (ms)"),
        ("mean_queue_ms", "queue mean (ms)"),
        ("request_throughput", "throughput (req/s)"),
    ],
)
def test_metrics_have_labels_with_units(column: str, label: str) -> None:
    """A column of the summary is called as in the table of a run."""
    assert metric_label(column) == label


@pytest.mark.parametrize(
    ("values", "base", "difference"),
    [([12980.0], [25960.0], "-12,980"), ([1.0], [0.5], "+0.5"), ([5.0], [5.00007491], "-0.00007491")],
)
def test_differences_have_no_exponents(values: list[float], base: list[float], difference: str) -> None:
    """Large differences have thousands separators, small ones all their zeros."""
    assert Compared("m", "p", "b", paired(values, base), None).difference() == difference
