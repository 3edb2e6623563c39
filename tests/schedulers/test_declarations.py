"""What a policy declares of itself holds for that very class, and for subclasses that change no rule."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.kvcache import PrefixKVCache
from simqueue.request import Request
from simqueue.schedulers import Chunked, RequestLimits, Static
from simqueue.schedulers.base import Batching
from simqueue.schedulers.declarations import declared_batching, undeclared_rules
from simqueue.schedulers.keys import StaticSettings
from simqueue.schedulers.vllm_v0 import VllmV0

from ..helpers.playing import make_policy, seen, simulate

BUDGET = {"max_num_seqs": 4, "max_num_batched_tokens": 64}


@pytest.mark.parametrize(
    ("scheduler", "keys", "batching"),
    [
        ("chunked", BUDGET, Batching("chunked", 4, 64)),
        ("continuous", BUDGET, Batching("mixed", 4, 64)),
        ("continuous", {**BUDGET, "prefill": "separate"}, Batching("separate", 4, 64)),
        ("static", {"max_num_seqs": 4}, Batching("static", 4)),
        (VllmV0, BUDGET, Batching("separate", 4, 64)),
        (VllmV0, {**BUDGET, "enable_chunked_prefill": True}, Batching("chunked", 4, 64)),
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
