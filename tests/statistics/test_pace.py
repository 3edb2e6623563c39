"""What requests can make together, read off runs of servers whose limit is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.statistics.pace import pace
from studies.certainty.queues import run_of, shared
from tests.helpers.profiles import examples


@examples(15)
@given(st.floats(0.0, 20.0), st.floats(0.05, 5.0), st.floats(0.5, 8.0), st.integers(0, 99))
def test_a_shared_server_makes_one_token_per_added_time(alone_s: float, each_s: float, load: float, seed: int) -> None:
    """n requests make n / (a + b n) units of work a second: at most 1 / b, at light and at heavy load; 100 tokens each.

    A run of 300 requests tells it within 10 %.
    """
    run = run_of(shared(alone_s, each_s), load / each_s, 300, np.random.default_rng(seed))
    found = pace(run)
    assert found is not None
    assert found.low <= found.high
    assert 0.9 * 100 / each_s <= found.high
    assert found.low <= 1.1 * 100 / each_s
    assert found.high <= 1.1 * 100 / each_s or alone_s > each_s
    assert found.low >= 0.9 * 100 / each_s or alone_s > each_s


@pytest.mark.parametrize("load", [0.5, 1.0, 10.0])
def test_requests_that_do_not_slow_each_other_have_no_limit(load: float) -> None:
    """Infinitely many servers: whatever the load, it is not bounded from above."""
    found = pace(run_of(shared(50.0, 0.0), load, 300, np.random.default_rng(1)))
    assert found is not None
    assert found.high == np.inf


@pytest.mark.parametrize("seed", range(10))
def test_equal_paces_leave_the_pace_of_the_fullest_time(seed: int) -> None:
    """Each token takes 10 ms, with times that are rounded: n requests make 100 n tokens a second."""
    run = run_of(shared(1.0, 0.0), 2.0, 150, np.random.default_rng(seed))
    run.leave_s[:] = run.start_s + 0.01 * (run.made_tokens - 1)
    most = max(np.sum((run.start_s <= start_s) & (run.leave_s > start_s)) for start_s in run.start_s)
    found = pace(run, full=True)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((100 * most, 100 * most), rel=1e-6)


def test_without_tokens_nothing_is_known() -> None:
    """Answers of one token have no pace, and a few have none that says anything."""
    run = run_of(shared(0.0, 1.0), 0.5, 100, np.random.default_rng(1))
    run.made_tokens[19:] = 1
    assert pace(run) is None
