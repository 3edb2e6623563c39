"""Policies with rules of one's own that nobody declared: folded and stepped runs leave the same tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from simqueue.kvcache import KVCache, PagedKVCache, PrefixKVCache
from simqueue.request import Job, Request
from simqueue.schedulers import ByKey, Chunked, Continuous, IterationPolicy, RequestLimits, Step, WaitingQueue
from simqueue.simulation import Recording, RunOptions, Simulation
from simqueue.steptime.linear import LinearStepTime

from ..helpers.exact_times import TICK_S
from ..helpers.profiles import examples
from ..helpers.recordings import differences

STEP_TIMES = (LinearStepTime(TICK_S, 0, 0, 0, 0), LinearStepTime(0.002, 3e-5, 0.0007, 1e-4, 1e-6))
Rule = Callable[[IterationPolicy, Step], bool]

RULES: dict[str, Rule] = {
    "two wait": lambda policy, _: len(policy.waiting) >= 2,
    "few wait": lambda policy, _: len(policy.waiting) < 4,
    "even tenths of a second": lambda _, step: int(step.now_s * 10) % 2 == 0,
    "odd milliseconds": lambda _, step: int(step.now_s * 1000) % 2 == 1,
    "short contexts": lambda policy, _: policy.decodes.context_tokens < 60,
    "long contexts": lambda policy, _: policy.decodes.context_tokens > 40,
    "an urgent request waits": lambda policy, _: any(job.request.priority == 0 for job in _waiting(policy)),
    "a short prompt waits": lambda policy, _: any(job.request.prompt_tokens < 9 for job in _waiting(policy)),
    "half of the pool is free": lambda policy, _: 2 * policy.kv.free >= policy.kv.total,
    "few decode": lambda policy, _: policy.decodes.seqs < 3,
}


def _waiting(policy: IterationPolicy) -> list[Job]:
    """Return the waiting requests; the policies below note all that they were given."""
    return [job for job in policy.known.values() if job.index in policy.waiting.snapshot()]  # type: ignore[attr-defined]


def foreign(base: type[Any], admission: Rule, chunk: Rule, order: str | None) -> type[Any]:
    """Return a subclass of `base` with rules of its own that declares nothing."""

    class Foreign(base):  # type: ignore[misc]
        def __init__(self, *parts: Any) -> None:
            self.known: dict[int, Job] = {}
            super().__init__(*parts)

        def add(self, job: Job) -> bool:
            self.known[job.index] = job
            return bool(super().add(job))

        def queue(self) -> WaitingQueue:
            if order is None:
                return super().queue()  # type: ignore[no-any-return]
            return ByKey(lambda job: (getattr(job.request, order), job.preemptions))

        def may_admit(self, job: Job, step: Step) -> bool:
            return not self.running or admission(self, step)

        def chunk(self, job: Job, step: Step) -> int:
            tokens: int = super().chunk(job, step)
            whole = base is Continuous or not self.running or chunk(self, step)
            return tokens if whole else min(tokens, 3)

    return Foreign


@st.composite
def requests(draw: st.DrawFn) -> list[Request]:
    """Return requests on the grid of steps, with clients that give up and shared prompts."""
    found, arrival_s = [], 0.0
    for index in range(draw(st.integers(1, 14))):
        arrival_s += TICK_S * draw(st.sampled_from([0, 0, 1, 2, 5, 20, 60]))
        prompt, output = draw(st.integers(1, 30)), draw(st.integers(1, 40))
        patience = draw(st.none() | st.integers(1, 60))
        found.append(
            Request(
                str(index),
                arrival_s,
                prompt,
                output,
                priority=draw(st.integers(0, 2)),
                prompt=((draw(st.integers(1, 2)), 0, prompt),),
                gives_up_s=None if patience is None else arrival_s + TICK_S * patience,
            )
        )
    return found


def play(policy: Any, asked: list[Request], step_time: LinearStepTime, *, fast: bool) -> Recording:
    """Play one way with every check on."""
    return Simulation(list(asked), policy, step_time, RunOptions(fast=fast, check=True)).run()


@examples(150)
@given(
    requests(),
    st.sampled_from([Chunked, Continuous]),
    st.sampled_from(sorted(RULES)),
    st.sampled_from(sorted(RULES)),
    st.sampled_from([None, "priority", "prompt_tokens", "output_tokens"]),
    st.integers(1, 6),
    st.integers(0, 60),
    st.booleans(),
    st.sampled_from(STEP_TIMES),
)
def test_undeclared_rules_give_the_same_tables_folded_and_stepped(
    asked: list[Request],
    base: type[Any],
    admission: str,
    chunk: str,
    order: str | None,
    seats: int,
    spare_blocks: int,
    shares: bool,
    step_time: LinearStepTime,
) -> None:
    """Rules on the queue, time, contexts, priorities and lengths: what is not declared is planned at every step."""
    policy_class = foreign(base, RULES[admission], RULES[chunk], order)
    keys = policy_class.Settings(max_num_seqs=seats, max_num_batched_tokens=seats + 24)

    def recording(*, fast: bool) -> Recording:
        blocks = 70 + spare_blocks
        kv: KVCache = PrefixKVCache(blocks, 1) if shares else PagedKVCache(blocks, 1)
        return play(policy_class(keys, kv, RequestLimits()), asked, step_time, fast=fast)

    folded, stepped = recording(fast=True), recording(fast=False)
    assert set(differences(folded, stepped)) <= {"warnings"}
    assert any("Foreign.may_admit" in warning for warning in folded.warnings)
