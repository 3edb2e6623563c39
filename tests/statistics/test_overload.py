"""Overload, as seen from a run: queues whose load is known are told from each other, and what cannot be told is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.statistics.overload import Evidence, Law, Sign, Stays, evidence, is_overloaded, majority, overlap_share
from studies.certainty.queues import Served, per_server, run_of, shared, shortest_first
from tests.helpers.profiles import examples

RUNS = 40


def flagged(served: Served, load: float, number: int, cv: float = 1.0, runs: int = RUNS) -> list[bool | None]:
    """Return what several runs say without a capacity law."""
    rng = np.random.default_rng(11)
    return [is_overloaded(Law(), evidence(run_of(served, load, number, rng, cv))) for _ in range(runs)]


QUEUES = {"one server": per_server(1), "32 servers": per_server(32), "shortest first": shortest_first}


@pytest.mark.parametrize("name", QUEUES)
@pytest.mark.parametrize("load", [1.5, 2.0, 10.0])
def test_the_worse_it_is_the_more_it_is_seen(name: str, load: float) -> None:
    """Each of 40 runs of 500 customers is flagged from a load of 1.5 on, at 10 as well."""
    assert flagged(QUEUES[name], load, 500) == [True] * RUNS


@pytest.mark.parametrize("name", QUEUES)
def test_a_stable_queue_is_not_flagged(name: str) -> None:
    """Of 40 runs of 500 customers at a load of 0.8, at most one is flagged; with gaps of a CV of 3 at most three."""
    assert flagged(QUEUES[name], 0.8, 500).count(True) <= 1
    assert flagged(QUEUES[name], 0.8, 500, cv=3.0).count(True) <= 3


def test_longer_runs_tell_more() -> None:
    """With 5,000 customers, a load of 0.9 is told to be none, and 1.2 and 10 to be overload, in each of 12 runs."""
    for load, answer in ((0.9, False), (1.2, True), (10.0, True)):
        assert flagged(QUEUES["one server"], load, 5000, runs=12) == [answer] * 12


def test_near_a_load_of_one_it_cannot_be_told() -> None:
    """At 0.9 hardly any run of 500 is flagged (16 % were by a trend), and at 1.05 most say neither."""
    assert flagged(QUEUES["one server"], 0.9, 500).count(True) <= 2
    assert flagged(QUEUES["one server"], 1.05, 500).count(False) <= 0.4 * RUNS


@pytest.mark.parametrize(("alone_s", "each_s"), [(0.0, 1.0), (10.0, 1.0)])
def test_a_policy_without_a_queue_is_seen_by_what_it_leaves(alone_s: float, each_s: float) -> None:
    """Sharing: at 0.8 at most one of 12 runs is flagged; at 1.5 nearly all, and none is called stable."""
    served = shared(alone_s, each_s)
    assert flagged(served, 0.8, 500, runs=12).count(True) <= 1
    busy = flagged(served, 1.5, 500, runs=12)
    assert busy.count(True) >= 9
    assert False not in busy
    assert False not in flagged(served, 10.0, 500, runs=12)


def test_where_no_request_slows_another_there_is_no_overload() -> None:
    """Infinitely many servers: no run of 10 stays or more is flagged, and one shorter than a stay says nothing."""
    served = shared(50.0, 0.0)
    assert flagged(served, 1.0, 500, runs=12) == [False] * 12
    assert flagged(served, 20.0, 500, runs=12) == [None] * 12


def test_one_giant_that_waits_is_no_overload() -> None:
    """A last request with as much work as all others together leaves the verdict on them."""
    run = run_of(QUEUES["one server"], 0.5, 500, np.random.default_rng(2))
    for column in (run.arrival_s, run.start_s, run.first_token_s, run.leave_s):
        column[-1] = run.arrival_s[-2] + 1.0
    run.start_s[-1] = run.first_token_s[-1] = run.arrival_s[-1] + 50.0
    run.leave_s[-1] = run.start_s[-1] + 500.0
    run.output_tokens[-1] = run.made_tokens[-1] = 50_000.0
    found = evidence(run)
    assert found is not None
    assert found.sign not in (Sign.STRONG, Sign.WEAK)


def test_a_horizon_hides_no_overload() -> None:
    """At four times the capacity, cut when arrivals end: requests that never start have not left, and count."""
    run = run_of(QUEUES["one server"], 4.0, 500, np.random.default_rng(4))
    end_s = float(run.arrival_s.max())
    times = [np.where(column > end_s, np.inf, column) for column in (run.start_s, run.first_token_s, run.leave_s)]
    made = np.where(run.leave_s > end_s, 0.0, run.made_tokens)
    cut = Stays(run.arrival_s, times[0], times[1], times[2], run.prompt_tokens, run.output_tokens, made, end_s)
    assert is_overloaded(Law(), evidence(cut)) is True


def test_too_few_requests_and_requests_at_one_time_say_nothing() -> None:
    """With 99 customers, or if all arrive at once, there is no evidence."""
    few = run_of(QUEUES["one server"], 4.0, 99, np.random.default_rng(1))
    assert evidence(few) is None
    many = run_of(QUEUES["one server"], 4.0, 500, np.random.default_rng(1))
    many.arrival_s[:] = 0.0
    assert evidence(many) is None


@examples(20)
@given(st.floats(0.1, 50.0), st.floats(1e-3, 1e3), st.integers(0, 50))
def test_units_of_time_and_order_do_not_matter(load: float, scale: float, seed: int) -> None:
    """In another unit of time, and in another order of the rows, a run shows the same."""
    rng = np.random.default_rng(seed)
    run = run_of(QUEUES["one server"], load, 120, rng)
    order = rng.permutation(120)
    times = [scale * column[order] for column in (run.arrival_s, run.start_s, run.first_token_s, run.leave_s)]
    tokens = [column[order] for column in (run.prompt_tokens, run.output_tokens, run.made_tokens)]
    other = Stays(times[0], times[1], times[2], times[3], tokens[0], tokens[1], tokens[2], scale * run.end_s)
    found, again = evidence(run), evidence(other)
    assert found is not None
    assert again is not None
    shares = (found.excess, found.waiting, found.unfinished, found.finished_excess)
    assert (again.excess, again.waiting, again.unfinished, again.finished_excess) == pytest.approx(shares, abs=1e-6)


def kept_up(**more: float) -> Evidence:
    """Return evidence of a run that kept up, except for the given values."""
    values = {"excess": -0.2, "excess_t": -3.0, "waiting": 0.0, "finished_excess": -0.2, "unfinished": 0.0}
    return Evidence(requests=500, done_rps=5.0, **{**values, "unfinished_before": 0.0, "stays": 100.0, **more})


PILED_UP = kept_up(excess=0.4, excess_t=5.0, waiting=0.4, unfinished=0.4, unfinished_before=0.2)
SOMEWHAT = kept_up(excess=0.05, excess_t=3.0, waiting=0.04, unfinished=0.05, unfinished_before=0.02)
EITHER = kept_up(excess=0.05, excess_t=0.5, waiting=0.04, unfinished=0.05, unfinished_before=0.02)


def test_a_law_and_a_run_weigh_against_each_other() -> None:
    """A load of 1 is overload, with a caution unless the run kept up; a low one outweighs weak evidence only."""
    for found in (None, kept_up(), EITHER):
        assert is_overloaded(Law(1.0, 10.0), found) is True
        assert is_overloaded(Law(0.9, 10.0), found) is False
    assert is_overloaded(Law(1.02, 9.8, doubtful=True), kept_up()) is False
    assert is_overloaded(Law(1.02, 9.8, doubtful=True), EITHER) is True
    assert is_overloaded(Law(0.15, 10.0), SOMEWHAT) is False
    assert is_overloaded(Law(0.15, 10.0, doubtful=True), SOMEWHAT) is True
    assert is_overloaded(Law(0.15, 10.0), PILED_UP) is True
    assert is_overloaded(Law(0.9, 10.0, doubtful=True), EITHER) is None
    assert is_overloaded(Law(0.99, 10.0), EITHER) is None
    assert is_overloaded(Law(0.99, 10.0), kept_up()) is False


def test_a_burst_is_no_overload_of_a_law_that_the_run_confirms() -> None:
    """If work piles up at a load of 0.6 though the run did 95 % of the capacity, it came early; at half of it, not."""
    assert is_overloaded(Law(0.6, 5.0 / 0.95), PILED_UP) is False
    assert is_overloaded(Law(0.6, 10.0), PILED_UP) is True
    assert is_overloaded(Law(0.6, 5.0 / 0.95, doubtful=True), PILED_UP) is True


def test_what_cannot_be_told_is_neither_yes_nor_no() -> None:
    """Without a load, nothing and unclear evidence say nothing."""
    answers = [is_overloaded(Law(), found) for found in (None, EITHER, SOMEWHAT, PILED_UP, kept_up())]
    assert answers == [None, None, True, True, False]


def test_a_queue_with_a_limit_shows_no_steady_state() -> None:
    """Where requests leave unanswered, work that keeps up says nothing; work that still piles up, and a load, do."""
    full = kept_up(excess=0.4, excess_t=5.0, waiting=0.2, unfinished=0.2, unfinished_before=0.2)
    assert is_overloaded(Law(), kept_up(), bounded=True) is None
    assert is_overloaded(Law(), full, bounded=True) is None
    assert is_overloaded(Law(), PILED_UP, bounded=True) is True
    assert is_overloaded(Law(0.9, 10.0), kept_up(), bounded=True) is False


def test_replications_answer_by_majority() -> None:
    """More than half of all have to agree: those that say nothing are no answer, and count."""
    assert majority([True, True, False]) is True
    assert majority([False, False, True]) is False
    assert majority([True, None, None]) is None
    assert majority([False, None, None]) is None
    assert majority([True, False]) is None
    assert majority([]) is None


def test_overlap_counts_who_meets_whom() -> None:
    """Of three requests the second finds the first in the system, and the third finds nothing: one of two."""
    assert overlap_share(np.array([0.0, 1.0, 9.0]), np.array([2.0, 3.0, 10.0])) == 0.5
    assert overlap_share(np.array([0.0]), np.array([1.0])) is None
