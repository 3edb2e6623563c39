"""Every invariant can fail: each is shown a run in which one thing has been falsified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simqueue.errors import RunError
from simqueue.kvcache import PagedKVCache
from simqueue.request import Job, Request
from simqueue.schedulers import Policy
from simqueue.schedulers.keys import VllmV1Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.vllm_v1 import VllmV1
from simqueue.simulation import Recording, RunOptions, Simulation
from simqueue.simulation.invariants import verify
from simqueue.simulation.recording import KeptTable
from simqueue.simulation.request_log import RequestLog

from ..helpers.playing import ONE_SECOND, make_policy, requests_of

Run = tuple[Recording, Policy, RequestLog]
GIVEN: dict[str, Any] = {"max_num_seqs": 2}


@pytest.fixture
def run() -> Run:
    """Three requests, the last of them unfinished at the horizon with 2 of its 3 tokens."""
    requests = requests_of([(0.0, 4, 3), (0.5, 4, 2), (1.0, 4, 3)])
    policy = make_policy("chunked", GIVEN, blocks=10)
    simulation = Simulation(requests, policy, ONE_SECOND, RunOptions(horizon_s=5.0, check=True))
    return simulation.run(), policy, simulation.requests


@pytest.fixture
def whole_run() -> Run:
    """Two requests that both finish; all gaps are one second."""
    policy = make_policy("chunked", GIVEN, blocks=10)
    simulation = Simulation(requests_of([(0.0, 4, 3), (0.0, 4, 3)]), policy, ONE_SECOND, RunOptions(check=True))
    return simulation.run(), policy, simulation.requests


def with_request(recording: Recording, row: int, **values: Any) -> Recording:
    """Return the recording with some values of one request changed."""
    requests = {name: column.copy() for name, column in recording.requests.items()}
    for name, value in values.items():
        requests[name][row] = value
    return replace(recording, requests=requests)


def with_step(recording: Recording, row: int, **values: Any) -> Recording:
    """Return the recording with some values of one row of steps changed."""
    steps = {name: column.copy() for name, column in recording.steps.items()}
    for name, value in values.items():
        steps[name][row] = value
    return replace(recording, steps=KeptTable(steps))


def with_gaps(recording: Recording, **columns: Any) -> Recording:
    """Return the recording with other columns of gaps."""
    return replace(recording, gaps=KeptTable({**recording.gaps, **columns}))


def test_true_runs_pass(run: Run, whole_run: Run) -> None:
    """What is falsified below is fine as it is."""
    verify(*run)
    verify(*whole_run)


@pytest.mark.parametrize(
    ("falsify", "named"),
    [
        (lambda r: with_request(r, 0, status="lost"), "every request ends in one way"),
        (lambda r: with_request(r, 0, request_id="b"), "each request ends once: 2 differs from 3"),
        (lambda r: with_step(r, 0, duration_s=0.0), "every step takes time: 0.0 differs from > 0"),
        (lambda r: with_step(r, 1, start_s=0.5), "steps follow each other: 0.5 differs from 0.0"),
        (
            lambda r: with_request(r, 0, arrival_s=0.5),
            "first_scheduled_s comes after arrival_s: -0.5 differs from >= 0",
        ),
        (lambda r: with_request(r, 0, first_scheduled_s=1.5), "first_token_s comes after first_scheduled_s: -0.5 "),
        (lambda r: with_request(r, 0, first_token_s=3.5), "last_token_s comes after first_token_s: -0.5 "),
        (lambda r: with_request(r, 0, finish_s=2.5), "finish_s comes after last_token_s: -0.5 "),
        (lambda r: with_request(r, 0, tokens_emitted=2), "finished requests have all tokens: 4 differs from 5"),
        (lambda r: with_request(r, 2, tokens_emitted=4), "no request gets more tokens than asked: 1 differs from 0"),
        (lambda r: with_request(r, 2, tokens_emitted=1), r"tokens emitted = first tokens \+ gaps: 6 differs from 7"),
        (
            lambda r: with_gaps(r, tokens=r.gaps["tokens"] + 1),
            r"tokens emitted = first tokens \+ gaps: 7 differs from ",
        ),
        (lambda r: with_gaps(r, gap_s=r.gaps["gap_s"] + 0.5), "the gaps between tokens add up"),
        (lambda r: with_request(r, 0, max_itl_s=1.25), "the longest gap is a request's longest"),
        (lambda r: with_step(r, 0, blocks_used=11), "used blocks fit the pool: 11 differs from 10"),
        (lambda r: with_request(r, 0, arrival_s=-0.5), "area under the number inside"),
    ],
)
def test_falsified_recording_is_named(run: Run, falsify: Callable[[Recording], Recording], named: str) -> None:
    """The invariant that does not hold is named in the error."""
    recording, policy, recorder = run
    with pytest.raises(RunError, match=f"invariant broken: {named}"):
        verify(falsify(recording), policy, recorder)


def test_gap_of_nobody_is_named(whole_run: Run) -> None:
    """A gap that no token has is found, even where all sums are right."""
    recording, policy, recorder = whole_run
    assert recording.gaps["gap_s"].tolist() == [1.0, 1.0]
    assert recording.gaps["tokens"].tolist() == [2, 2]
    falsified = with_gaps(recording, tokens=np.array([0, 4]))
    with pytest.raises(RunError, match="every gap belongs to a request: 0 differs from >= 1"):
        verify(falsified, policy, recorder)


def test_steps_shorter_than_the_hardware_allows_are_named(whole_run: Run) -> None:
    """A step faster than the step-time model's smallest one is found."""
    recording, policy, recorder = whole_run
    verify(recording, policy, recorder, shortest_step_s=1.0)
    with pytest.raises(RunError, match=r"no step is shorter than the hardware allows: .* differs from 1\.01"):
        verify(recording, policy, recorder, shortest_step_s=1.01)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"finish_s": 9.0}, "a request leaves with its last token: 6.0 differs from 0.0"),
        ({"max_itl_s": np.nan}, "a request with more than one token has a longest gap: 1 differs from 0"),
        ({"max_itl_s": 0.25}, "the longest gap fits its request"),
    ],
)
def test_requests_are_held_against_their_own_gaps(whole_run: Run, values: dict[str, float], named: str) -> None:
    """Each finished request is checked by itself, so that two faults cannot cancel."""
    recording, policy, recorder = whole_run
    with pytest.raises(RunError, match=f"invariant broken: {named}"):
        verify(with_request(recording, 0, **values), policy, recorder)


def test_block_that_never_comes_back_is_named(whole_run: Run) -> None:
    """After the last departure nothing may be in use."""
    recording, policy, recorder = whole_run
    policy.kv.take(1)
    with pytest.raises(RunError, match="an idle pool is empty: 1 differs from 0"):
        verify(recording, policy, recorder)


def test_time_inside_is_compared(whole_run: Run) -> None:
    """Little's law on the path: an area that does not match the times spent inside is found."""
    recording, policy, recorder = whole_run
    recorder.inside_area_s += 1e-6
    with pytest.raises(RunError, match="area under the number inside = time spent inside"):
        verify(recording, policy, recorder)


# -- what policies check of themselves -------------------------------------------------------------------------------


def busy(scheduler: str, **keys: Any) -> Any:
    """Return a policy in the middle of things: a and b make tokens, c and d are partly prefilled or wait."""
    policy = make_policy(scheduler, keys, blocks=40, block_size=4)
    for index, (prompt, output) in enumerate([(4, 9), (6, 5), (30, 4), (30, 4)]):
        policy.add(Job(Request(str(index), 0.0, prompt, output), index))
    for step in range(2):
        policy.commit(policy.plan(float(step)))
    policy.check()
    return policy


def lose_a_block(policy: Any) -> None:
    """Take a block for no request."""
    policy.kv.take(1)


def count_one_more(policy: Any) -> None:
    """Let the decode counters see one request too many."""
    policy.decodes.seqs += 1


def forget_a_prefill(policy: Any) -> None:
    """Lose sight of a request that is partly prefilled."""
    del policy.prefilling[next(iter(policy.prefilling))]


def seat_too_many(policy: Any) -> None:
    """Take a seat away under those who sit."""
    policy.seats.total = 1


def end_too_soon(policy: Any) -> None:
    """Claim that a request has one step less to go than noted."""
    next(job for job in policy.running if job.decoding).last_step = 1


@pytest.mark.parametrize(
    ("falsify", "named"),
    [
        (lose_a_block, "KV cache: .* differ from the pool's 40"),
        (count_one_more, "decode counters"),
        (forget_a_prefill, r"3 requests run; \(2, 0, 0\) are decoding, prefilling and leaving"),
        (seat_too_many, "3 requests run on 1 seats"),
        (end_too_soon, "next end at step"),
    ],
)
def test_iteration_policy_finds_its_own_faults(falsify: Callable[[Any], None], named: str) -> None:
    """`check` compares pool, seats and counters with a walk over all requests."""
    policy = busy("chunked", max_num_seqs=3, max_num_batched_tokens=16)
    falsify(policy)
    with pytest.raises(RunError, match=named):
        policy.check()


def forget_who_is_open(policy: Any) -> None:
    """Count a request as done that has tokens to make."""
    policy.wave.open.pop()


def miscount_prompts(policy: Any) -> None:
    """Let the wave's summed prompts be off by one."""
    policy.wave.open_prompt_tokens += 1


@pytest.mark.parametrize(
    ("falsify", "named"),
    [
        (lose_a_block, "KV cache: .* differ from the pool's 40"),
        (forget_who_is_open, "the wave has 1 open requests, a walk finds 2"),
        (miscount_prompts, "the wave's summed prompts differ"),
    ],
)
def test_static_policy_finds_its_own_faults(falsify: Callable[[Any], None], named: str) -> None:
    """`check` compares the pool and the wave's sums with a walk over the wave."""
    policy = busy("static", max_num_seqs=2)
    falsify(policy)
    with pytest.raises(RunError, match=named):
        policy.check()


@pytest.mark.parametrize("scheduler", ["static", "chunked"])
def test_idle_policy_that_holds_a_block_is_found(scheduler: str) -> None:
    """The check also holds before the first request."""
    policy = make_policy(scheduler)
    policy.check()
    policy.kv.take(1)
    with pytest.raises(RunError, match=r"KV cache: 999 free \+ 0 held"):
        policy.check()


def test_a_step_may_begin_with_the_horizon() -> None:
    """A client that gives up at the horizon, as its next step begins, leaves blocks in a pool that is not idle."""
    flags = {"max_num_seqs": 8, "max_num_batched_tokens": 8, "async_scheduling": True}
    policy = VllmV1(VllmV1Settings.model_validate(flags), PagedKVCache(10, 16), RequestLimits())
    impatient = Request("a", 0.0, 1, 5, gives_up_s=2.0)
    recording = Simulation([impatient], policy, ONE_SECOND, RunOptions(horizon_s=2.0, check=True)).run()
    assert recording.requests["status"].tolist() == ["timed_out"]
    assert (recording.unfinished_step_s, policy.kv.used) == (0.0, 1)
