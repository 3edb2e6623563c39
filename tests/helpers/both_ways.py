"""One scenario played with equal steps folded and step by step: both runs must give the same tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

import simqueue as sq
from simqueue.results.result import Result


def assert_same_tables(one: Result, other: Result) -> None:
    """Compare requests, steps and summary of two results, to the last bit."""
    for name in ("requests", "steps", "summary"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), check_exact=True)


def play_both_ways(scenario: Mapping[str, Any], *, check: bool | None = None) -> Result:
    """Return the result of the folded run, which is also that of the run that plans each step."""
    folded, stepped = (sq.run({**scenario, "fast": fast}, check=check) for fast in (True, False))
    assert_same_tables(folded, stepped)
    return folded
