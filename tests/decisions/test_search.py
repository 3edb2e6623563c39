"""The search against curves that are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from simqueue.decisions import search
from simqueue.decisions.crossing import Crossing, Margins
from simqueue.decisions.search import NO_LIMIT, NO_RATE, UNDECIDED, Found, Search, Wanted
from simqueue.decisions.trials import Size

Curve = Callable[[float, Size], tuple[float, float]]


class Known:
    """Runs whose margins follow a curve: value and half the length of the interval by rate and size."""

    def __init__(self, curve: Curve, *, steady: bool, law_rps: float | None = None, day: int | None = None) -> None:
        self.traffic = SimpleNamespace(rate_rps=1.0, steady=steady, random=True)
        self.conditions = SimpleNamespace(bounded=True)
        self.law_rps, self.points = law_rps, {}
        self._curve, self._day = curve, day

    def at(self, rate: float, size: Size) -> Any:
        """Return a point; of a day's course, requests grow with the rate."""
        requests = size.requests if self._day is None else self._day * rate
        row = {"n_requests": round(requests * size.replications)}
        value, half = self._curve(rate, size)
        point = SimpleNamespace(
            rate_rps=rate, row=row, doubtful=(), known=Margins(rate, value, value - half, value + half)
        )
        return self.points.setdefault((rate, size), point)


@pytest.fixture(autouse=True)
def margins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let points have the margins of the curve."""
    monkeypatch.setattr(search, "margins", lambda point: point.known)


def searched(known: Known) -> Found:
    """Return what is found without a stable rate."""
    return Search(known, Wanted(0.02, 1000), None).run()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "top"),
    [
        (Known(lambda _, __: (-1, 0), steady=False, law_rps=10), 40),
        (Known(lambda _, __: (-1, 0), steady=False, law_rps=0.1), 1),
        (Known(lambda _, __: (-1, 0), steady=False), 1024),
        (Known(lambda _, __: (-1, 0), steady=True), 1024),
        (Known(lambda _, __: (-1, 0), steady=False, day=10_000), 16),
    ],
)
def test_a_limit_that_no_rate_reaches_ends_the_search(known: Known, top: float) -> None:
    """Rates end at some times the law's, or where runs would have too many requests."""
    found = searched(known)
    assert (found.crossing, found.stopped, found.kept) == (None, NO_LIMIT, top)


@pytest.mark.parametrize(("half", "stopped"), [(0.5, NO_RATE), (2.0, UNDECIDED)])
def test_that_no_rate_is_enough_takes_an_interval(half: float, stopped: str) -> None:
    """An interval that holds the limit does not exclude that it is kept."""
    found = searched(Known(lambda _, __: (1, half), steady=True))
    assert (found.crossing, found.stopped) == (None, stopped)


def test_few_runs_alone_do_not_tell_that_no_rate_is_enough() -> None:
    """All runs keep the limit at the lowest rate, though two of them did not."""
    found = searched(
        Known(lambda rate, size: (math.log(rate / 1e-4) if size.replications > 2 else 1, 0.01), steady=True)
    )
    assert found.crossing is not None
    assert found.crossing.rate_rps == pytest.approx(1e-4, rel=0.02)


def test_a_rate_that_keeps_the_limits_is_not_thrown_away() -> None:
    """The last of the rates that are looked at further down may be the first that keeps them."""

    def curve(rate: float, size: Size) -> tuple[float, float]:
        return (math.log(rate * 30_000) if size.replications > 2 else math.log(rate / 0.7), 0.01)

    found = searched(Known(curve, steady=True))
    assert found.crossing is not None
    assert found.crossing.rate_rps == pytest.approx(1 / 30_000, rel=0.02)


@pytest.mark.parametrize(("longer", "moves"), [(5.0, True), (0.05, False), (-0.5, False), (math.inf, True)])
def test_longer_runs_at_the_end_of_the_steady_state(longer: float, moves: bool) -> None:
    """No slope is known there: whether longer runs keep the limits tells whether runs are long enough."""
    known = Known(lambda _, __: (longer, 0.1), steady=True)
    looked = Search(known, Wanted(0.02, 1000), None)  # type: ignore[arg-type]
    found = Found(Crossing(1.01, 1.0, 1.02), Size(1000, 10))
    assert looked._moves(found, None) is moves
