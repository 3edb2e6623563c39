"""vLLM's V1 scheduler, by hand: steps of one second, one rule a test."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.kvcache import PagedKVCache, PrefixKVCache
from simqueue.request import Job, Request
from simqueue.schedulers.keys import VllmV1Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.vllm_v1 import VllmV1, VllmV1Rules
from simqueue.simulation import RunOptions, Simulation
from simqueue.steptime.linear import ConstantStepTime

from ..helpers.playing import both_ways, rows, seen
from ..helpers.playing_vllm import play

ADAPTIVE = {"long_prefill_token_threshold_adaptive": True}


def test_one_budget_serves_decodes_and_prompts_together() -> None:
    """A decode and a newcomer's prompt share a step; what is left of the budget starts the next prompt."""
    recording = play([(0.0, 10, 4), (0.5, 60, 1), (0.5, 60, 1)], max_num_batched_tokens=100)
    assert rows(recording, "decode_seqs", "prefill_tokens")[:3] == [(0, 10), (1, 99), (1, 21)]


@pytest.mark.parametrize("walks", [False, True])
def test_a_prompt_goes_on_with_what_decodes_leave_of_the_budget(walks: bool) -> None:
    """3 + 7 tokens in the first step; then a decodes, so that 9 of 10 are left for b's prompt of 60."""
    recording = play([(0.0, 3, 9), (0.0, 60, 1)], walks=walks, max_num_batched_tokens=10, max_num_seqs=4)
    assert rows(recording, "decode_seqs", "prefill_tokens") == [(0, 10), *[(1, 9)] * 5, (1, 8), (1, 0)]


@pytest.mark.parametrize("walks", [False, True])
def test_the_last_token_of_the_budget_goes_to_a_decode(walks: bool) -> None:
    """a's prompt of 30 takes 7 of 8 tokens a step, b gets the eighth: by sums, and in a walk."""
    keys = {"max_num_seqs": 4, "max_num_batched_tokens": 8, "long_prefill_token_threshold": 7}
    recording = play([(0.0, 30, 1), (0.0, 1, 6)], walks=walks, **keys)
    columns = ("start_s", "decode_seqs", "prefill_tokens")
    assert rows(recording, *columns) == [(0.0, 0, 8), (1.0, 1, 7), (2.0, 1, 7), (3.0, 1, 7), (4.0, 1, 2), (5.0, 1, 0)]
    assert seen(recording) == {"a": (5.0, 5.0), "b": (1.0, 6.0)}


@pytest.mark.parametrize(
    ("keys", "changes"),
    [
        ({"max_num_seqs": 3}, [True, True, False]),
        ({"max_num_seqs": 3, "long_prefill_token_threshold": 4, **ADAPTIVE}, [True, True, True]),
        ({"max_num_seqs": 1}, [True, False, False]),
        ({"max_num_seqs": 1, "long_prefill_token_threshold": 4, **ADAPTIVE}, [True, False, False]),
    ],
)
def test_an_arrival_that_changes_no_plan_says_so(keys: dict[str, Any], changes: list[bool]) -> None:
    """With a free seat the head of the queue counts, or any request if the cap is adaptive; without, none does."""
    flags = VllmV1Settings.model_validate({"max_num_batched_tokens": 8, **keys})
    policy = VllmV1(flags, PagedKVCache(100, 16), RequestLimits())
    jobs = [Job(Request(str(index), 0.0, 50, 1), index) for index in range(3)]
    said = [policy.add(jobs[0])]
    assert policy.plan(0.0) is not None
    assert said + [policy.add(job) for job in jobs[1:]] == changes


def test_a_long_prompt_in_front_takes_the_budget_of_decodes_behind_it() -> None:
    """The list has no decodes first: with a cap the long prompt lets others in, without room they get nothing."""
    recording = play(
        [(0.0, 40, 1), (0.0, 3, 6)],
        max_num_batched_tokens=8,
        max_num_seqs=8,
        long_prefill_token_threshold=8,
        scheduler_reserve_full_isl=False,
    )
    assert seen(recording)["a"] == (5.0, 5.0)
    assert seen(recording)["b"][0] == 6.0  # admitted only once something is left of the budget


def test_first_that_does_not_fit_ends_admission() -> None:
    """A short prompt behind a long one without room waits, though it would fit."""
    recording = play([(0.0, 16, 5), (0.5, 80, 1), (0.5, 16, 1)], blocks=6)
    assert seen(recording, "first_scheduled_s") == {"a": 0.0, "b": 5.0, "c": 5.0}


@pytest.mark.parametrize(("reserve", "scheduled_s"), [(True, 4.0), (False, 1.0)])
def test_whole_prompts_must_fit_if_the_version_checks_it(reserve: bool, scheduled_s: float) -> None:
    """With the check a prompt waits until all of it fits the free blocks; without, its first piece is enough."""
    recording = play(
        [(0.0, 48, 4), (0.5, 64, 1)],
        blocks=7,
        max_num_batched_tokens=48,
        max_num_seqs=48,
        scheduler_reserve_full_isl=reserve,
    )
    assert seen(recording, "first_scheduled_s")["b"] == scheduled_s


def test_the_watermark_holds_only_while_others_run() -> None:
    """Alone a request may take the blocks that admissions leave free otherwise."""
    recording = play([(0.0, 64, 2), (0.0, 32, 1)], blocks=6, watermark_blocks=2)
    assert seen(recording, "first_scheduled_s") == {"a": 0.0, "b": 2.0}


def test_the_latest_admitted_gives_way_and_comes_back_in_front() -> None:
    """Blocks short, the last of the list is preempted; no request is admitted in that step."""
    recording = play([(0.0, 16, 20), (0.0, 16, 20), (3.0, 16, 1)], blocks=3)
    assert seen(recording, "preemptions") == {"a": 0, "b": 1, "c": 0}
    assert seen(recording, "finish_s")["a"] == 20.0
    assert seen(recording, "first_scheduled_s")["c"] >= seen(recording)["b"][0]


def test_the_least_urgent_gives_way_though_it_was_served_already() -> None:
    """With priorities the victim may stand before the one that needs its blocks; its token is taken back."""
    requests = [
        Request("a", 0.0, 32, 9, priority=1),
        Request("b", 0.0, 16, 18, priority=0),
    ]
    recording = play(requests, blocks=3, policy="priority")
    # b is admitted first; a takes its place in the list behind it and does not fit beside b's second block
    assert seen(recording, "preemptions")["b"] == 0
    assert seen(recording, "finish_s")["b"] == 18.0


def test_equal_urgency_is_decided_by_the_id_as_text() -> None:
    """Of two with equal priority and arrival "10" comes before "2"."""
    requests = [Request("2", 0.0, 16, 1), Request("10", 0.0, 16, 1)]
    later = play(requests, policy="priority", max_num_seqs=1)
    assert seen(later, "first_scheduled_s") == {"2": 1.0, "10": 0.0}
    older = play(requests, policy="priority", max_num_seqs=1, rules=VllmV1Rules(ties_by_id=False))
    assert seen(older, "first_scheduled_s") == {"2": 0.0, "10": 1.0}


@pytest.mark.parametrize(
    ("lone", "adaptive", "finish_s"), [(True, False, 1.0), (False, False, 4.0), (False, True, 1.0)]
)
def test_threshold_of_one_who_is_alone(lone: bool, adaptive: bool, finish_s: float) -> None:
    """A cap of 25 tokens makes 100 tokens take 4 steps, unless the version spares who is alone or shares the budget."""
    rules = VllmV1Rules(lone_request_uncapped=lone)
    recording = play(
        [(0.0, 100, 1)], rules=rules, long_prefill_token_threshold=25, long_prefill_token_threshold_adaptive=adaptive
    )
    assert seen(recording, "finish_s") == {"a": finish_s}


def test_adaptive_threshold_is_a_fair_share_of_the_budget() -> None:
    """With four inside, each gets a quarter of the budget where that is more than the threshold."""
    recording = play(
        [(0.0, 100, 1)] * 4,
        max_num_batched_tokens=100,
        long_prefill_token_threshold=10,
        long_prefill_token_threshold_adaptive=True,
    )
    assert rows(recording, "prefill_tokens", "prefill_seqs")[0] == (100, 4)


def test_an_arrival_shrinks_the_fair_share_of_who_waits() -> None:
    """Two blocks are free: half the budget needs three, a third of it two; so the head starts when a third arrives."""
    recording = play(
        [(0.0, 48, 10), (0.5, 80, 1), (3.5, 16, 1)],
        blocks=6,
        max_num_batched_tokens=80,
        long_prefill_token_threshold=5,
        long_prefill_token_threshold_adaptive=True,
        scheduler_reserve_full_isl=False,
    )
    assert seen(recording, "first_scheduled_s")["b"] == 4.0


def test_answers_end_at_max_model_len() -> None:
    """prompt + output reach max_model_len and no further."""
    recording = play([(0.0, 10, 100), (0.0, 20, 1)], max_model_len=20)
    assert seen(recording, "tokens_emitted", "status") == {"a": (10, "finished"), "b": (0, "rejected")}


def test_planning_ahead_sees_an_arrival_one_step_later() -> None:
    """While a step runs the next one is planned already: an arrival waits for the one after it."""
    asked = [(0.0, 16, 10), (1.5, 16, 1)]
    assert seen(play(asked))["b"] == (3.0, 3.0)
    assert seen(play(asked, async_scheduling=True))["b"] == (4.0, 4.0)


def test_planning_ahead_frees_blocks_one_step_later() -> None:
    """What a finished request held is free when its last step has ended, and one more has been planned by then."""
    asked = [(0.0, 16, 2), (0.0, 16, 6), (0.5, 32, 1)]
    assert seen(play(asked, blocks=4), "first_scheduled_s")["c"] == 2.0
    assert seen(play(asked, blocks=4, async_scheduling=True), "first_scheduled_s")["c"] == 2.0
    assert seen(play(asked, blocks=4, async_scheduling=True))["c"] == (4.0, 4.0)


def test_who_is_preempted_with_a_token_under_way_still_gets_it() -> None:
    """A step that only preempts ends with the one under way; the token that it makes is kept and delivered in time."""
    asked = [(0.0, 16, 2), (0.0, 16, 6)]
    recording = play(asked, blocks=3, async_scheduling=True, scheduler_reserve_full_isl=False)
    assert seen(recording, "tokens_emitted") == {"a": 2, "b": 6}
    assert seen(recording, "preemptions") == {"a": 0, "b": 1}


def test_equal_prompts_of_one_step_hit_what_is_computed_in_it() -> None:
    """Blocks are found from the moment they are scheduled, by a request admitted later in the same step."""
    twins = [Request(name, 0.0, 40, 1, prompt=((1, 0, 40),)) for name in "ab"]
    recording = play(twins, caching=True)
    assert seen(recording, "cached_tokens") == {"a": 0, "b": 32}
    assert recording.steps["prefill_tokens"].tolist() == [48]


@pytest.mark.parametrize("ahead", [False, True])
def test_a_block_that_was_kept_before_the_engine_went_idle_is_found_before_its_copy(ahead: bool) -> None:
    """A lookup takes the oldest copy of a block, also one whose last token came when nothing was planned any more.

    a fills two blocks and leaves. b, with those 32 tokens, finds the first block and computes the second again, since
    its last token is always computed. c, with one token more, finds a's copy of the second block, which no request
    uses, and not the one b is making: 1 shared block, b's copy, a's copy and c's third block are in use.
    """
    known = ((1, 0, 31), (50, 0, 1))
    a = Request("a", 0.0, 31, 2, prompt=((1, 0, 31),), output_stream=50)
    b = Request("b", 9.0, 32, 1, prompt=known)
    c = Request("c", 9.0, 33, 1, prompt=(*known, (2, 0, 1)))
    recording = play([a, b, c], caching=True, async_scheduling=ahead)
    assert seen(recording, "cached_tokens") == {"a": 0, "b": 16, "c": 32}
    assert rows(recording, "prefill_tokens", "blocks_used") == [(31, 2), (0, 2), (17, 4)]


def test_a_fresh_policy_checks_its_seats_against_its_budget() -> None:
    """Fewer tokens than seats is refused, as the engine refuses it."""
    with pytest.raises(ValueError, match="at least max_num_seqs = 9"):
        VllmV1Settings.model_validate({"max_num_seqs": 9, "max_num_batched_tokens": 8})


def test_a_request_that_ends_and_is_preempted_leaves_once() -> None:
    """Asynchronous: its last token is on its way, the next plan preempts it, and then its client times out."""
    tick_s = 2**-7
    flags = {"max_num_seqs": 6, "max_num_batched_tokens": 14, "async_scheduling": True}
    asked = [
        Request("a", 25 * tick_s, 1, 3),
        Request("b", 27 * tick_s, 32, 10),
        Request("c", 28 * tick_s, 29, 2),
        Request("d", 30 * tick_s, 1, 4),
        Request("e", 36 * tick_s, 21, 1, gives_up_s=38.5 * tick_s),
    ]
    for fast in (True, False):
        policy = VllmV1(VllmV1Settings.model_validate(flags), PagedKVCache(17, 4), RequestLimits())
        options = RunOptions(fast=fast, check=True)
        recording = Simulation(list(asked), policy, ConstantStepTime(tick_s), options).run()
        assert recording.requests["status"].tolist() == ["finished"] * 4 + ["timed_out"]
        assert policy.kv.used == 0


def test_cached_blocks_of_two_steps_in_flight_need_their_lag() -> None:
    """A prefix cache without the registration lag of asynchronous scheduling is rejected."""
    flags = VllmV1Settings(max_num_seqs=2, max_num_batched_tokens=8, async_scheduling=True)
    with pytest.raises(InputError, match="2 steps in flight: needs a registration lag of 1"):
        VllmV1(flags, PrefixKVCache(8, 4), RequestLimits())


class OneToken(VllmV1):
    """Has a budget below its seats."""

    steady_rules = ("budget",)

    def budget(self) -> int:
        """Return room for the first request of the list."""
        return 16 if self.prefilling or self.waiting else 1


def test_a_budget_below_the_decodes_serves_the_first_of_the_list() -> None:
    """With one token per step the request admitted first makes all of its tokens, then the other one."""
    flags = VllmV1Settings(max_num_seqs=2, max_num_batched_tokens=16)
    recording = both_ways(lambda: OneToken(flags, PagedKVCache(100, 16), RequestLimits()), [(0.0, 2, 4), (0.0, 2, 3)])
    assert seen(recording, "first_token_s", "finish_s") == {"a": (1.0, 4.0), "b": (1.0, 6.0)}
