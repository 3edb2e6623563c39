"""What policies declare of themselves, and small promises of single policies."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.kvcache import PagedKVCache, PrefixKVCache
from simqueue.request import Request
from simqueue.schedulers import Chunked, RequestLimits, Static
from simqueue.schedulers.base import Batching
from simqueue.schedulers.declarations import declared_batching, undeclared_rules
from simqueue.schedulers.keys import StaticSettings
from simqueue.schedulers.vllm_v0 import VllmV0
from simqueue.schedulers.vllm_v1 import VllmV1
from simqueue.simulation import RunOptions, Simulation
from simqueue.simulation.options import SeenStep

from ..helpers.playing import ONE_SECOND, make_policy, requests_of, seen, simulate

BUDGET = {"max_num_seqs": 4, "max_num_batched_tokens": 64}


@pytest.mark.parametrize(
    ("scheduler", "keys", "batching"),
    [
        ("chunked", BUDGET, Batching("chunked", 4, 64)),
        ("continuous", BUDGET, Batching("mixed", 4, 64)),
        ("continuous", {**BUDGET, "prefill": "separate"}, Batching("separate", 4, 64)),
        ("static", {"max_num_seqs": 4}, Batching("static", 4)),
        (VllmV0, BUDGET, Batching("separate", 4, 64, whole_context=True)),
        (VllmV0, {**BUDGET, "enable_chunked_prefill": True}, Batching("chunked", 4, 64, whole_context=True)),
    ],
)
def test_policies_say_how_they_batch(scheduler: Any, keys: dict[str, Any], batching: Batching) -> None:
    """The terms of the capacity law are the policy's own settings; every rule of a built-in policy is declared."""
    policy = make_policy(scheduler, keys)
    assert declared_batching(policy) == batching
    assert undeclared_rules(policy) == []


class Renamed(Chunked):
    """Changes what is shown, and no rule."""

    summary = "the same under another name"


class OwnChunk(Chunked):
    """Changes one rule."""

    def chunk(self, job: Any, step: Any) -> int:
        """Give at most two tokens."""
        return min(2, int(super().chunk(job, step)))


class Helped(Chunked):
    """Has a method of its own, and says how it batches."""

    def least(self) -> int:
        """Return a part of a rule."""
        return 1

    def batching(self) -> Batching:
        """Return what it says."""
        return Batching("chunked", 1, 1)


class OtherHelp(Helped):
    """Changes that method, which only its base has."""

    def least(self) -> int:
        """Return another part."""
        return 2


def test_a_capacity_is_claimed_for_known_rules_alone() -> None:
    """A subclass that changes a rule, or a part of one, has no capacity; one that is only shown differently has."""
    assert declared_batching(make_policy(Renamed, BUDGET)) == Batching("chunked", 4, 64)
    assert declared_batching(make_policy(OwnChunk, BUDGET)) is None
    assert declared_batching(make_policy(Helped, BUDGET)) == Batching("chunked", 1, 1)
    assert declared_batching(make_policy(OtherHelp, BUDGET)) is None


def test_undeclared_rules_are_named() -> None:
    """The class and the rule, in the class that overrides it; nothing for a policy that is only shown differently."""
    assert undeclared_rules(make_policy(OwnChunk, BUDGET)) == ["OwnChunk.chunk"]
    assert undeclared_rules(make_policy(OtherHelp, BUDGET)) == ["OtherHelp.least"]
    assert undeclared_rules(make_policy(Renamed, BUDGET)) == []


def test_waves_share_no_blocks() -> None:
    """Padded waves with a prefix cache are a mistake of the scenario."""
    with pytest.raises(InputError, match="padded waves cannot share blocks"):
        Static(StaticSettings(), PrefixKVCache(10, 16), RequestLimits())


def test_slots_of_llamacpp_find_nothing_cached() -> None:
    """A slot computes its whole prompt: no token counts as cached."""
    recording = simulate(make_policy("llamacpp", {"n_parallel": 2, "n_batch": 8}), [(0.0, 12, 2), (0.0, 3, 2)])
    assert seen(recording, "cached_tokens") == {"a": 0, "b": 0}


@pytest.mark.parametrize(("prompt", "rejected"), [(63, False), (64, True)])
def test_one_output_token_must_fit_the_model(prompt: int, rejected: bool) -> None:
    """An engine that cuts outputs takes prompts up to max_model_len - 1, and makes what fits: here one token."""
    limits, asked = RequestLimits(64, cuts_output=True), Request("r", 0.0, prompt, 9)
    reason = limits.rejection(asked, make_policy("chunked").kv)
    assert (reason is not None) == rejected
    if not rejected:
        assert limits.output_tokens(asked) == 1


def test_a_context_beyond_the_budget_runs_alone() -> None:
    """V0 without chunking: b is preempted with 17 known tokens, more than the budget, and enters when nothing runs."""
    keys = {"max_num_seqs": 2, "max_num_batched_tokens": 16, "watermark": 0.0}
    recording = simulate(make_policy(VllmV0, keys, blocks=3), [(0.0, 16, 4), (0.0, 16, 4)])
    # prompts end at 1 and 2 s; at 2 s both need a second block and one is free
    assert seen(recording, "finish_s", "preemptions") == {"a": (5.0, 0), "b": (8.0, 1)}


def test_rules_set_on_the_object_count_as_overridden() -> None:
    """A method replaced on one policy is a rule of one's own; a function that is no rule is not."""
    policy: Any = make_policy(Renamed, BUDGET)
    policy.logged = print
    assert declared_batching(policy) == Batching("chunked", 4, 64)
    assert undeclared_rules(policy) == []
    policy.chunk = lambda job, _: job.rest_tokens
    assert declared_batching(policy) is None
    assert undeclared_rules(policy) == ["Renamed.chunk"]


def test_cached_blocks_are_counted_once_at_admission() -> None:
    """V0 admits b, whose prompt is a's and 16 tokens more, beside a: of its 5 blocks 4 are a's, and one is free."""
    a = Request("a", 0.0, 64, 4, prompt=((1, 0, 64),))
    b = Request("b", 1.5, 80, 1, prompt=((1, 0, 80),))
    keys = VllmV0.Settings.model_validate({**BUDGET, "max_num_batched_tokens": 128, "watermark": 0.0})
    recording = simulate(VllmV0(keys, PrefixKVCache(6, 16), RequestLimits()), [a, b])
    # a: prompt until 1 s, decodes in [1, 2] and on a fifth block; b enters at 2 s, a's decodes go on after it
    assert seen(recording, "finish_s", "cached_tokens") == {"a": (5.0, 0), "b": (3.0, 64)}


def test_members_of_a_step_are_in_order_of_admission() -> None:
    """An observer sees who got how many tokens: a, admitted first, is still being prefilled beside b's decode."""
    policy: Any = make_policy("chunked", {"chunk_tokens": 4, "max_num_seqs": 2, "max_num_batched_tokens": 8})
    policy.observed = True
    steps: list[SeenStep] = []
    options = RunOptions(fast=False, check=True)
    Simulation(requests_of([(0.0, 10, 2), (0.0, 4, 4)]), policy, ONE_SECOND, options, observer=steps.append).run()
    members = [[(job.request.request_id, tokens) for job, tokens in step.plan.members] for step in steps]
    assert members == [
        [("a", 4), ("b", 4)],
        [("a", 4), ("b", 1)],
        [("a", 2), ("b", 1)],
        [("a", 1), ("b", 1)],
    ]


@pytest.mark.parametrize(
    ("reject", "chunked", "rejected"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_whole_prompts_beyond_the_budget_are_rejected_on_demand(reject: bool, chunked: bool, rejected: bool) -> None:
    """V1 without chunking: a context of 65 tokens never fits a budget of 64; where all may wait, it waits."""
    flags = VllmV1.Settings.model_validate({**BUDGET, "enable_chunked_prefill": chunked})
    policy = VllmV1(flags, PagedKVCache(100, 16), RequestLimits(None, reject))
    assert (policy.rejection(Request("r", 0.0, 60, 6)) is not None) == rejected
    assert policy.rejection(Request("r", 0.0, 60, 5)) is None


class Oldest(Chunked):
    """Preempts the request that was admitted first."""

    def victim(self, step: Any) -> Any:
        """Return the first running request."""
        return next(iter(self.running))


def test_a_victim_gives_back_what_the_step_has_given_it() -> None:
    """Own victims: a has got a block for its token in the step in which b lacks one and a is preempted for it.

    9 blocks of one token, both prompts take 3. After one decode each, one block is free. a takes it, b preempts a.
    """
    policy = make_policy(Oldest, {"max_num_seqs": 2, "max_num_batched_tokens": 16}, blocks=9, block_size=1)
    recording = simulate(policy, [(0.0, 3, 5), (0.0, 3, 5)])  # the pool is checked after every step
    assert seen(recording, "preemptions", "tokens_emitted") == {"a": (1, 5), "b": (0, 5)}
    assert seen(recording, "finish_s")["b"] == 5.0
