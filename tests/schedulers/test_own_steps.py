"""Steps put together in another order than the base does, with victims of one's own: worked out by hand."""

from __future__ import annotations

from typing import Any

from simqueue.kvcache import PrefixKVCache
from simqueue.request import Job, Request
from simqueue.schedulers import Chunked, RequestLimits, Step

from ..helpers.playing import make_policy, rows, seen, simulate

BUDGET = {"max_num_seqs": 4, "max_num_batched_tokens": 16, "chunk_tokens": 4}


class Second(Chunked):
    """Preempts the request that was admitted second."""

    def victim(self, step: Step) -> Job:
        """Return the second running request."""
        return list(self.running)[1]


def test_prompts_after_a_preempted_one_go_on_in_the_same_step() -> None:
    """a lacks a block for its second chunk, b is preempted for it, and c, after b in the list, has its last 3 tokens.

    15 blocks of one token: the first chunks take 12. Then a takes 4 of the 3 + 4 that are free, and c the other 3.
    """
    recording = simulate(make_policy(Second, BUDGET, blocks=15, block_size=1), [(0.0, 8, 1), (0.0, 8, 1), (0.0, 7, 1)])
    assert rows(recording, "start_s", "prefill_tokens", "preempted") == [
        (0.0, 12, 0),
        (1.0, 7, 1),
        (2.0, 4, 0),
        (3.0, 4, 0),
    ]
    assert seen(recording) == {"a": (2.0, 2.0), "b": (4.0, 4.0), "c": (2.0, 2.0)}


class PromptsFirst(Chunked):
    """Goes on with prompts before the decodes."""

    def compose(self, step: Step) -> None:
        """Prompts, then decodes, then new requests."""
        step.continue_prefills()
        step.decode_all()
        if not step.preempted:
            step.admit_waiting()


def test_a_decode_that_is_preempted_before_its_turn_gives_back_what_it_held() -> None:
    """b, which holds 2 blocks, is preempted for a's third chunk before it has got a token in this step.

    13 blocks of one token: at 2 s a holds 8 and b 2. The pool is checked after every step.
    """
    recording = simulate(make_policy(PromptsFirst, BUDGET, blocks=13, block_size=1), [(0.0, 12, 1), (0.0, 1, 5)])
    assert rows(recording, "start_s", "decode_seqs", "prefill_tokens", "blocks_used", "preempted") == [
        (0.0, 0, 5, 5, 0),
        (1.0, 1, 4, 10, 0),
        (2.0, 0, 4, 12, 1),
        (3.0, 0, 3, 3, 0),
        (4.0, 1, 0, 4, 0),
    ]
    assert seen(recording) == {"a": (3.0, 3.0), "b": (1.0, 6.0)}
    assert seen(recording, "preemptions", "recomputed_tokens")["b"] == (1, 2)


def test_a_last_token_of_the_budget_goes_to_a_prompt() -> None:
    """Two decodes leave 1 of 3 tokens per step, so a prompt of 5 tokens takes 5 steps."""
    keys = {"max_num_seqs": 3, "max_num_batched_tokens": 3}
    recording = simulate(make_policy("chunked", keys), [(0.0, 1, 9), (0.0, 1, 9), (0.0, 5, 1)])
    assert seen(recording)["c"] == (5.0, 5.0)
    assert rows(recording, "decode_seqs", "prefill_tokens")[:5] == [(0, 3), (2, 1), (2, 1), (2, 1), (2, 1)]


class Oldest(Chunked):
    """Preempts the request that was admitted first."""

    def victim(self, step: Step) -> Job:
        """Return the first running request."""
        return next(iter(self.running))


def test_a_token_that_a_victim_gives_back_can_be_given_again() -> None:
    """a has got 1 of 6 tokens when b lacks a block and preempts it: b takes 1, and 5 are left for c, which needs 4.

    13 blocks of one token: at 2 s a and b hold 4 each, c holds 4 of its 8.
    """
    keys = {"max_num_seqs": 3, "max_num_batched_tokens": 6}
    recording = simulate(make_policy(Oldest, keys, blocks=13, block_size=1), [(0.0, 3, 5), (0.0, 3, 5), (0.0, 8, 1)])
    columns = ("start_s", "decode_seqs", "prefill_tokens", "preempted")
    assert rows(recording, *columns)[:3] == [(0.0, 0, 6, 0), (1.0, 2, 4, 0), (2.0, 1, 4, 1)]
    assert seen(recording)["c"] == (3.0, 3.0)


def test_a_prompt_that_is_preempted_beside_decodes_gives_back_what_it_held() -> None:
    """b has 4 of 8 prompt tokens when a, before it, lacks blocks: b's 4 blocks are free, and none more.

    12 blocks of one token, chunks of 4: 9 are used at 0 s; at 1 s d takes 1 and a takes 4 of 2 + 4.
    """
    asked = [(0.0, 1, 3), (0.0, 8, 1), (0.0, 8, 1)]
    recording = simulate(make_policy("chunked", BUDGET, blocks=12, block_size=1), asked)
    columns = ("start_s", "decode_seqs", "prefill_tokens", "blocks_used", "preempted")
    assert rows(recording, *columns)[:3] == [(0.0, 0, 9, 9, 0), (1.0, 1, 4, 10, 1), (2.0, 1, 4, 7, 0)]


def test_a_waiting_request_has_no_computed_tokens() -> None:
    """b has 16 tokens in the cache and lacks blocks for the rest: it waits with its whole prompt to compute."""
    keys = Chunked.Settings.model_validate({"max_num_seqs": 2, "max_num_batched_tokens": 64})
    policy = Chunked(keys, PrefixKVCache(5, 4), RequestLimits())
    prompts = ((1, 0, 16),), ((1, 0, 16), (2, 0, 8))
    jobs = [
        Job(Request(str(n), 0.0, sum(p[2] for p in prompt), 2, prompt=prompt), n) for n, prompt in enumerate(prompts)
    ]
    for job in jobs:
        policy.add(job)
    plan = policy.plan(0.0)
    assert plan is not None
    assert [job for job, _ in plan.admitted] == jobs[:1]
    assert (policy.waiting.head, jobs[1].computed_tokens, jobs[1].rest_tokens) == (jobs[1], 0, 24)


class Impatient(Chunked):
    """Preempts an unfinished prompt once, after the decodes."""

    steady_rules = ("compose",)

    def compose(self, step: Step) -> None:
        """Decode, preempt the prompt at 1 s, and go on."""
        step.decode_all()
        if step.now_s == 1.0:
            step.preempt(list(self.running)[1])
        step.continue_prefills()
        if not step.preempted:
            step.admit_waiting()


def test_a_prompt_that_a_policy_preempts_gives_back_what_it_held() -> None:
    """At 1 s b holds 4 blocks of its prompt of 8; without it a's 2 blocks are used, and b starts again at 2 s."""
    recording = simulate(make_policy(Impatient, BUDGET, blocks=30, block_size=1), [(0.0, 1, 6), (0.0, 8, 1)])
    columns = ("start_s", "decode_seqs", "prefill_tokens", "blocks_used", "preempted")
    assert rows(recording, *columns)[:4] == [
        (0.0, 0, 5, 5, 0),
        (1.0, 1, 0, 2, 1),
        (2.0, 1, 4, 7, 0),
        (3.0, 1, 4, 12, 0),
    ]
    assert seen(recording, "finish_s", "preemptions", "recomputed_tokens") == {"a": (6.0, 0, 0), "b": (4.0, 1, 4)}


class AdmitsFirst(Chunked):
    """Admits before it goes on with prompts."""

    def compose(self, step: Step) -> None:
        """New requests, then prompts, then decodes."""
        step.admit_waiting()
        step.continue_prefills()
        step.decode_all()


def test_a_prompt_has_one_chunk_in_a_step() -> None:
    """A request that has just been admitted is not served again with the unfinished prompts."""
    recording = simulate(make_policy(AdmitsFirst, BUDGET), [(0.0, 8, 2), (0.5, 4, 1)])
    assert rows(recording, "decode_seqs", "prefill_tokens") == [(0, 4), (0, 8), (1, 0)]


class Growing(Chunked):
    """Gives 3 tokens in the first step and 6 in later ones, and notes what is left of the budget when it is asked."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.left: list[int] = []

    def chunk(self, job: Job, step: Step) -> int:
        """Return 3 or 6 tokens, whatever is left."""
        self.left.append(step.budget)
        return min(job.rest_tokens, 6 if step.now_s else 3)


def test_a_prompt_is_given_tokens_only_while_some_are_left() -> None:
    """Of 6 tokens both prompts get 3 in the first step; then a takes all 6, and no chunk of b is asked for."""
    policy = make_policy(Growing, {"max_num_seqs": 2, "max_num_batched_tokens": 6})
    recording = simulate(policy, [(0.0, 9, 1), (0.0, 9, 1)])
    assert rows(recording, "prefill_tokens", "prefill_seqs") == [(6, 2), (6, 1), (6, 1)]
    assert policy.left == [6, 3, 6, 6]
