"""What holds for every policy on every scenario: it ends, nothing is lost, and folding steps changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simqueue.steptime import Batch, StepTime
from simqueue.steptime.linear import ConstantStepTime

from ..helpers.exact_times import CONSTANT, EXACT_LINEAR, ROUGH_LINEAR, TICK_S
from ..helpers.profiles import examples
from ..helpers.recordings import differences
from .cases import Case, cases, iteration_keys, llamacpp_keys, static_keys

any_case = cases(iteration_keys() | static_keys() | llamacpp_keys())


@dataclass(frozen=True)
class Metered(StepTime):
    """A model that allows only so many steps, so that a run without end is a failure and not a wait."""

    model: StepTime
    left: list[int]

    def seconds(self, batch: Batch) -> float:
        """Count the step."""
        self.left[0] -= 1
        assert self.left[0] >= 0, "the run takes more steps than its requests have tokens"
        return self.model.seconds(batch)


def step_bound(case: Case) -> int:
    """Return more steps than any schedule needs in which the oldest running request always gets on.

    Each of its steps computes a token of it, so its whole context and answer bound its time as the oldest. Steps of
    prompts alone come on top: each of them makes at least one token of a request.
    """
    return sum(request.prompt_tokens + 2 * request.output_tokens for request in case.requests)


def ends(case: Case) -> None:
    """Play step by step, with every check on, and see every request leave that can."""
    metered = replace(case, step_time=Metered(case.step_time, [step_bound(case)]))
    if not case.reject:  # what cannot fit may be tried in vain before the run gives up
        metered = case
    recording = metered.play(fast=False)
    status = set(recording.requests["status"])
    begun_again = [line for line in recording.warnings if line.startswith("the context was full")]
    assert bool(begun_again) == (case.scheduler == "llamacpp" and recording.requests["preemptions"].any())
    others = [line for line in recording.warnings if line not in begun_again]
    if case.reject and case.horizon_s == float("inf"):
        assert status <= {"finished", "rejected"}
        assert not others
    if "unfinished" in status and case.horizon_s == float("inf"):
        assert len(others) == 1


@examples(120, thorough=800)
@given(any_case)
def test_every_run_ends_with_all_requests_accounted_for(case: Case) -> None:
    """Every run ends within a bound on its steps, keeps all invariants, and serves the requests that can be served."""
    ends(case)


@examples(120, thorough=800)
@given(any_case)
def test_folding_changes_nothing(case: Case) -> None:
    """Folded and step-by-step runs leave the same bytes in every column."""
    assert differences(case.play(fast=True), case.play(fast=False)) == []


@examples(120)
@given(cases(iteration_keys() | static_keys(), (ROUGH_LINEAR, EXACT_LINEAR)), st.sampled_from([10**6, 1000, 128]))
def test_folding_changes_nothing_on_a_clock_of_ticks(case: Case, ticks_per_s: int) -> None:
    """Rounding step ends to ticks is done step by step, folded or not; ends are whole ticks."""
    slow_enough = replace(case.step_time, overhead_s=0.01)  # type: ignore[type-var] # both models are linear
    ticking = replace(case, ticks_per_s=ticks_per_s, step_time=slow_enough)
    recording = ticking.play(fast=True)
    assert differences(recording, ticking.play(fast=False)) == []
    finish_s = recording.requests["finish_s"][recording.requests["status"] == "finished"]
    assert (np.round(finish_s * ticks_per_s) / ticks_per_s == finish_s).all()


@examples(120)
@given(any_case)
def test_earlier_horizon_shows_the_beginning_of_the_same_run(case: Case) -> None:
    """Up to the horizon a run is the one without a horizon: same first tokens, same finishes."""
    horizon_s = 17 * TICK_S
    whole = replace(case, horizon_s=float("inf")).play()
    cut = replace(case, horizon_s=horizon_s).play()
    arrived = whole.requests["arrival_s"] <= horizon_s
    for name in ("first_scheduled_s", "first_token_s", "finish_s"):
        expected = whole.requests[name][arrived]
        # a step may begin at the horizon in the longer run only
        within = expected < horizon_s if name == "first_scheduled_s" else expected <= horizon_s
        np.testing.assert_array_equal(cut.requests[name], np.where(within, expected, np.nan))


@examples(120)
@given(cases(iteration_keys() | static_keys(), (CONSTANT,)), st.sampled_from([2.0, 4.0, 0.5]))
def test_time_has_no_scale(case: Case, factor: float) -> None:
    """Arrivals, steps and timeouts stretched by a power of two stretch the whole run by it, to the last bit."""
    keys = dict(case.keys)
    if "wave_timeout_s" in keys:
        keys["wave_timeout_s"] *= factor
    stretched = replace(
        case,
        keys=keys,
        requests=tuple(
            replace(
                request,
                arrival_s=request.arrival_s * factor,
                deadline_s=None if request.deadline_s is None else request.deadline_s * factor,
            )
            for request in case.requests
        ),
        step_time=ConstantStepTime(TICK_S * factor),
        horizon_s=case.horizon_s * factor,
    )
    plain, longer = case.play(), stretched.play()
    for name in ("first_scheduled_s", "first_token_s", "finish_s", "max_itl_s"):
        np.testing.assert_array_equal(plain.requests[name] * factor, longer.requests[name])
    np.testing.assert_array_equal(plain.requests["preemptions"], longer.requests["preemptions"])
    np.testing.assert_array_equal(plain.steps["repeat"], longer.steps["repeat"])
