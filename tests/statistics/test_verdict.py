"""What is said about overload: a law and a run weighed against each other, and queues that are bounded."""

from __future__ import annotations

import numpy as np
import pytest

from simqueue.statistics.overload import Evidence, Excess, evidence
from simqueue.statistics.stays import Stays
from simqueue.statistics.verdict import Law, is_bounded, is_overloaded, majority
from studies.certainty.bounded import Limits, played


def seen(share: float, t: float, **more: float) -> Evidence:
    """Return evidence of a queue with this excess and t-value; everything else says that it kept up."""
    found = Excess(share, t)
    rest = dict.fromkeys(("waiting", "lost", "unfinished", "unfinished_before"), 0.0)
    return Evidence(500, 5.0, found, found, queued=True, **{**rest, "stays": 100.0, **more})


KEPT_UP = seen(-0.2, -3.0)
PILED_UP = seen(0.4, 5.0, waiting=0.4, unfinished=0.4, unfinished_before=0.2)
SOMEWHAT = seen(0.05, 3.0, waiting=0.04, unfinished=0.05, unfinished_before=0.02)
EITHER = seen(0.05, 0.5, waiting=0.04, unfinished=0.05, unfinished_before=0.02)


def test_a_law_and_a_run_weigh_against_each_other() -> None:
    """A load of 1 is overload, with a caution unless the run kept up; a low one outweighs weak evidence only."""
    for found in (None, KEPT_UP, EITHER):
        assert is_overloaded(Law(1.0, 10.0), found) is True
        assert is_overloaded(Law(0.9, 10.0), found) is False
    assert is_overloaded(Law(1.02, 9.8, doubtful=True), KEPT_UP) is False
    assert is_overloaded(Law(1.02, 9.8, doubtful=True), EITHER) is True
    assert is_overloaded(Law(0.15, 10.0), SOMEWHAT) is False
    assert is_overloaded(Law(0.15, 10.0, doubtful=True), SOMEWHAT) is True
    assert is_overloaded(Law(0.15, 10.0), PILED_UP) is True
    assert is_overloaded(Law(0.9, 10.0, doubtful=True), EITHER) is None
    assert is_overloaded(Law(0.99, 10.0), EITHER) is None
    assert is_overloaded(Law(0.99, 10.0), KEPT_UP) is False


def test_a_burst_is_no_overload_of_a_law_that_the_run_confirms() -> None:
    """If work piles up at a load of 0.6 though the run did 95 % of the capacity, it came early; at half of it, not."""
    assert is_overloaded(Law(0.6, 5.0 / 0.95), PILED_UP) is False
    assert is_overloaded(Law(0.6, 10.0), PILED_UP) is True
    assert is_overloaded(Law(0.6, 5.0 / 0.95, doubtful=True), PILED_UP) is True


def test_what_cannot_be_told_is_neither_yes_nor_no() -> None:
    """Without a load, nothing and unclear evidence say nothing."""
    answers = [is_overloaded(Law(), found) for found in (None, EITHER, SOMEWHAT, PILED_UP, KEPT_UP)]
    assert answers == [None, None, True, True, False]


def test_requests_that_wait_for_responses_show_no_steady_state() -> None:
    """Where their number is bounded, work that keeps up says nothing; work that still piles up, and a load, do."""
    full = seen(0.4, 5.0, waiting=0.2, unfinished=0.2, unfinished_before=0.2)
    assert is_overloaded(Law(), KEPT_UP, dependent=True) is None
    assert is_overloaded(Law(), full, dependent=True) is None
    assert is_overloaded(Law(), PILED_UP, dependent=True) is True
    assert is_overloaded(Law(0.9, 10.0), KEPT_UP, dependent=True) is False


def test_replications_answer_by_majority() -> None:
    """More than half of all have to agree: those that say nothing are no answer, and count."""
    assert majority([True, True, False]) is True
    assert majority([False, False, True]) is False
    assert majority([True, None, None]) is None
    assert majority([False, None, None]) is None
    assert majority([True, False]) is None
    assert majority([]) is None


def told(runs: list[Stays]) -> list[tuple[bool | None, bool]]:
    """Return whether each run is overloaded, judged without a law, and whether it is bounded."""
    return [(is_overloaded(Law(), evidence(run)), is_bounded(run)) for run in runs]


@pytest.mark.parametrize("room", [0, 10])
@pytest.mark.parametrize("load", [1.3, 2.0, 10.0])
def test_a_full_queue_is_overloaded_but_bounded(load: float, room: int) -> None:
    """M/M/1/K: as many are refused as the formula says, more comes than can be done, and the queue does not grow."""
    runs = [played(load, 1000, seed, Limits(room=room)) for seed in range(8)]
    shares = [run.lost.mean() for run in runs]
    blocked = (1 - load) * load ** (room + 1) / (1 - load ** (room + 2))
    assert np.mean(shares) == pytest.approx(blocked, abs=4 * np.std(shares, ddof=1) / 8**0.5)
    assert told(runs) == [(True, True)] * 8


def test_a_full_queue_of_a_fast_server_is_no_overload() -> None:
    """M/M/1/1 at a load of 0.5 refuses a third of all requests, though it could do twice the work."""
    runs = [played(0.5, 1000, seed, Limits(room=0)) for seed in range(8)]
    assert np.mean([run.lost.mean() for run in runs]) == pytest.approx(1 / 3, abs=0.02)
    assert told(runs) == [(False, True)] * 8


@pytest.mark.parametrize(("load", "answers"), [(0.9, {False, None}), (1.3, {True}), (5.0, {True})])
def test_clients_that_give_up_bound_the_queue(load: float, answers: set[bool | None]) -> None:
    """M/D/1 with a patience of 5 services: none stays longer, so every run is bounded; at 0.9 none is overloaded."""
    found = told([played(load, 800, seed, Limits(patience=5.0, cv=0.0)) for seed in range(8)])
    assert {bounded for _, bounded in found} == {True}
    assert {overloaded for overloaded, _ in found} <= answers


def test_what_still_grows_is_not_bounded() -> None:
    """Clients who give up when half of the others have come, and patient ones who alone are too many, bound nothing."""
    late = [played(2.5, 900, seed, Limits(patience=190.0)) for seed in range(6)]
    some = [played(3.0, 900, seed, Limits(patience=np.where(np.arange(900) % 2, 5.0, np.inf))) for seed in range(6)]
    for runs in (late, some):
        assert all(run.lost.any() for run in runs)
        assert told(runs) == [(True, False)] * 6


def test_clients_that_leave_a_server_with_time_are_no_overload() -> None:
    """At a load of 0.2, half of all requests take longer than their clients wait."""
    runs = [played(0.2, 500, seed, Limits(patience=np.log(2))) for seed in range(6)]
    assert min(run.lost.mean() for run in runs) > 0.4
    assert {overloaded for overloaded, _ in told(runs)} <= {False, None}
