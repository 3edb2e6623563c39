"""Overload, as seen from a run: queues whose load is known are told from each other, and what cannot be told is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.statistics.overload import Sign, evidence, overlap_share
from simqueue.statistics.stays import Stays
from simqueue.statistics.verdict import Law, is_overloaded
from studies.certainty.queues import Served, per_server, run_of, shared, shortest_first
from tests.helpers.profiles import examples

RUNS = 40


def flagged(served: Served, load: float, number: int, cv: float = 1.0, runs: int = RUNS) -> list[bool | None]:
    """Return what several runs say without a capacity law."""
    rng = np.random.default_rng(11)
    return [is_overloaded(Law(), evidence(run_of(served, load, number, rng, cv))) for _ in range(runs)]


TWO = [per_server(1), shared(3.0, 1.0)]
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
def test_a_policy_without_a_queue_is_seen_by_how_requests_slow_each_other(alone_s: float, each_s: float) -> None:
    """Sharing: at 0.8 at most one of 20 runs is flagged; from 1.5 to 10 all are, of 500 customers."""
    served = shared(alone_s, each_s)
    assert flagged(served, 0.8, 500, runs=20).count(True) <= 1
    for load in (1.5, 3.0, 10.0):
        assert flagged(served, load, 500, runs=20) == [True] * 20


@pytest.mark.parametrize("served", [per_server(1), per_server(32), shared(0.0, 1.0), shared(10.0, 1.0)])
def test_just_above_a_load_of_one_stable_is_hardly_ever_said(served: Served) -> None:
    """At 1.05, at most 2 of 20 runs of 500 customers are called stable: it cannot be told yet."""
    assert flagged(served, 1.05, 500, runs=20).count(False) <= 2


def test_where_no_request_slows_another_there_is_no_overload() -> None:
    """Infinitely many servers: of runs of about 10 stays none is flagged; one shorter than a stay says nothing."""
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
    cut = Stays(run.arrival_s, *times, run.prompt_tokens, run.output_tokens, made, run.lost, run.refused, end_s)
    assert is_overloaded(Law(), evidence(cut)) is True


def test_too_few_requests_and_requests_at_one_time_say_nothing() -> None:
    """With 99 customers, or if all arrive at once, there is no evidence."""
    few = run_of(QUEUES["one server"], 4.0, 99, np.random.default_rng(1))
    assert evidence(few) is None
    many = run_of(QUEUES["one server"], 4.0, 500, np.random.default_rng(1))
    many.arrival_s[:] = 0.0
    assert evidence(many) is None


@examples(20)
@given(st.sampled_from(TWO), st.floats(0.1, 50.0), st.floats(1e-3, 1e3), st.integers(0, 50))
def test_units_of_time_and_order_do_not_matter(served: Served, load: float, scale: float, seed: int) -> None:
    """In another unit of time, and in another order of the rows, a run shows the same."""
    rng = np.random.default_rng(seed)
    run = run_of(served, load, 120, rng)
    order = rng.permutation(120)
    times = [scale * column[order] for column in (run.arrival_s, run.start_s, run.first_token_s, run.leave_s)]
    tokens = [column[order] for column in (run.prompt_tokens, run.output_tokens, run.made_tokens)]
    other = Stays(*times, *tokens, run.lost, run.refused, scale * run.end_s)
    found, again = evidence(run), evidence(other)
    assert found is not None
    assert again is not None
    shares = (found.least.share, found.most.share, found.waiting, found.unfinished)
    assert (again.least.share, again.most.share, again.waiting, again.unfinished) == pytest.approx(shares, abs=1e-6)
    assert again.queued == found.queued


def test_overlap_counts_who_meets_whom() -> None:
    """Of three requests the second finds the first in the system, and the third finds nothing: one of two."""
    assert overlap_share(np.array([0.0, 1.0, 9.0]), np.array([2.0, 3.0, 10.0])) == 0.5
    assert overlap_share(np.array([0.0]), np.array([1.0])) is None
