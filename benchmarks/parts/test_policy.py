"""The time of one step of a policy."""

from __future__ import annotations

import pytest

from .common import SEATS, Measure, Steps, endless, full_batch


@pytest.fixture(params=["plain", "prefix caching", "asynchronous"])
def decoding(request: pytest.FixtureRequest) -> Steps:
    """Return a full batch of each kind."""
    return full_batch(prefix_caching=request.param == "prefix caching", asynchronous=request.param == "asynchronous")


def test_a_step_of_decodes(benchmark: Measure, decoding: Steps) -> None:
    """Plan and commit a step in which 127 requests decode."""
    plan = benchmark(decoding.one)
    assert plan.batch.decode_seqs == SEATS - 1
    assert not plan.batch.prefill


def test_a_step_with_a_chunk_of_a_prompt(benchmark: Measure, decoding: Steps) -> None:
    """Plan and commit a step in which 127 requests decode and one computes a chunk of its prompt."""
    decoding.policy.add(endless(SEATS, prompt_tokens=10**9))
    plan = benchmark(decoding.one)
    assert plan.batch.decode_seqs == SEATS - 1
    assert len(plan.batch.prefill) == 1


def test_a_repeated_step(benchmark: Measure, decoding: Steps) -> None:
    """Plan a step of decodes, repeat it 99 times and commit all hundred steps."""

    def fold() -> int:
        plan = decoding.plan()
        decoding.policy.take(plan, 99)
        decoding.policy.commit(plan)
        return plan.repeat

    assert benchmark(fold) >= 100
