"""Two steps in flight: what a policy does with requests of both. Worked out by hand."""

from __future__ import annotations

import pytest

from simqueue.kvcache import PagedKVCache
from simqueue.request import Job, Request
from simqueue.schedulers.keys import VllmV1Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.vllm_v1 import VllmV1

from ..helpers.playing import both_ways, seen


def planning_ahead(*, blocks: int, seats: int = 4, walks: bool = False, ahead: bool = True) -> VllmV1:
    """Return vLLM's V1 scheduler, by default with asynchronous scheduling, and blocks of 16 tokens."""
    keys = {"max_num_seqs": seats, "max_num_batched_tokens": 64, "async_scheduling": ahead}
    policy = VllmV1(VllmV1Settings.model_validate(keys), PagedKVCache(blocks, 16), RequestLimits())
    policy.walks = walks
    return policy


def test_a_request_preempted_ahead_leaves_with_the_step_in_which_it_runs() -> None:
    """b runs in the step in flight and is preempted by the next plan; cancelled then, it leaves with the first."""
    policy = planning_ahead(blocks=3)
    a, b = (Job(Request(name, 0.0, 16, output), index) for index, (name, output) in enumerate((("a", 2), ("b", 6))))
    for job in (a, b):
        policy.add(job)
    plans = [policy.plan(0.0), policy.plan(0.0)]
    first, second = (plan for plan in plans if plan is not None)
    assert second.preempted == [b]
    assert policy.cancel(b, [first, second]) == []
    assert (first.finishing, second.finishing) == ([b], [a])
    policy.commit(first)
    policy.commit(second)
    assert (policy.members(), policy.waiting_count, policy.kv.used) == ([], 0, 0)


def test_a_waiting_request_leaves_at_once() -> None:
    """b waits for the only seat and is part of neither step in flight."""
    policy = planning_ahead(blocks=10, seats=1)
    a, b = (Job(Request(name, 0.0, 16, 9), index) for index, name in enumerate("ab"))
    for job in (a, b):
        policy.add(job)
    plans = [plan for plan in (policy.plan(0.0), policy.plan(0.0)) if plan is not None]
    assert policy.cancel(b, plans) == [b]
    assert [plan.finishing for plan in plans] == [[], []]
    assert (policy.members(), policy.waiting_count) == ([a], 0)


@pytest.mark.parametrize("walks", [False, True])
def test_a_request_that_is_leaving_holds_up_no_other(walks: bool) -> None:
    """The step after a's last token is planned while a still has its seat: b, after a in the list, gets its token."""
    recording = both_ways(lambda: planning_ahead(blocks=10, walks=walks), [(0.0, 1, 2), (0.0, 1, 5)])
    assert seen(recording, "first_token_s", "finish_s", "max_itl_s") == {"a": (1.0, 2.0, 1.0), "b": (1.0, 5.0, 1.0)}


def test_a_request_preempted_by_the_step_in_flight_leaves_at_once() -> None:
    """With one step in flight b, which that step has preempted, runs in no step and waits: it leaves when cancelled."""
    policy = planning_ahead(blocks=3, ahead=False)
    a, b = (Job(Request(name, 0.0, 16, output), index) for index, (name, output) in enumerate((("a", 2), ("b", 6))))
    for job in (a, b):
        policy.add(job)
    first = policy.plan(0.0)
    assert first is not None
    policy.commit(first)
    second = policy.plan(1.0)
    assert second is not None
    assert second.preempted == [b]
    assert policy.cancel(b, [second]) == [b]
    assert second.finishing == [a]
