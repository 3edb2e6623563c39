"""The stays of a request at replicas: how one follows another that failed, and all of them as one request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from simqueue.request import Job, Request, Trip


def follow(trip: Trip, job: Job, *, keeps_tokens: bool) -> Job:
    """Return the stay that follows one that failed, with or without the tokens that were made there."""
    trip.keeps_tokens = keeps_tokens
    request, made = job.request, job.tokens_emitted
    if keeps_tokens and made:
        request = _continued(request, made, job.index)
    successor = Job(request, job.index)
    successor.trip = trip
    if keeps_tokens:
        successor.last_token_s = job.last_token_s
        if job.first_token_s is not None and trip.first_token_at is None:
            trip.first_token_at = trip.last_member
    trip.lost.append(job)
    trip.job = successor
    return successor


def _continued(request: Request, made: int, index: int) -> Request:
    """Return what is left of a request of which `made` tokens exist: they are part of the prompt now."""
    stream, prompt = request.output_stream, request.prompt
    if prompt is not None and stream is not None:
        prompt = (*prompt, (stream, request.output_start, made))
    elif prompt is not None:
        prompt = (*prompt, (-1 - index, request.output_start, made))  # a stream of its own
    return replace(
        request,
        prompt=prompt,
        prompt_tokens=request.prompt_tokens + made,
        output_tokens=request.output_tokens - made,
        output_start=request.output_start + made,
        max_output_tokens=None if request.max_output_tokens is None else request.max_output_tokens - made,
    )


def whole(job: Job) -> Job:
    """Return a request with all its stays as one; itself if it has only one, or if the tokens of others do not count.

    A stay that follows one whose tokens count begins with the time of its last token, so that the gap between the two
    is its own.
    """
    trip = job.trip
    if trip is None or not trip.lost:
        return job
    stays = [*trip.lost, job] if trip.keeps_tokens else [job]
    made = Job(trip.request, job.index)
    made.trip, made.submitted_s, made.joined_tick = trip, job.submitted_s, job.joined_tick
    made.first_scheduled_s = _first([stay.first_scheduled_s for stay in stays])
    made.first_token_s = _first([stay.first_token_s for stay in stays])
    made.last_token_s = _first([stay.last_token_s for stay in reversed(stays)])
    longest_s = [stay.max_itl_s for stay in stays if stay.max_itl_s is not None]
    made.max_itl_s = max(longest_s) if longest_s else None
    made.tokens_emitted = sum([stay.tokens_emitted for stay in stays])
    made.output_tokens = made.tokens_emitted - job.tokens_emitted + job.output_tokens
    made.cached_tokens = next((stay.cached_tokens for stay in stays if stay.first_scheduled_s is not None), 0)
    made.preemptions = sum([stay.preemptions for stay in stays])
    made.recomputed_tokens = sum([stay.recomputed_tokens for stay in stays])
    return made


def _first(times_s: Sequence[float | None]) -> float | None:
    """Return the first of some times that is known."""
    return next((time_s for time_s in times_s if time_s is not None), None)
