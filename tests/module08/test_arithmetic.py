"""The module's arithmetic in the report, against figures worked out by hand."""

from __future__ import annotations

import pytest

from studies.module08.arithmetic import figures

WRONG = {
    ("A4", "step of 32 decodes, memory"): (16e9 + 32 * 1024 * 131_072) / 3.35e9,
    ("A5", "the same, tokens"): 3.35e12 / (16e9 + 1024 * 131_072),
    ("B2", "weights"): 14e9 / 2**30,
    ("B7", "steps for 2048 tokens"): 18,
    ("B7", "the same"): 18 * 14e9 / 3.35e9,
    ("B8", "0.2 ms of launches at chunk 128"): 100 * 0.2 / (128 * 0.035),
}


def test_every_figure_of_the_module_has_a_row() -> None:
    """A1 to A9 and B1 to B9 are all there, in order."""
    keys = list(dict.fromkeys(figure.key for figure in figures()))
    assert keys == [f"{part}{number}" for part in "AB" for number in range(1, 10)]


def test_what_is_wrong_is_called_wrong_and_nothing_else() -> None:
    """The six figures that are off at the digits they are stated with, each with the right one."""
    wrong = {(f.key, f.what): f.recomputed for f in figures() if f.verdict == "wrong"}
    assert set(wrong) == set(WRONG)
    for key, recomputed in wrong.items():
        assert float(recomputed.split()[0]) == pytest.approx(WRONG[key], rel=1e-4), key


def test_whatever_is_not_plainly_right_comes_with_its_reason() -> None:
    """No row is called wrong, or right with a caveat, without saying why."""
    assert [(f.key, f.what) for f in figures() if f.verdict != "right" and not f.reason] == []


@pytest.mark.parametrize(
    ("key", "what", "recomputed"),
    [("A2", "KV of a token", "131,072 B"), ("A8", "queue behind a pass at 10 req/s", "101.93 requests")],
)
def test_some_by_hand(key: str, what: str, recomputed: str) -> None:
    """2*32*8*128*2 bytes; and 10 requests/s times 2000 steps of (16e9 + 8*1024*131072)/3.35e12 s."""
    assert 2 * 32 * 8 * 128 * 2 == 131_072
    assert round(10 * 2000 * (16e9 + 8 * 1024 * 131_072) / 3.35e12, 2) == 101.93
    assert next(f.recomputed for f in figures() if (f.key, f.what) == (key, what)) == recomputed
