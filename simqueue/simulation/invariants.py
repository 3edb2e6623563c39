"""What must hold in every run, as code. Used with ``RunOptions.check``, and in all tests.

Each check compares two independent accounts of the same thing; sums of floats agree to 1e-9 relative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from simqueue.errors import RunError
from simqueue.request import Status
from simqueue.schedulers.base import Policy
from simqueue.simulation.recording import Column, Recording
from simqueue.simulation.request_log import RequestLog

TOLERANCE = 1e-9


def verify(recording: Recording, policy: Policy, log: RequestLog, shortest_step_s: float = 0.0) -> None:
    """Check a finished run; no step may be shorter than `shortest_step_s`.

    Raises
    ------
    RunError
        Naming the first invariant that does not hold, with both numbers.
    """
    _requests_are_conserved(recording)
    _times_are_in_order(recording)
    _steps_follow_each_other(recording.steps)
    _steps_take_their_time(recording.steps, shortest_step_s)
    _tokens_are_conserved(recording)
    _gaps_span_the_answers(recording)
    _answers_end_with_their_last_token(recording, may_stay=policy.keeps_finished)
    _blocks_stay_in_the_pool(recording.steps, recording.blocks_total)
    if recording.unfinished_step_s is None:  # a client can time out in the step in flight at the horizon
        _idle_pool_is_empty(recording, policy)
    _little(recording, log)


def verify_fleet(
    recording: Recording,
    policies: Sequence[Policy | None],
    log: RequestLog,
    shortest_steps_s: Sequence[float],
    *,
    may_stay: bool,
) -> None:
    """Check a finished run of a fleet.

    Parameters
    ----------
    recording : Recording
    policies : sequence of Policy or None
        What each replica runs at the end; None if it does not run.
    log : RequestLog
    shortest_steps_s : sequence of float
        For each replica.
    may_stay : bool
        Whether requests can keep their seats after their last token at some replica.

    Raises
    ------
    RunError
        As `verify`.
    """
    fleet = recording.fleet
    if fleet is None:
        raise RunError("verify_fleet: the recording has no fleet")
    _requests_are_conserved(recording)
    _times_are_in_order(recording)
    _tokens_are_conserved(recording)
    _gaps_span_the_answers(recording)
    _answers_end_with_their_last_token(recording, may_stay=may_stay)
    _little(recording, log)
    for number, facts in enumerate(fleet.replicas):
        own = recording.steps["replica"] == number
        steps = {name: column[own] for name, column in recording.steps.items()}
        _steps_follow_each_other(steps)
        _steps_take_their_time(steps, shortest_steps_s[number])
        _blocks_stay_in_the_pool(steps, facts.blocks_total)
        _steps_are_of_running_replicas(steps, fleet.lives, number)
        policy = policies[number]
        if policy is not None:
            policy.check()
            if facts.lost_step_s is None:
                _idle_pool_is_empty(recording, policy)


def _steps_are_of_running_replicas(steps: Mapping[str, Column], lives: Mapping[str, Column], number: int) -> None:
    own = lives["replica"] == number
    times_s, runs = lives["time_s"][own], np.isin(lives["state"][own], ("ready", "draining"))
    middle_s = steps["start_s"] + steps["duration_s"] / 2
    at = np.searchsorted(times_s, middle_s) - 1
    wrong = (at < 0) | ~runs[at]
    if wrong.any():
        _fail(f"replica {number} runs when it makes a step", float(middle_s[wrong][0]), "a time at which it runs")


def _fail(what: str, left: object, right: object) -> None:
    raise RunError(f"invariant broken: {what}: {left} differs from {right}")


def _close(what: str, left: float, right: float) -> None:
    if not math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        _fail(what, left, right)


def _requests_are_conserved(recording: Recording) -> None:
    status = recording.requests["status"]
    counts = {kind: int(np.count_nonzero(status == kind.value)) for kind in Status}
    if sum(counts.values()) != len(status):
        _fail("every request ends in one way", counts, len(status))
    if len(set(recording.requests["request_id"])) != len(status):
        _fail("each request ends once", len(set(recording.requests["request_id"])), len(status))


def _steps_follow_each_other(steps: Mapping[str, Column]) -> None:
    starts, durations = steps["start_s"], steps["duration_s"]
    if len(starts) == 0:
        return
    if not (durations > 0).all():
        _fail("every step takes time", float(durations.min()), "> 0")
    overlap = starts[:-1] + durations[:-1] - starts[1:]
    if len(overlap) and overlap.max() > TOLERANCE * max(1.0, float(starts[-1])):
        _fail("steps follow each other", float(overlap.max()), 0.0)


def _times_are_in_order(recording: Recording) -> None:
    requests = recording.requests
    order = ("arrival_s", "first_scheduled_s", "first_token_s", "last_token_s", "finish_s")
    for earlier, later in pairwise(order):
        gap = requests[later] - requests[earlier]
        if (gap < 0).any():
            _fail(f"{later} comes after {earlier}", float(np.nanmin(gap)), ">= 0")


def _steps_take_their_time(steps: Mapping[str, Column], shortest_s: float) -> None:
    # a duration is a difference of two times, and so is only as exact as they are
    rounding_s = 1e-15 * (steps["start_s"] + steps["duration_s"])
    slack_s = steps["duration_s"] + rounding_s - steps["repeat"] * shortest_s * (1 - TOLERANCE)
    if len(slack_s) and slack_s.min() < 0:
        row = int(slack_s.argmin())
        _fail("no step is shorter than the hardware allows", float(steps["duration_s"][row]), shortest_s)


def _answers_end_with_their_last_token(recording: Recording, *, may_stay: bool) -> None:
    """Each finished request by itself: it leaves with its last token, and its gaps fit between first and last."""
    requests = recording.requests
    done = requests["status"] == Status.FINISHED.value
    last_s, gaps = requests["last_token_s"][done], requests["tokens_emitted"][done] - 1
    if not may_stay and (last_s != requests["finish_s"][done]).any():
        late_s = float(np.abs(requests["finish_s"][done] - last_s).max())
        _fail("a request leaves with its last token", late_s, 0.0)
    span_s, longest_s = last_s - requests["first_token_s"][done], requests["max_itl_s"][done]
    slack_s = TOLERANCE * (1 + last_s)
    if (np.isnan(longest_s) != (gaps == 0)).any():
        _fail(
            "a request with more than one token has a longest gap",
            int(np.isnan(longest_s).sum()),
            int((gaps == 0).sum()),
        )
    if (longest_s > span_s + slack_s).any() or (longest_s * gaps < span_s - slack_s).any():
        _fail("the longest gap fits its request", "a gap", "first to last token")


def _tokens_are_conserved(recording: Recording) -> None:
    requests = recording.requests
    emitted, asked = requests["tokens_emitted"], requests["due_tokens"]
    finished = requests["status"] == Status.FINISHED.value
    if (emitted[finished] != asked[finished]).any():
        _fail("finished requests have all tokens", int(emitted[finished].sum()), int(asked[finished].sum()))
    if (emitted > asked).any():
        _fail("no request gets more tokens than asked", int((emitted - asked).max()), 0)
    again = _made_again(recording)
    made = int(emitted.sum()) + int(again["tokens"].sum())
    first_tokens = sum(int(np.count_nonzero(~np.isnan(part["first_token_s"]))) for part in (requests, again))
    gaps = int(recording.gaps["tokens"].sum())
    if made != first_tokens + gaps:
        _fail("tokens emitted = first tokens + gaps", made, first_tokens + gaps)


def _made_again(recording: Recording) -> Mapping[str, Column]:
    """Return the stays that failed and whose tokens are not part of an answer."""
    if recording.fleet is None:
        return _NO_STAYS
    stays = recording.fleet.stays
    return {name: column[stays["kept"] == 0] for name, column in stays.items()}


_NO_STAYS: Mapping[str, Column] = dict.fromkeys(
    ("tokens", "first_token_s", "last_token_s", "max_itl_s"), np.empty(0, dtype=np.float64)
)


def _gaps_span_the_answers(recording: Recording) -> None:
    requests, again = recording.requests, _made_again(recording)
    spans = np.concatenate([part["last_token_s"] - part["first_token_s"] for part in (requests, again)])
    gap_s, tokens = recording.gaps["gap_s"], recording.gaps["tokens"]
    _close(
        "the gaps between tokens add up to the time from first to last token",
        float((gap_s * tokens).sum()),
        float(np.nansum(spans)),
    )
    if len(gap_s) and tokens.min() < 1:
        _fail("every gap belongs to a request", int(tokens.min()), ">= 1")
    if len(gap_s):
        longest = float(np.nanmax(np.concatenate((requests["max_itl_s"], again["max_itl_s"]))))
        if longest != gap_s.max():
            _fail("the longest gap is a request's longest", float(gap_s.max()), longest)


def _blocks_stay_in_the_pool(steps: Mapping[str, Column], total: int) -> None:
    used = steps["blocks_used"]
    if len(used) and used.max() > total:
        _fail("used blocks fit the pool", int(used.max()), total)


def _idle_pool_is_empty(recording: Recording, policy: Policy) -> None:
    all_left = (recording.requests["status"] != Status.UNFINISHED.value).all()
    if all_left and policy.kv.used:
        _fail("an idle pool is empty", policy.kv.used, 0)


def _little(recording: Recording, log: RequestLog) -> None:
    """Little's law on the sample path: the area under the number inside is the time that all requests spent inside."""
    requests = recording.requests
    end_s = np.where(requests["status"] == Status.UNFINISHED.value, recording.end_s, requests["finish_s"])
    spent = float((end_s - requests["arrival_s"]).sum())
    _close("area under the number inside = time spent inside", log.inside_area_s, spent)
