"""Policies with rules of one's own that no class declares: folded and stepped runs leave the same tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.kvcache import KVCache, PagedKVCache, PrefixKVCache
from simqueue.request import Job, Request
from simqueue.schedulers import ByKey, Chunked, Continuous, IterationPolicy, RequestLimits, Step, WaitingQueue
from simqueue.schedulers.keys import VllmV1Settings
from simqueue.schedulers.vllm_v1 import VllmV1, VllmV1Rules
from simqueue.simulation import Recording, RunOptions, Simulation
from simqueue.steptime.linear import LinearStepTime
from simqueue.traffic import Retry, Rules, Traffic

from ..helpers.profiles import examples
from ..helpers.recordings import differences

TICK_S = 2**-7
STEP_TIMES = (LinearStepTime(TICK_S, 0, 0, 0, 0), LinearStepTime(0.002, 3e-5, 0.0007, 1e-4, 1e-6))
AT_ONCE = Rules(retry=Retry(1, 0.0, 1.0, 0.0, lambda _, __: 0.0))
"""Clients that send again in the instant of their timeout."""
Rule = Callable[[Any, Step], bool]

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
    "half of the pool is used": lambda policy, _: 2 * policy.kv.free <= policy.kv.total,
    "few decode": lambda policy, _: policy.decodes.seqs < 3,
}
KEYS: dict[str, Callable[[IterationPolicy, Job], Any]] = {
    "priority": lambda _, job: job.request.priority,
    "longest output": lambda _, job: -job.request.output_tokens,
    "contexts when queued": lambda policy, _: -policy.decodes.context_tokens,
}
VICTIMS: dict[str, Callable[[Job], Any]] = {
    "oldest": lambda job: -job.rank,
    "longest output": lambda job: (job.request.output_tokens, job.rank),
}


def _waiting(policy: Any) -> list[Job]:
    """Return the waiting requests; the policies below note all that they were given."""
    return [job for job in policy.known.values() if job.index in policy.waiting.snapshot()]


def _decodes_first(step: Step) -> None:
    step.decode_all()
    step.continue_prefills()
    if not step.preempted:
        step.admit_waiting()


def _prompts_first(step: Step) -> None:
    step.continue_prefills()
    if not step.preempted:
        step.admit_waiting()
    step.decode_all()


def _new_requests_first(step: Step) -> None:
    step.admit_waiting()
    step.decode_all()
    step.continue_prefills()


ORDERS = {"decodes": _decodes_first, "prompts": _prompts_first, "new requests": _new_requests_first}


@dataclass(frozen=True)
class Own:
    """The names of the rules of a policy; None: those of the base."""

    admission: str
    chunk: str
    key: str | None
    victim: str | None
    order: str
    rejects: bool


def foreign(base: type[Any], own: Own) -> type[Any]:
    """Return a subclass of `base` with rules of its own that declares nothing."""

    class Foreign(base):  # type: ignore[misc]
        def __init__(self, *parts: Any) -> None:
            self.known: dict[int, Job] = {}
            super().__init__(*parts)

        def rejection(self, request: Request) -> str | None:
            if own.rejects and 4 * self.kv.free < self.kv.total:
                return "little memory is free"
            reason: str | None = super().rejection(request)
            return reason

        def add(self, job: Job) -> bool:
            self.known[job.index] = job
            return bool(super().add(job))

        def queue(self) -> WaitingQueue:
            key = own.key
            return super().queue() if key is None else ByKey(lambda job: KEYS[key](self, job))  # type: ignore[no-any-return]

        def may_admit(self, job: Job, step: Step) -> bool:
            return not self.running or (RULES[own.admission](self, step) and super().may_admit(job, step))

        def chunk(self, job: Job, step: Step) -> int:
            tokens: int = super().chunk(job, step)
            whole = base is not Chunked or not self.running or RULES[own.chunk](self, step)
            return self.beside_decodes(tokens if whole else min(tokens, 3), step)

        def beside_decodes(self, tokens: int, step: Step) -> int:
            """Leave a token for each decode that comes later in the step; `Continuous` does not cut prompts."""
            if own.order == "decodes" or base is VllmV1 or not self.decodes.seqs:
                return tokens
            room = max(step.budget - self.decodes.seqs, 0)
            return tokens if tokens <= room else room if base is Chunked else 0

        def victim(self, step: Step) -> Job:
            if own.victim is None:
                return super().victim(step)  # type: ignore[no-any-return]
            return max((job for job in self.running if not step.has_served(job)), key=VICTIMS[own.victim])

        def compose(self, step: Step) -> None:
            if base is VllmV1:
                super().compose(step)
            else:
                ORDERS[own.order](step)

    return Foreign


# built once: building a strategy with alternatives costs more than drawing from it
PAUSES = st.sampled_from([0, 0, 1, 2, 5, 20, 60])
TIMEOUTS = st.sampled_from([None] * 60 + [*range(1, 61)])
POOLS = st.sampled_from([None, "clients"])


@st.composite
def requests(draw: st.DrawFn) -> list[Request]:
    """Return requests on the grid of steps, with clients that time out, and shared prompts."""
    found, arrival_s = [], 0.0
    for index in range(draw(st.integers(1, 14))):
        arrival_s += TICK_S * draw(PAUSES)
        prompt, output = draw(st.integers(1, 30)), draw(st.integers(1, 40))
        timeout = draw(TIMEOUTS)
        found.append(
            Request(
                str(index),
                arrival_s,
                prompt,
                output,
                priority=draw(st.integers(0, 2)),
                prompt=((draw(st.integers(1, 2)), 0, prompt),),
                gives_up_s=None if timeout is None else arrival_s + TICK_S * timeout,
                pool=draw(POOLS),
            )
        )
    return found


rules = st.builds(
    Own,
    admission=st.sampled_from(sorted(RULES)),
    chunk=st.sampled_from(sorted(RULES)),
    key=st.none() | st.sampled_from(sorted(KEYS)),
    victim=st.none() | st.sampled_from(sorted(VICTIMS)),
    order=st.sampled_from(sorted(ORDERS)),
    rejects=st.booleans(),
)


@examples(150, 2000)
@given(
    requests(),
    st.sampled_from(["chunked", "continuous", "vllm", "vllm, asynchronous"]),
    rules,
    st.integers(1, 6),
    st.integers(0, 60),
    st.booleans(),
    st.sampled_from(STEP_TIMES),
)
def test_undeclared_rules_give_the_same_tables_folded_and_stepped(
    asked: list[Request], kind: str, own: Own, seats: int, spare_blocks: int, shares: bool, step_time: LinearStepTime
) -> None:
    """Rules on queue, time, contexts, priorities, lengths, memory: undeclared rules are asked at every step."""
    base: type[Any] = {"chunked": Chunked, "continuous": Continuous}.get(kind, VllmV1)
    keys: dict[str, Any] = {"max_num_seqs": seats, "max_num_batched_tokens": seats + 24}
    if base is VllmV1:
        keys["async_scheduling"] = "asynchronous" in kind
    lag = int("asynchronous" in kind)

    def recording(*, fast: bool) -> Recording:
        blocks = 70 + spare_blocks
        kv: KVCache = PrefixKVCache(blocks, 1, registration_lag=lag) if shares else PagedKVCache(blocks, 1)
        policy = foreign(base, own)(base.Settings.model_validate(keys), kv, RequestLimits())
        traffic = Traffic(list(asked), rules={"clients": AT_ONCE})
        return Simulation(traffic, policy, step_time, RunOptions(fast=fast, check=True)).run()

    folded, stepped = recording(fast=True), recording(fast=False)
    assert [name for name in differences(folded, stepped) if name != "warnings"] == []
    assert any("Foreign.may_admit" in warning for warning in folded.warnings)


@examples(150, 2000)
@given(
    requests(),
    st.sampled_from(["skip", "stop"]),
    st.booleans(),
    st.integers(1, 6),
    st.integers(0, 60),
    st.sampled_from(STEP_TIMES),
)
def test_unchunked_vllm_is_the_same_folded_and_stepped(
    asked: list[Request], overflow: Any, asynchronous: bool, seats: int, spare_blocks: int, step_time: LinearStepTime
) -> None:
    """Long prompts are passed over and return in reversed order, and clients react in the instant of a timeout."""
    flags = VllmV1Settings(
        max_num_seqs=seats, max_num_batched_tokens=70, enable_chunked_prefill=False, async_scheduling=asynchronous
    )

    def recording(*, fast: bool) -> Recording:
        policy = VllmV1(
            flags, PagedKVCache(70 + spare_blocks, 1), RequestLimits(), VllmV1Rules(unchunked_overflow=overflow)
        )
        traffic = Traffic(list(asked), rules={"clients": AT_ONCE})
        return Simulation(traffic, policy, step_time, RunOptions(fast=fast, check=True)).run()

    assert differences(recording(fast=True), recording(fast=False)) == []


@pytest.mark.parametrize("scheduler", [Chunked, Continuous])
def test_a_step_ends_before_a_timeout_of_its_instant(scheduler: type[Any]) -> None:
    """With one seat and no queue, a client that sends again at once finds the seat that its timeout has freed.

    Steps of one tick: the answer has 9 tokens, the timeout is at the end of the fourth step, in the middle of a fold.
    """
    one = Request("a", 0.0, 4, 9, gives_up_s=4 * TICK_S, pool="clients")
    for fast in (True, False):
        keys = scheduler.Settings(max_num_seqs=1)
        policy = scheduler(keys, PagedKVCache(100, 16), RequestLimits())
        traffic = Traffic([one], rules={"clients": AT_ONCE})
        options = RunOptions(fast=fast, check=True, max_queued_requests=0)
        recording = Simulation(traffic, policy, STEP_TIMES[0], options).run()
        assert recording.requests["status"].tolist() == ["timed_out", "timed_out"]
        assert recording.requests["finish_s"].tolist() == [4 * TICK_S, 8 * TICK_S]
        assert recording.max_concurrent == 1
