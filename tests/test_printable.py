"""Text of users on its way to a terminal, a page and a figure."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simqueue as sq
from simqueue.errors import InputError, Problem
from simqueue.figures.style import drawable
from simqueue.printable import printable, printable_lines, shortened

_NAME = "\x1b[31mred\x1b[0m\nerror: \u202e\u65e5\x07"
_SCENARIO = {
    "name": "odd",
    "step_time": {"kind": "constant", "seconds": 0.01},
    "kv_cache": {"blocks": 100},
    "policies": {"c": {"scheduler": "chunked", "max_num_seqs": 2}},
    "workload": {
        "requests": [
            {
                "id": f"{_NAME}{i}",
                "arrival_s": 0.01 * i,
                "prompt_tokens": 3,
                "output_tokens": 4,
                "class": f"{_NAME}{i % 2}",
            }
            for i in range(8)
        ]
    },
}


@given(st.text())
def test_printable_text_is_one_line_that_can_be_seen_and_encoded(text: str) -> None:
    """Control characters, line ends, directions and halves of surrogate pairs become escapes; the rest stays."""
    shown = printable(text)
    assert shown.isprintable()
    shown.encode("utf-8")
    assert (shown == text) == text.isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", r"a\nb"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\u202ex", r"\u202ex"),
        ("\ud800", r"\ud800"),
        ("é ±", "é ±"),
    ],
)
def test_what_is_not_to_be_seen_becomes_its_escape(text: str, shown: str) -> None:
    """Python's escapes are used; letters of all languages are left alone."""
    assert printable(text) == shown


def test_lines_stay_lines() -> None:
    """In a text of several lines only the line ends are kept."""
    assert printable_lines("a\tb\n\rc") == "a\\tb\n\\rc"


def test_long_texts_are_shortened() -> None:
    """A text of the longest length is kept; a longer one has its beginning and dots, and that length."""
    assert shortened("x" * 60) == "x" * 60
    assert shortened("x" * 61) == "x" * 57 + "..."


def test_an_error_shows_at_most_20_problems_of_one_line_each() -> None:
    """The first 20 and the number of the others; a problem with 100,000 letters is cut."""
    lines = str(InputError.of(Problem((f"k\n{i}",), "x" * 100_000) for i in range(25))).split("\n")
    assert len(lines) == 21
    assert lines[0].startswith(r"k\n0: xxx")
    assert max(map(len, lines)) == 2000
    assert lines[20] == "and 5 more problems"
    assert "more problems" not in str(InputError.of(Problem((), "x") for _ in range(20)))


def test_names_of_classes_and_requests_reach_terminal_and_page_as_escapes(
    tmp_path: Path, command: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither table nor page has a control character, or a line of a name's own; no figure warns."""
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(json.dumps(_SCENARIO), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = command("run", "s.yaml", "--out", "r", "--no-figures")
        report = command("report", "r", "-o", "r.html")
    assert (run.code, report.code) == (0, 0)  # type: ignore[attr-defined]
    out = run.out + report.out  # type: ignore[attr-defined]
    assert r"\x1b[31mred" in out
    page = Path("r.html").read_text(encoding="utf-8")
    assert r"\x1b[31mred" in page
    for text in (out, page):
        assert not re.search(r"[^\n\x20-\x7e\x80-\U0010ffff]|[\x80-\x9f\u202e]", text)
        assert "\nerror: " not in text


def test_a_figure_has_a_square_for_a_sign_that_its_font_lacks() -> None:
    """Letters that the font has, line ends and ASCII stay."""
    assert drawable("a\nĀΩ") == "a\nĀΩ"
    assert drawable("a\u65e5b") == "a\N{WHITE SQUARE}b"
    assert drawable("\x1b[1m") == r"\x1b[1m"


def test_a_run_is_as_it_was() -> None:
    """The names in the tables are those that were given: only what is shown is changed."""
    assert set(sq.run(_SCENARIO).requests["request_class"]) == {f"{_NAME}0", f"{_NAME}1"}
