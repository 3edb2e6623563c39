"""What one step costs its policy."""

from __future__ import annotations

import pytest

from .house import SEATS, Measure, Steps, endless, full_house


@pytest.fixture(params=["plain", "prefix caching", "asynchronous"])
def decoding(request: pytest.FixtureRequest) -> Steps:
    """A full house of each kind."""
    return full_house(prefix_caching=request.param == "prefix caching", asynchronous=request.param == "asynchronous")


def test_a_step_of_decodes(benchmark: Measure, decoding: Steps) -> None:
    """Plan and commit a step in which 127 requests decode."""
    plan = benchmark(decoding.one)
    assert plan.batch.decode_seqs == SEATS - 1
    assert not plan.batch.prefill


def test_a_step_with_a_piece_of_a_prompt(benchmark: Measure, decoding: Steps) -> None:
    """Plan and commit a step in which 127 requests decode and one computes a piece of its prompt."""
    decoding.policy.add(endless(SEATS, prompt_tokens=10**9))
    plan = benchmark(decoding.one)
    assert plan.batch.decode_seqs == SEATS - 1
    assert len(plan.batch.prefill) == 1


def test_a_repeated_step(benchmark: Measure, decoding: Steps) -> None:
    """Plan a step of decodes, take 99 repeats of it and commit all hundred."""

    def fold() -> int:
        plan = decoding.plan()
        decoding.policy.take(plan, 99)
        decoding.policy.commit(plan)
        return plan.repeat

    assert benchmark(fold) >= 100
