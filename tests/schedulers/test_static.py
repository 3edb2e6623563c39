"""Static waves on scenarios worked out by hand, steps of one second unless said otherwise."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from simqueue.kvcache import PagedKVCache
from simqueue.request import Job, Request
from simqueue.schedulers import RequestLimits, Static
from simqueue.schedulers.base import Plan
from simqueue.schedulers.keys import StaticSettings
from simqueue.steptime import Batch
from simqueue.steptime.linear import LinearStepTime

from ..helpers.playing import make_policy, play, requests_of, rows, seen, simulate

ASKED = [(0.0, 4, 3), (0.0, 2, 1), (0.5, 1, 2)]
"""a and b make the first wave, c, which comes under way, the second."""


def test_wave_ends_with_its_longest_request() -> None:
    """Tokens come when they are generated; seats, blocks and answers are released together at the wave's end."""
    recording = play("static", {"max_num_seqs": 2}, ASKED)
    # 0 s: both prompts; 1 s and 2 s: a alone makes tokens (attends to 5, 6) on two held seats; 3 s: c
    assert seen(recording, "first_token_s", "last_token_s", "finish_s") == {
        "a": (1.0, 3.0, 3.0),
        "b": (1.0, 1.0, 3.0),
        "c": (4.0, 5.0, 5.0),
    }
    assert rows(
        recording, "start_s", "repeat", "decode_seqs", "context_tokens", "prefill_tokens", "running", "waiting"
    ) == [
        (0.0, 1, 0, 0, 6, 2, 0),
        (1.0, 2, 1, 5, 0, 2, 1),
        (3.0, 1, 0, 0, 1, 1, 0),
        (4.0, 1, 1, 2, 0, 1, 0),
    ]


def test_idle_slots_are_counted() -> None:
    """Rows times steps, and how many of them made no token."""
    recording = play("static", {"max_num_seqs": 2}, ASKED)
    assert recording.slot_steps == 2 + 2 * 2 + 1 + 1
    assert recording.idle_slot_steps == 2  # b's row, twice


def test_own_end_releases_the_answer_but_not_the_wave() -> None:
    """With ``release: own_end`` b is done at its last token; c still waits for the wave to end."""
    recording = play("static", {"max_num_seqs": 2, "release": "own_end"}, ASKED)
    assert seen(recording) == {"a": (1.0, 3.0), "b": (1.0, 1.0), "c": (4.0, 5.0)}
    assert rows(recording, "running") == [(2,), (1,), (1,), (1,)]


def test_tokens_may_come_with_the_wave() -> None:
    """With ``emit: wave_end`` the first token comes when it is made, all others together at the wave's end."""
    recording = play("static", {"max_num_seqs": 2, "emit": "wave_end"}, [(0.0, 4, 4), (0.0, 2, 2), (0.0, 1, 1)])
    assert seen(recording, "first_token_s", "last_token_s", "finish_s", "max_itl_s") == {
        "a": (1.0, 4.0, 4.0, 3.0),
        "b": (1.0, 4.0, 4.0, 3.0),
        "c": (5.0, 5.0, 5.0, None),
    }
    # a waits 3 s for its second token and 0 s for the next two, b 3 s for its second
    gaps = sorted(zip(recording.gaps["gap_s"].tolist(), recording.gaps["tokens"].tolist(), strict=True))
    assert [gap for gap, count in gaps for _ in range(count)] == [0.0, 0.0, 3.0, 3.0]


def test_step_costs_padding_and_idle_rows() -> None:
    """Every row costs the longest prompt in the prefill and a decode in every step to the wave's end."""
    eighths = LinearStepTime(
        overhead_s=0.0, per_prefill_token_s=1 / 8, decode_base_s=0.0, per_decode_s=1 / 4, per_context_token_s=1 / 16
    )
    recording = play("static", {"max_num_seqs": 2}, ASKED[:2], step_time=eighths)
    # 2 rows x 4 tokens / 8; then 2/4 + 2 x 5 / 16 and 2/4 + 2 x 6 / 16
    assert rows(recording, "start_s", "duration_s", "last_step_s") == [(0.0, 1.0, 1.0), (1.0, 1.125 + 1.25, 1.25)]


def test_fixed_wave_waits_until_it_is_full_or_the_oldest_has_waited_long_enough() -> None:
    """A full wave starts at once, a partial one ``wave_timeout_s`` after the arrival of its oldest request."""
    keys = {"max_num_seqs": 2, "batch": "fixed", "wave_timeout_s": 5.0}
    full = play("static", keys, [(0.0, 1, 2), (3.0, 1, 2)])
    assert seen(full, "first_scheduled_s") == {"a": 3.0, "b": 3.0}
    alone = play("static", keys, [(0.0, 1, 2), (9.0, 1, 2)])
    assert seen(alone, "first_scheduled_s") == {"a": 5.0, "b": 14.0}
    late = play("static", keys, [(0.0, 1, 9), (0.0, 1, 9), (2.0, 1, 1)])
    assert seen(late, "first_scheduled_s")["c"] == 9.0  # overdue since 7 s, the wave ends at 9 s


def test_arrival_at_the_very_timeout_joins() -> None:
    """The wave that times out at the instant of an arrival has seen that arrival."""
    keys = {"max_num_seqs": 3, "batch": "fixed", "wave_timeout_s": 5.0}
    recording = play("static", keys, [(0.0, 1, 1), (5.0, 1, 1)])
    assert seen(recording, "first_scheduled_s") == {"a": 5.0, "b": 5.0}


def test_fixed_wave_without_a_timeout_may_never_start() -> None:
    """Nothing ever fills the wave: the run ends, and the warning names the request and the key that starts the wave."""
    recording = play("static", {"max_num_seqs": 2, "batch": "fixed"}, [(0.0, 1, 1)])
    assert seen(recording, "status", "finish_s") == {"a": ("unfinished", None)}
    assert recording.warnings == (
        "1 request can never be completed and is unfinished: a; the last wave has 1 of max_num_seqs = 2; "
        "wave_timeout_s would start it",
    )


def test_wave_is_no_larger_than_its_padded_reservation() -> None:
    """Every row reserves the longest prompt and output of the wave; who would not fit starts the next one."""
    recording = play("static", {}, [(0.0, 6, 1), (0.0, 1, 5), (0.0, 1, 1)], blocks=14, block_size=1)
    # a needs 6; with b both rows need 6 + 5 - 1 = 10 of 14 blocks: b and c (5 each) wait for the second wave
    assert rows(recording, "start_s", "blocks_used", "running", "waiting") == [
        (0.0, 6, 1, 2),
        (1.0, 10, 2, 0),
        (2.0, 10, 2, 0),
    ]
    assert seen(recording) == {"a": (1.0, 1.0), "b": (2.0, 6.0), "c": (2.0, 6.0)}


def test_those_who_end_together_leave_in_order_of_admission() -> None:
    """Seats are given back in list order, so who ends in one step is listed as admitted."""
    policy = make_policy("static", {"release": "own_end"})
    jobs = [Job(request, index) for index, request in enumerate(requests_of([(0.0, 1, 2), (0.0, 1, 3), (0.0, 1, 2)]))]
    for job in jobs:
        policy.add(job)
    policy.commit(policy.plan(0.0))
    assert policy.plan(1.0).finishing == [jobs[0], jobs[2]]


def test_keys_that_contradict_each_other_are_refused() -> None:
    """Tokens held back to the wave's end go with answers released there; a timeout with waves that wait."""
    with pytest.raises(ValidationError, match=r"emit\s+needs release: wave_end"):
        StaticSettings(emit="wave_end", release="own_end")
    with pytest.raises(ValidationError, match=r"wave_timeout_s\s+needs batch: fixed"):
        StaticSettings(wave_timeout_s=1.0)


@pytest.mark.parametrize(
    ("keys", "emitted", "finish_s"),
    [
        ({}, (6, 2, 4), (6, 3, 6)),
        ({"release": "own_end"}, (6, 2, 4), (6, 3, 4)),
        ({"emit": "wave_end"}, (6, 1, 4), (6, 3, 6)),
    ],
)
def test_client_that_gives_up_leaves_its_wave_at_the_end_of_the_step(
    keys: dict[str, str], emitted: tuple[int, ...], finish_s: tuple[float, ...]
) -> None:
    """b gives up at 2.5 s and is let go at 3 s with the tokens that it had by 2.5 s; the others go on as they were."""
    asked = [Request("a", 0.0, 10, 6), Request("b", 0.0, 10, 9, gives_up_s=2.5), Request("c", 0.0, 4, 4)]
    recording = play("static", {"max_num_seqs": 3, **keys}, asked)
    assert seen(recording, "status") == {"a": "finished", "b": "timed_out", "c": "finished"}
    assert tuple(seen(recording, "tokens_emitted").values()) == emitted
    assert tuple(seen(recording, "finish_s").values()) == finish_s
    gaps = sum(recording.gaps["tokens"].tolist())
    assert gaps == sum(emitted) - 3


@pytest.mark.parametrize(("release", "seats"), [("wave_end", [2, 2, 2]), ("own_end", [2, 1, 1])])
def test_members_hold_seats(release: str, seats: list[int]) -> None:
    """Seats are held to the wave's end, or to each request's own; after the wave by no request."""
    policy = make_policy("static", {"release": release})
    assert policy.members() == []
    jobs = [Job(request, index) for index, request in enumerate(requests_of([(0.0, 1, 1), (0.0, 1, 3)]))]
    for job in jobs:
        policy.add(job)
    held, states = [], [policy.state()]
    for step in range(3):
        plan = policy.plan(float(step))
        held.append(plan.running)
        if step < 2:
            policy.commit(plan)
            assert policy.members() == jobs[-seats[step + 1] :]
        else:
            policy.commit(plan)
        states.append(policy.state())
    assert held == seats
    assert policy.members() == []
    assert len(set(states)) == 4  # the queue before, one and two tokens made, nothing left


def test_outputs_that_are_cut_end_the_wave_earlier() -> None:
    """With a limit of 10 tokens and outputs that are cut there, a prompt of 5 makes 5 tokens of 20."""
    policy = Static(StaticSettings(max_num_seqs=2), PagedKVCache(100, 16), RequestLimits(10, cuts_output=True))
    recording = simulate(policy, [(0.0, 5, 20), (0.0, 5, 3)])
    assert recording.requests["tokens_emitted"].tolist() == [5, 3]
    assert seen(recording, "finish_s") == {"a": 5.0, "b": 5.0}


def static_plan(asked: list[tuple[float, int, int]], **keys: str) -> tuple[Static, list[Job], Plan]:
    """Return a policy, its requests and the first plan of their wave."""
    policy: Static = make_policy("static", {"max_num_seqs": 2, **keys})
    jobs = [Job(request, index) for index, request in enumerate(requests_of(asked))]
    for job in jobs:
        policy.add(job)
    plan = policy.plan(0.0)
    assert isinstance(plan, Plan)
    return policy, jobs, plan


def test_work_is_the_batch_without_padding() -> None:
    """Prompts of 4 and 2 tokens run as two rows of 4; once the shorter output is made, one of two rows works."""
    policy, _, plan = static_plan([(0.0, 4, 3), (0.0, 2, 1)])
    assert plan.batch == Batch(prefill=((0, 4), (0, 4)), sampled_rows=2)
    assert plan.work == Batch(prefill=((0, 4), (0, 2)), sampled_rows=2)
    policy.commit(plan)
    plan = policy.plan(1.0)
    assert isinstance(plan, Plan)
    assert plan.batch == Batch(2, 2, 10, sampled_rows=2)
    assert plan.work == Batch(1, 1, 5, sampled_rows=1)


def test_seats_are_free_between_waves_alone() -> None:
    """The next wave has all seats; a running one lets no request in."""
    policy, _, plan = static_plan([(0.0, 4, 1)])
    assert policy.free_seats == 0
    policy.commit(plan)
    assert policy.free_seats == 2


@pytest.mark.parametrize(("emit", "ended"), [("as_made", [1]), ("wave_end", [0])])
def test_a_wave_leaves_with_its_last_open_request(emit: str, ended: list[int]) -> None:
    """b, the longest, is cancelled in the step after a's last token: both leave with that step.

    Tokens that come as they are made end there for b alone, since a has its own; held back, those of a come then.
    """
    policy, jobs, plan = static_plan([(0.0, 1, 1), (0.0, 1, 9)], emit=emit)
    policy.commit(plan)
    plan = policy.plan(1.0)
    assert isinstance(plan, Plan)
    assert policy.cancel(jobs[1], [plan]) == []
    assert plan.finishing == [jobs[1], jobs[0]]
    assert plan.ended == [jobs[index] for index in ended]
    policy.commit(plan)
    assert policy.members() == []
    assert policy.kv.used == 0


def test_a_request_that_ends_with_the_plan_ends_once_if_it_is_cancelled() -> None:
    """b makes its last token with this plan, and a goes on: b is cancelled and is in the plan's lists once."""
    policy, jobs, plan = static_plan([(0.0, 1, 3), (0.0, 1, 1)])
    assert plan.ended == [jobs[1]]
    assert policy.cancel(jobs[1], [plan]) == []
    assert (plan.ended, plan.finishing) == ([jobs[1]], [jobs[1]])


def test_a_wave_can_fill_the_pool() -> None:
    """One row of 6 + 5 - 1 tokens needs all 10 blocks; two rows of 5 do as well."""
    assert seen(play("static", {}, [(0.0, 6, 5)], blocks=10, block_size=1)) == {"a": (1.0, 5.0)}
    both = play("static", {}, [(0.0, 1, 5), (0.0, 1, 5)], blocks=10, block_size=1)
    assert seen(both) == {"a": (1.0, 5.0), "b": (1.0, 5.0)}


def test_a_wave_ends_if_its_last_open_request_is_cancelled_between_steps() -> None:
    """a has its token and keeps its seat for b; b is cancelled while no step runs: both leave, and the pool is free."""
    policy, jobs, plan = static_plan([(0.0, 1, 1), (0.0, 1, 9)])
    policy.commit(plan)
    assert policy.cancel(jobs[1], []) == [jobs[1], jobs[0]]
    assert (policy.members(), policy.kv.used, policy.free_seats) == ([], 0, 2)


def test_a_number_of_seats_beyond_any_machine_is_refused_by_every_scheduler() -> None:
    """A million seats are taken, and one more is not."""
    for name, key in (("static", "max_num_seqs"), ("chunked", "max_num_seqs"), ("llamacpp", "n_parallel")):
        more = {"max_num_batched_tokens": 10**7} if name == "chunked" else {}
        recording = play(name, {key: 10**6, **more}, [(0.0, 10, 2)])
        assert seen(recording) == {"a": (1.0, 2.0)}
        with pytest.raises(ValidationError, match=key):
            make_policy(name, {key: 10**6 + 1, **more})
