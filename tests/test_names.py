"""Misspelt names."""

from __future__ import annotations

from simqueue.names import nearest, unknown


def test_the_nearest_name() -> None:
    """A close name is found; without a close name there is none."""
    assert nearest("chunkd", ["static", "chunked"]) == "chunked"
    assert nearest("zzz", ["static", "chunked"]) is None


def test_what_an_error_says() -> None:
    """The text has the unknown name, the nearest known name, and all known names in order."""
    assert unknown("policy", "chunkd", ["static", "chunked"]) == (
        "unknown policy 'chunkd'; did you mean 'chunked'? known: static, chunked"
    )
    assert unknown("key", "zzz", ["b", "a"]) == "unknown key 'zzz'; known: b, a"
    assert unknown("case", "any", []) == "unknown case 'any'; known: none"
