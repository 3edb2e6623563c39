"""The token log against lists of all token times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from simqueue.request import Job, Request
from simqueue.simulation.tokens import TokenLog

SEATS = 5


def pooled(log: TokenLog) -> Counter[float]:
    """Return each gap and how many tokens have it."""
    gaps = log.gaps()
    found: Counter[float] = Counter()
    for gap_s, count in zip(gaps["gap_s"].tolist(), gaps["tokens"].tolist(), strict=True):
        found[gap_s] += count
    return found


def walked(times_s: Sequence[Sequence[float]]) -> Counter[float]:
    """Return the same from the times of all tokens of all requests."""
    return Counter(later - earlier for one in times_s for earlier, later in pairwise(one))


class Played:
    """Steps played into a log and into plain lists at the same time."""

    def __init__(self) -> None:
        self.log = TokenLog()
        self.now_s = 0.0
        self.jobs = [Job(Request(str(i), 0.0, 1, 10**6), i) for i in range(SEATS)]
        self.times_s: list[list[float]] = [[] for _ in self.jobs]
        self.decoding: list[int] = []

    def leave(self, who: Sequence[int]) -> None:
        """Take some out, as a preemption or a finish does."""
        for i in who:
            if i in self.decoding:
                self.decoding.remove(i)
                self.log.left(self.jobs[i])

    def step(
        self, durations_s: Sequence[float], *, decodes: bool, left_out: Sequence[int], completes: Sequence[int]
    ) -> None:
        """Run steps in a row, in which all decodes but those left out get tokens, or none does.

        Prompts are completed at the end of the last one; from then on the requests that were left out decode again.
        """
        out = [i for i in dict.fromkeys(left_out) if i in self.decoding]
        self.leave(out)
        start_s, ends_s = self.now_s, []
        for duration_s in durations_s:
            self.now_s += duration_s
            ends_s.append(self.now_s)
        if decodes and self.decoding:
            self.log.ticked(len(self.decoding), start_s, ends_s)
            for i in self.decoding:
                self.times_s[i].extend(ends_s)
        for i in completes:
            if i not in self.decoding:
                self.decoding.append(i)
                self.times_s[i].append(self.now_s)
                self.log.joined(self.jobs[i], self.now_s)
        for i in out:
            if i not in self.decoding:
                self.decoding.append(i)
                self.log.resumed(self.jobs[i])


who = st.lists(st.integers(0, SEATS - 1), max_size=3)
rough_s = st.sampled_from([0.1, 0.2, 0.25, 0.30000000000000004, 1 / 3, 7.0])
plays = st.lists(
    st.tuples(who, st.lists(rough_s, min_size=1, max_size=4), st.booleans() | st.just(True), who, who, who),
    max_size=30,
)


@given(plays)
def test_gaps_are_those_of_all_token_times(
    steps: list[tuple[list[int], list[float], bool, list[int], list[int], list[int]]],
) -> None:
    """Requests join, wait, are left out, leave and return: counts, last token and all gaps are exact."""
    played = Played()
    for preempted, durations_s, decodes, left_out, completes, ends in steps:
        played.leave(preempted)
        played.step(durations_s, decodes=decodes, left_out=left_out, completes=completes)
        played.leave(ends)
    played.leave(list(played.decoding))
    gaps = pooled(played.log)
    for job, times_s in zip(played.jobs, played.times_s, strict=True):
        assert job.tokens_emitted == len(times_s)
        assert job.last_token_s == (times_s[-1] if times_s else None)
        assert job.max_itl_s == max((later - earlier for earlier, later in pairwise(times_s)), default=None)
    assert gaps == walked(played.times_s)


def test_burst_is_one_wait_and_then_no_gaps() -> None:
    """Tokens that reach the client together: the first of them after the wait, the others after nothing."""
    log, job = TokenLog(), Job(Request("a", 0.0, 1, 5), 0)
    log.joined(job, 1.0)
    log.left(job)
    log.burst(job, 4, 3.5)
    assert pooled(log) == Counter({2.5: 1, 0.0: 3})
    assert (job.tokens_emitted, job.last_token_s, job.max_itl_s) == (5, 3.5, 2.5)


def test_leaving_twice_changes_nothing() -> None:
    """A request that has left is counted once."""
    log, job = TokenLog(), Job(Request("a", 0.0, 1, 5), 0)
    log.joined(job, 1.0)
    log.ticked(1, 1.0, [2.0, 4.0])
    log.left(job)
    log.left(job)
    gaps = pooled(log)
    assert (job.tokens_emitted, job.max_itl_s, gaps) == (3, 2.0, Counter({1.0: 1, 2.0: 1}))
