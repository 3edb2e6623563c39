"""The decode counters against a walk over lists of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.errors import RunError
from simqueue.request import Job, Request
from simqueue.schedulers.decoding import DecodeCounters


def joining(place: int, prompt_tokens: int, output_tokens: int, made: int = 1) -> Job:
    """Return a job whose prompt is computed and that has made `made` tokens."""
    job = Job(Request(str(place), 0.0, prompt_tokens, output_tokens), place)
    job.rank = place
    job.known_tokens = prompt_tokens + made
    job.computed_tokens = job.known_tokens - 1
    return job


@dataclass
class Walked:
    """What a plain account says of one decoding request: tokens it has, tokens it will have."""

    tokens: int
    last: int

    def needs_block(self, block_size: int) -> bool:
        """Whether the token fed next starts a block: all before it fill whole ones."""
        return (self.tokens - 1) % block_size == 0


def walked_demand(walked: list[Walked], n: int, block_size: int) -> list[int]:
    """Return the blocks that each of the next `n` steps takes, all tokens laid out one by one."""
    ahead = [[Walked(one.tokens + i, one.last) for one in walked] for i in range(n)]
    return [sum(one.needs_block(block_size) for one in step) for step in ahead]


lengths = st.tuples(st.integers(1, 20), st.integers(2, 25), st.integers(1, 24)).filter(lambda x: x[2] < x[1])
actions = st.lists(
    st.tuples(st.just("join"), lengths)
    | st.tuples(st.just("leave"), st.integers(0, 9))
    | st.tuples(st.just("step"), st.integers(1, 12)),
    max_size=40,
)


@given(actions, st.integers(1, 5), st.integers(0, 12), st.integers(1, 30))
def test_counters_are_those_of_a_walk(
    todo: list[tuple[str, object]], block_size: int, free_blocks: int, n: int
) -> None:
    """Context, demand, steps carried and who ends are what laying out all tokens one by one gives."""
    counters = DecodeCounters(block_size, grows=True)
    walked: dict[Job, Walked] = {}
    for place, (action, value) in enumerate(todo):
        if action == "join":
            job = joining(place, *value)  # type: ignore[misc] # the tuple that goes with "join"
            counters.start(job)
            walked[job] = Walked(job.known_tokens, job.last_known_tokens)
        elif action == "leave" and walked:
            job = list(walked)[value % len(walked)]  # type: ignore[operator] # the number that goes with "leave"
            counters.stop(job)
            assert (job.known_tokens, job.computed_tokens) == (walked[job].tokens, walked[job].tokens - 1)
            del walked[job]
        elif action == "step" and walked:
            steps = min(value, (counters.next_end - counters.steps))  # type: ignore[type-var] # the number of "step"
            ended = counters.step(steps)
            for one in walked.values():
                one.tokens += steps
            assert ended == [job for job, one in walked.items() if one.tokens == one.last]
            walked = {job: one for job, one in walked.items() if one.tokens < one.last}
        counters.check(walked)
        assert counters.seqs == len(walked)
        assert counters.context_tokens == sum(one.tokens for one in walked.values())
        assert [counters.tokens(job) for job in walked] == [one.tokens for one in walked.values()]
        assert [counters.needs_block(job) for job in walked] == [one.needs_block(block_size) for one in walked.values()]
        demands = walked_demand(list(walked.values()), n, block_size)
        assert counters.demand_of(n) == sum(demands)
        if walked:
            assert (counters.next_end - counters.steps) == min(one.last - one.tokens for one in walked.values())
            carried = max(k for k in range(n + 1) if sum(demands[:k]) <= free_blocks)
            assert counters.steps_within(free_blocks, n) == carried


def test_reserved_blocks_do_not_grow() -> None:
    """Where all blocks are reserved at admission, decoding takes none and any pool carries any number of steps."""
    counters = DecodeCounters(1, grows=False)
    job = joining(0, 3, 50)
    counters.start(job)
    assert (counters.demand(), counters.demand_of(40), counters.needs_block(job)) == (0, 0, 0)
    assert counters.steps_within(0, 40) == 40


def test_ends_come_in_order_of_admission() -> None:
    """Requests that make their last token in one step are returned by admission, however they joined."""
    counters = DecodeCounters(16, grows=True)
    late, early = joining(7, 4, 3), joining(2, 9, 3)
    counters.start(late)
    counters.start(early)
    assert counters.step(2) == [early, late]


def test_preempted_request_leaves_no_stale_end() -> None:
    """The end noted before a preemption is forgotten: after it joins again only the new one counts."""
    counters = DecodeCounters(16, grows=True)
    victim, other = joining(0, 5, 4), joining(1, 5, 20)
    counters.start(victim)
    counters.start(other)
    assert (counters.next_end - counters.steps) == 3
    counters.step(1)
    counters.stop(victim)
    assert (counters.next_end - counters.steps) == 18
    counters.step(2)
    victim.known_tokens += 1
    victim.rank = 2
    counters.start(victim)
    assert (counters.next_end - counters.steps) == 1
    assert counters.step(1) == [victim]
    assert (counters.next_end - counters.steps) == 15


def test_ends_come_in_the_latest_order_of_admission() -> None:
    """A request that was preempted and admitted again ends after one that was admitted in between."""
    counters = DecodeCounters(16, grows=True)
    victim, other = joining(0, 5, 4), joining(1, 5, 4)
    counters.start(victim)
    counters.start(other)
    counters.stop(victim)
    victim.rank = 2
    counters.start(victim)
    assert counters.step(3) == [other, victim]


def test_an_end_noted_before_a_preemption_does_not_count_behind_an_earlier_one() -> None:
    """The request admitted again has its old last step and a new place in the order; another one ends before."""
    counters = DecodeCounters(16, grows=True)
    victim, other, short = joining(0, 5, 4), joining(1, 5, 4), joining(2, 5, 2)
    for job in (victim, other, short):
        counters.start(job)
    counters.stop(victim)
    victim.rank = 3
    counters.start(victim)
    assert counters.step(1) == [short]
    assert counters.step(2) == [other, victim]


def test_check_names_wrong_counters() -> None:
    """Counters that differ from a walk, or a forgotten end, are reported."""
    counters = DecodeCounters(4, grows=True)
    job = joining(0, 5, 4)
    counters.start(job)
    with pytest.raises(RunError, match="decode counters"):
        counters.check([])
    job.base += 4
    with pytest.raises(RunError, match="decode counters"):
        counters.check([job])
    job.base -= 4
    counters.check([job])
    longer = joining(1, 5, 9)
    counters.start(longer)
    longer.last_step = 1
    with pytest.raises(RunError, match="next end at step 3 differs"):
        counters.check([job, longer])
