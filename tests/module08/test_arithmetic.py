"""The module's arithmetic in the report, compared with numbers computed by hand."""

from __future__ import annotations

import pytest

from studies.module08.arithmetic import quantities

WRONG = {
    ("A4", "step of 32 decodes, memory"): (16e9 + 32 * 1024 * 131_072) / 3.35e9,
    ("A5", "the same, tokens"): 3.35e12 / (16e9 + 1024 * 131_072),
    ("B2", "weights"): 14e9 / 2**30,
    ("B7", "steps for 2048 tokens"): 18,
    ("B7", "the same"): 18 * 14e9 / 3.35e9,
    ("B8", "0.2 ms of launches at chunk 128"): 100 * 0.2 / (128 * 0.035),
}


def test_every_number_of_the_module_has_a_row() -> None:
    """All of A1 to A9 and B1 to B9 have rows, in order."""
    keys = list(dict.fromkeys(one.key for one in quantities()))
    assert keys == [f"{part}{number}" for part in "AB" for number in range(1, 10)]


def test_only_wrong_numbers_have_the_verdict_wrong() -> None:
    """Six numbers differ at the stated digits; each row has the right number."""
    wrong = {(f.key, f.what): f.recomputed for f in quantities() if f.verdict == "wrong"}
    assert set(wrong) == set(WRONG)
    for key, recomputed in wrong.items():
        assert float(recomputed.split()[0]) == pytest.approx(WRONG[key], rel=1e-4), key


def test_every_other_verdict_than_right_has_a_reason() -> None:
    """A row that is wrong, or right with a caveat, says why."""
    assert [(f.key, f.what) for f in quantities() if f.verdict != "right" and not f.reason] == []


@pytest.mark.parametrize(
    ("key", "what", "recomputed"),
    [("A2", "KV per token", "131,072 B"), ("A8", "requests queued during a wave at 10 req/s", "101.93 requests")],
)
def test_numbers_computed_by_hand(key: str, what: str, recomputed: str) -> None:
    """2*32*8*128*2 bytes; and 10 requests/s times 2000 steps of (16e9 + 8*1024*131072)/3.35e12 s."""
    assert 2 * 32 * 8 * 128 * 2 == 131_072
    assert round(10 * 2000 * (16e9 + 8 * 1024 * 131_072) / 3.35e12, 2) == 101.93
    assert next(f.recomputed for f in quantities() if (f.key, f.what) == (key, what)) == recomputed
