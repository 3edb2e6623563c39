"""When a replica sees arrivals, when it plans, when it holds its GPU. Steps of one second, worked out by hand."""

from __future__ import annotations

import gc
from typing import Any, ClassVar

import pytest

import simqueue
from simqueue.errors import InputError, RunError
from simqueue.request import Request
from simqueue.schedulers import Chunked
from simqueue.schedulers.base import Plan
from simqueue.schedulers.vllm_v1 import VllmV1
from simqueue.simulation import RunOptions, Simulation
from simqueue.steptime import Batch, StepTime
from simqueue.steptime.linear import ConstantStepTime

from ..helpers.playing import ONE_SECOND, make_policy, play, requests_of, rows, seen, simulate


def requests_named(asked: list[tuple[float, int, int]]) -> list[Request]:
    """Return requests named by number."""
    return [Request(str(number), *one) for number, one in enumerate(asked)]


SCHEDULED = ("first_scheduled_s", "first_token_s", "finish_s")


class Watched(Chunked):
    """Notes when it is asked for a plan and how many requests wait then."""

    steady_rules = ("plan",)

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.asked: list[tuple[float, int]] = []

    def plan(self, now_s: float) -> Plan | None:
        """Note and decide."""
        self.asked.append((now_s, self.waiting_count))
        return super().plan(now_s)


def test_arrival_during_a_step_is_seen_at_its_end() -> None:
    """A request that arrives while a step runs enters with the next one."""
    recording = play("chunked", {}, [(0.0, 1, 4), (1.5, 1, 1)])
    assert seen(recording, *SCHEDULED)["b"] == (2.0, 3.0, 3.0)


@pytest.mark.parametrize(("arrival_s", "scheduled_s"), [(49.5, 50.0), (50.0, 50.0), (50.000001, 51.0)])
def test_arrival_cuts_folded_steps_where_plain_ones_would_see_it(arrival_s: float, scheduled_s: float) -> None:
    """In the middle of equal steps an arrival enters at the first step end at or after it, the instant included."""
    recording = play("chunked", {}, [(0.0, 1, 100), (arrival_s, 1, 1)])
    assert seen(recording, *SCHEDULED) == {
        "a": (0.0, 1.0, 100.0),
        "b": (scheduled_s, scheduled_s + 1, scheduled_s + 1),
    }


def test_arrival_behind_a_full_house_cuts_nothing_and_is_counted() -> None:
    """With one seat taken an arrival changes no plan; from the next step on the rows show one more waiting."""
    recording = play("chunked", {"max_num_seqs": 1}, [(0.0, 1, 10), (4.5, 1, 1), (6.0, 1, 1)])
    assert rows(recording, "start_s", "repeat", "waiting") == [
        (0.0, 1, 0),
        (1.0, 4, 0),
        (5.0, 1, 1),
        (6.0, 4, 2),
        (10.0, 1, 1),
        (11.0, 1, 0),
    ]
    policy = make_policy(Watched, {"max_num_seqs": 1})
    simulate(policy, [(0.0, 1, 10), (4.5, 1, 1), (6.0, 1, 1)])
    assert [now_s for now_s, _ in policy.asked] == [0.0, 1.0, 10.0, 11.0, 12.0]


def test_step_end_comes_before_arrivals_of_its_instant() -> None:
    """The seat that a step's end frees goes to a request that arrives at that instant."""
    recording = play("chunked", {"max_num_seqs": 1}, [(0.0, 1, 1), (1.0, 1, 1)])
    assert seen(recording, *SCHEDULED)["b"] == (1.0, 2.0, 2.0)
    assert rows(recording, "running", "waiting") == [(1, 0), (1, 0)]


def test_idle_replica_plans_once_having_seen_all_arrivals_of_the_instant() -> None:
    """Three requests of one instant share its first step, which is planned in one go."""
    policy = make_policy(Watched)
    recording = simulate(policy, [(3.0, 1, 1), (3.0, 2, 1), (3.0, 3, 1)])
    assert policy.asked == [(3.0, 3), (4.0, 0)]
    assert rows(recording, "start_s", "prefill_seqs", "prefill_tokens") == [(3.0, 3, 6)]


def test_replica_plans_once_at_a_step_end_with_arrivals() -> None:
    """All who arrive at the instant of a step's end are in the one plan made then."""
    policy = make_policy(Watched)
    simulate(policy, [(0.0, 1, 2), (1.0, 1, 1), (1.0, 1, 1), (2.0, 1, 1)])
    assert policy.asked == [(0.0, 1), (1.0, 2), (2.0, 1), (3.0, 0)]


def test_arrivals_of_one_instant_keep_their_order() -> None:
    """Who stands earlier in the workload is admitted earlier."""
    recording = play("chunked", {"max_num_seqs": 1}, [(2.0, 9, 1), (2.0, 1, 1), (2.0, 5, 1)])
    assert seen(recording, "finish_s") == {"a": 3.0, "b": 4.0, "c": 5.0}


def test_horizon_includes_its_instant() -> None:
    """A step that ends at the horizon counts, a request that arrives at it has arrived, and no step starts there."""
    recording = play("chunked", {}, [(0.0, 1, 3), (3.0, 1, 1), (3.1, 1, 1)], horizon_s=3.0)
    assert seen(recording, "status", *SCHEDULED) == {
        "a": ("finished", 0.0, 1.0, 3.0),
        "b": ("unfinished", None, None, None),
    }
    assert rows(recording, "start_s", "repeat") == [(0.0, 1), (1.0, 2)]
    assert (recording.end_s, recording.warnings) == (3.0, ())


def test_step_that_ends_behind_the_horizon_delivers_nothing() -> None:
    """The run stops inside a step: its tokens do not exist, who was in it is unfinished."""
    recording = play("chunked", {}, [(0.0, 1, 5)], horizon_s=2.5)
    assert seen(recording, "status", "tokens_emitted", "last_token_s") == {"a": ("unfinished", 2, 2.0)}
    assert rows(recording, "start_s", "repeat") == [(0.0, 1), (1.0, 1)]
    assert recording.end_s == 2.5


def test_run_ends_with_its_last_request() -> None:
    """Before the horizon there may be nothing left: the run ends with the last departure."""
    assert play("chunked", {}, [(0.0, 1, 2)], horizon_s=100.0).end_s == 2.0
    assert play("chunked", {}, [(0.0, 1, 2)]).end_s == 2.0


def test_gpu_is_held_for_busy_periods_only() -> None:
    """The GPU is a resource: taken when work comes, kept over all steps, given back when nothing is left."""
    requests = requests_of([(1.0, 1, 3), (2.5, 1, 1), (7.0, 1, 1)])
    simulation = Simulation(requests, make_policy("chunked"), ONE_SECOND, RunOptions(check=True))
    gpu, env = simulation.replica.gpu, simulation.env
    taken_s: list[float] = []
    ask = gpu.request

    def noting() -> Any:
        taken_s.append(env.now)
        return ask()

    gpu.request = noting  # type: ignore[method-assign] # to look on
    held = {}
    for time_s in (0.5, 1.5, 2.5, 3.5, 4.5, 6.5, 7.5, 8.5):
        env.run(until=time_s)
        held[time_s] = gpu.count
    assert held == {0.5: 0, 1.5: 1, 2.5: 1, 3.5: 1, 4.5: 0, 6.5: 0, 7.5: 1, 8.5: 0}
    assert taken_s == [1.0, 7.0]


def test_step_ends_can_be_rounded_to_ticks() -> None:
    """With 1000 ticks a second ten steps of a hundredth end at exactly 0.1 s; without, the sum is what floats give."""
    asked = [Request("a", 0.0, 1, 10)]

    def finish_s(ticks_per_s: int | None, *, fast: bool) -> float:
        options = RunOptions(fast=fast, check=True, ticks_per_s=ticks_per_s)
        recording = Simulation(asked, make_policy("chunked"), ConstantStepTime(0.01), options).run()
        finish: float = recording.requests["finish_s"][0]
        return finish

    assert [finish_s(1000, fast=fast) for fast in (True, False)] == [0.1, 0.1]
    summed_s = 0.0
    for _ in range(10):
        summed_s += 0.01
    assert [finish_s(None, fast=fast) for fast in (True, False)] == [summed_s, summed_s]


def test_no_requests_no_run() -> None:
    """A run of nothing ends at once, with empty tables."""
    recording = simulate(make_policy("chunked"), [])
    assert (len(recording.requests["request_id"]), len(recording.steps["start_s"]), recording.end_s) == (0, 0, 0.0)


def test_departures_are_reported_one_by_one() -> None:
    """The progress callback hears the number of requests that have left, refused ones included."""
    heard: list[int] = []
    policy = make_policy("chunked", {"max_num_seqs": 1}, blocks=4, block_size=1)
    requests = requests_of([(0.0, 1, 1), (0.0, 9, 1), (0.0, 1, 1)])
    Simulation(requests, policy, ONE_SECOND, RunOptions(check=True), heard.append).run()
    assert heard == [1, 2, 3]


def test_circle_ends_the_run_with_everybody_named() -> None:
    """Two requests that together and alone never fit take each other's blocks for ever: the run ends and says so."""
    keys = {"max_num_seqs": 2, "max_num_batched_tokens": 8, "chunk_tokens": 1}
    recording = play("chunked", keys, [(0.0, 4, 1), (0.0, 4, 1)], blocks=2, block_size=1, reject=False)
    assert seen(recording, "status", "tokens_emitted") == {"a": ("unfinished", 0), "b": ("unfinished", 0)}
    assert recording.warnings == ("2 requests can never be completed and are unfinished: a, b",)


@pytest.mark.parametrize("arrival_s", [0.5, 1.0, 2.5, 3.5, 4.0, 77.0])
def test_whoever_can_run_is_served_beside_a_circle(arrival_s: float) -> None:
    """A short request gets past two that circle, whenever it comes: also within the step that closes the circle."""
    keys = {"max_num_seqs": 2, "max_num_batched_tokens": 8, "chunk_tokens": 1, "order": "shortest_prompt"}
    asked = [(0.0, 4, 1), (0.0, 4, 1), (arrival_s, 1, 1)]
    recording = play("chunked", keys, asked, blocks=2, block_size=1, reject=False)
    assert seen(recording, "status") == {"a": "unfinished", "b": "unfinished", "c": "finished"}


class Counted(StepTime):
    """Steps of one second that are counted."""

    def __init__(self) -> None:
        self.priced = 0

    def seconds(self, batch: Batch) -> float:
        """Count, and return a second."""
        self.priced += 1
        return 1.0


def test_a_fold_is_priced_as_far_as_the_next_arrival() -> None:
    """An answer of 10,000 tokens that twenty arrivals cut is not priced to its end twenty times."""
    counted = Counted()
    asked = [(0.0, 1, 10_000), *((float(at), 1, 1) for at in range(100, 2100, 100))]
    recording = simulate(make_policy("chunked"), requests_named(asked), step_time=counted)
    assert recording.requests["finish_s"][0] == 10_000.0
    assert recording.steps["repeat"].sum() == 10_000
    assert counted.priced < 12_000


def test_policy_is_checked_after_every_commit() -> None:
    """With ``check`` a policy that loses a block is found out at the end of that step."""

    class Leaking(Chunked):
        def commit(self, plan: Plan) -> None:
            super().commit(plan)
            if plan.batch.decode_seqs:
                self.kv.take(1)

    with pytest.raises(RunError, match=r"KV cache: 999 free \+ 0 held blocks differ from the pool's 1000"):
        simulate(make_policy(Leaking), [(0.0, 1, 2)])


def test_a_clock_coarser_than_the_steps_is_refused() -> None:
    """A resolution that would round a step to nothing ends in one line that names both numbers."""
    scenario = {
        "step_time": {"kind": "constant", "seconds": 0.01},
        "kv_cache": {"blocks": 10},
        "clock_resolution_s": 1.0,
        "workload": {"requests": [{"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 2}]},
        "policies": {"chunked": {"scheduler": "chunked"}},
    }
    with pytest.raises(InputError, match=r"clock_resolution_s = 1: must be finer than the steps, one takes 0\.01 s"):
        simqueue.run(scenario)


def test_tokens_between_two_preemptions_are_progress_whatever_the_state() -> None:
    """A policy whose state is always the same preempts c, then b, with tokens in between: the run goes on to its end.

    Three requests of 1 prompt token and 6 output tokens need 18 blocks at their peaks, of which there are 10.
    """

    class Stateless(Chunked):
        def state(self) -> int:
            return 0

    recording = simulate(make_policy(Stateless, blocks=10, block_size=1), [(0.0, 1, 6)] * 3)
    assert seen(recording, "status", "tokens_emitted") == dict.fromkeys("abc", ("finished", 6))
    assert seen(recording, "preemptions") == {"a": 0, "b": 1, "c": 1}
    assert recording.warnings == ()


@pytest.mark.parametrize("gives_up_s", [0.0, 1.0])
def test_a_request_without_time_left_is_not_sent(gives_up_s: float) -> None:
    """A request whose timeout is at its arrival, or was before it, times out there and is not scheduled."""
    recording = simulate(make_policy("chunked"), [Request("a", 1.0, 1, 1, gives_up_s=gives_up_s), (2.0, 1, 1)])
    columns = ("status", "replica", "arrival_s", "finish_s", "first_scheduled_s")
    assert seen(recording, *columns) == {
        "a": ("timed_out", -1, 1.0, 1.0, None),
        "b": ("finished", 0, 2.0, 3.0, 2.0),
    }


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collector_pauses_during_a_run_alone(enabled: bool) -> None:
    """It does not run while steps are planned, and is as before once the run has ended."""

    class Looking(Chunked):
        steady_rules = ("plan",)
        collects: ClassVar[list[bool]] = []

        def plan(self, now_s: float) -> Plan | None:
            self.collects.append(gc.isenabled())
            return super().plan(now_s)

    was_enabled = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        simulate(make_policy(Looking), [(0.0, 1, 2)])
        assert (set(Looking.collects), gc.isenabled()) == ({False}, enabled)
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_a_step_in_flight_at_the_horizon_is_measured() -> None:
    """At a horizon inside a step the run tells how long the step had run; between steps there is none."""
    inside = simulate(make_policy("chunked"), [(0.0, 1, 5)], horizon_s=2.25)
    assert inside.unfinished_step_s == 0.25
    assert simulate(make_policy("chunked"), [(0.0, 1, 2), (9.0, 1, 1)], horizon_s=5.0).unfinished_step_s is None


def test_rejected_requests_have_no_replica_and_no_times() -> None:
    """A request larger than the pool ends at its arrival, with the reason."""
    recording = simulate(make_policy("chunked", blocks=4, block_size=1), [(0.0, 1, 1), (2.0, 9, 1)])
    columns = ("status", "replica", "finish_s", "first_scheduled_s", "last_token_s")
    assert seen(recording, *columns) == {
        "a": ("finished", 0, 1.0, 0.0, 1.0),
        "b": ("rejected", -1, 2.0, None, None),
    }
    assert seen(recording, "reject_reason") == {"a": None, "b": "prompt 9 + output 1 needs 9 blocks, the pool has 4"}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("steps_before", [1, 2, 40])
def test_case_92_a_step_that_cannot_move_the_clock_ends_the_run_folded_or_not(
    is_async: bool, steps_before: int
) -> None:
    """From 2**26 s on the clock has units of 2**-26 s; half a unit is rounded away, also in the middle of a fold."""
    step_s = 2.0**-27
    requests = [Request("a", 2.0**26 - steps_before * step_s, 4, 400)]
    for fast in (True, False):
        policy = make_policy(VllmV1, {"max_num_seqs": 2, "max_num_batched_tokens": 64, "async_scheduling": is_async})
        with pytest.raises(InputError, match=r"step_time: a step is too short to move the clock at 6.71089e\+07 s"):
            simulate(policy, requests, step_time=ConstantStepTime(step_s), fast=fast)


def test_case_92_a_run_that_ends_before_time_stands_still_is_not_refused() -> None:
    """40 steps fit before 2**26 s; a fold of them computes no end beyond what is needed."""
    step_s = 2.0**-27
    start_s = 2.0**26 - 40 * step_s
    recording = play("chunked", {}, [(start_s, 4, 40)], step_time=ConstantStepTime(step_s))
    assert seen(recording) == {"a": (start_s + step_s, 2.0**26)}
