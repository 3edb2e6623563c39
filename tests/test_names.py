"""Misspelt names."""

from __future__ import annotations

import pytest

from simqueue.names import nearest, unknown


def test_the_nearest_name() -> None:
    """A close name is found; without a close name there is none."""
    assert nearest("chunkd", ["static", "chunked"]) == ("chunked",)
    assert nearest("zzz", ["static", "chunked"]) == ()


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("A100", {"a100-40gb", "a100-80gb"}),
        ("H200", {"h200-sxm"}),
        ("h100 SXM", {"h100-sxm"}),
        ("H100_PCIE", {"h100-pcie"}),
        ("RTX4090", {"rtx-4090"}),
        ("A100-80G", {"a100-80gb"}),
    ],
)
def test_case_and_separators_do_not_count_and_all_that_begin_alike_are_offered(name: str, offered: set[str]) -> None:
    """`A100` can be one of two, `H200` only `h200-sxm`."""
    known = ["a10g", "a100-40gb", "a100-80gb", "b200", "gb200", "h100-pcie", "h100-sxm", "h20", "h200-sxm", "rtx-4090"]
    assert set(nearest(name, known)) == offered


def test_equally_close_names_are_all_offered() -> None:
    """Neither of two names with the same distance is preferred."""
    assert nearest("xac", ["xab", "xad", "other"]) == ("xab", "xad")
    assert "did you mean 'xab' or 'xad'?" in unknown("name", "xac", ["xab", "xad"])


def test_a_very_long_name_is_answered_at_once_and_short() -> None:
    """Comparing takes the square of the length, so it is not done, and the name is not printed in full."""
    text = unknown("key", "a" * 1_000_000, ["ab"] * 3)
    assert len(text) < 200


def test_many_known_names_are_cut() -> None:
    """A message is a line: of 1,000 names it lists the first ones and the number of the others."""
    assert unknown("key", "zzz", map(str, range(1000))).endswith("39, and 960 more")


def test_what_an_error_says() -> None:
    """The text has the unknown name, the nearest known name, and all known names in order."""
    assert unknown("policy", "chunkd", ["static", "chunked"]) == (
        "unknown policy 'chunkd'; did you mean 'chunked'? known: static, chunked"
    )
    assert unknown("key", "zzz", ["b", "a"]) == "unknown key 'zzz'; known: b, a"
    assert unknown("case", "any", []) == "unknown case 'any'; known: none"
