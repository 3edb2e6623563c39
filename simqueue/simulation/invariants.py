"""What must hold in every run, as code. Used with ``RunOptions.check``, and in all tests.

Each check compares two independent accounts of the same thing; sums of floats agree to 1e-9 relative.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from simqueue.errors import RunError
from simqueue.request import Status
from simqueue.schedulers.base import Policy
from simqueue.simulation.recording import Recording
from simqueue.simulation.request_log import RequestLog

TOLERANCE = 1e-9


def verify(recording: Recording, policy: Policy, recorder: RequestLog, shortest_step_s: float = 0.0) -> None:
    """Check a finished run; no step may be shorter than `shortest_step_s`.

    Raises
    ------
    RunError
        Naming the first invariant that does not hold, with both numbers.
    """
    _requests_are_conserved(recording)
    _clock_goes_forward(recording)
    _steps_take_their_time(recording, shortest_step_s)
    _tokens_are_conserved(recording)
    _gaps_span_the_answers(recording)
    _answers_end_with_their_last_token(recording, policy)
    _blocks_stay_in_the_pool(recording, policy)
    _little(recording, recorder)


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


def _clock_goes_forward(recording: Recording) -> None:
    starts, durations = recording.steps["start_s"], recording.steps["duration_s"]
    if len(starts) == 0:
        return
    if not (durations > 0).all():
        _fail("every step takes time", float(durations.min()), "> 0")
    overlap = starts[:-1] + durations[:-1] - starts[1:]
    if len(overlap) and overlap.max() > TOLERANCE * max(1.0, float(starts[-1])):
        _fail("steps follow each other", float(overlap.max()), 0.0)
    requests = recording.requests
    order = ("arrival_s", "first_scheduled_s", "first_token_s", "last_token_s", "finish_s")
    for earlier, later in pairwise(order):
        gap = requests[later] - requests[earlier]
        if (gap < 0).any():
            _fail(f"{later} comes after {earlier}", float(np.nanmin(gap)), ">= 0")


def _steps_take_their_time(recording: Recording, shortest_s: float) -> None:
    steps = recording.steps
    # a duration is a difference of two times, and so is only as exact as they are
    rounding_s = 1e-15 * (steps["start_s"] + steps["duration_s"])
    slack_s = steps["duration_s"] + rounding_s - steps["repeat"] * shortest_s * (1 - TOLERANCE)
    if len(slack_s) and slack_s.min() < 0:
        row = int(slack_s.argmin())
        _fail("no step is shorter than the hardware allows", float(steps["duration_s"][row]), shortest_s)


def _answers_end_with_their_last_token(recording: Recording, policy: Policy) -> None:
    """Each finished request by itself: it leaves with its last token, and its gaps fit between first and last."""
    requests = recording.requests
    done = requests["status"] == Status.FINISHED.value
    last_s, gaps = requests["last_token_s"][done], requests["tokens_emitted"][done] - 1
    if not policy.keeps_finished and (last_s != requests["finish_s"][done]).any():
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
    first_tokens = int(np.count_nonzero(~np.isnan(requests["first_token_s"])))
    gaps = int(recording.gaps["tokens"].sum())
    if int(emitted.sum()) != first_tokens + gaps:
        _fail("tokens emitted = first tokens + gaps", int(emitted.sum()), first_tokens + gaps)


def _gaps_span_the_answers(recording: Recording) -> None:
    requests = recording.requests
    spans = requests["last_token_s"] - requests["first_token_s"]
    gap_s, tokens = recording.gaps["gap_s"], recording.gaps["tokens"]
    _close(
        "the gaps between tokens add up to the time from first to last token",
        float((gap_s * tokens).sum()),
        float(np.nansum(spans)),
    )
    if len(gap_s) and tokens.min() < 1:
        _fail("every gap belongs to a request", int(tokens.min()), ">= 1")
    if len(gap_s):
        longest = float(np.nanmax(requests["max_itl_s"]))
        if longest != gap_s.max():
            _fail("the longest gap is a request's longest", float(gap_s.max()), longest)


def _blocks_stay_in_the_pool(recording: Recording, policy: Policy) -> None:
    used = recording.steps["blocks_used"]
    if len(used) and used.max() > recording.blocks_total:
        _fail("used blocks fit the pool", int(used.max()), recording.blocks_total)
    all_left = (recording.requests["status"] != Status.UNFINISHED.value).all()
    # a client can time out in the step in flight at the horizon
    if all_left and recording.unfinished_step_s is None and policy.kv.used:
        _fail("an idle pool is empty", policy.kv.used, 0)


def _little(recording: Recording, recorder: RequestLog) -> None:
    """Little's law on the sample path: the area under the number inside is the time that all requests spent inside."""
    requests = recording.requests
    end_s = np.where(requests["status"] == Status.UNFINISHED.value, recording.end_s, requests["finish_s"])
    spent = float((end_s - requests["arrival_s"]).sum())
    _close("area under the number inside = time spent inside", recorder.inside_area_s, spent)
