"""From workload settings and a seed to the traffic of one replication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import merge
from itertools import chain
from operator import attrgetter
from pathlib import Path

from simqueue.errors import inside
from simqueue.request import Request
from simqueue.traffic import RequestStream, Retry, Rules, Traffic
from simqueue.workload.attributes import RequestAttributes
from simqueue.workload.build import build_arrivals
from simqueue.workload.inline import listed_requests
from simqueue.workload.request_lengths import Lengths
from simqueue.workload.sessions import conversation_group, user_group
from simqueue.workload.settings import WorkloadSettings
from simqueue.workload.streams import Draws
from simqueue.workload.synthetic import synthetic_requests
from simqueue.workload.traces.traffic import trace_traffic

_STREAM_STEP = 2**56
"""Distance between the token streams of one workload and those of the next: workloads share no tokens."""

_by_arrival = attrgetter("arrival_s")


def generate(
    settings: WorkloadSettings,
    *,
    seed: int,
    replication: int = 0,
    base_dir: Path,
    name: str | None = None,
    kept: bool = True,
) -> Traffic:
    """Return the traffic of one replication of one workload.

    The same arguments give the same requests to the last bit. Arrivals, prompt lengths, output lengths, think times,
    classes and so on have a random stream each, so changing one leaves the others unchanged.

    Parameters
    ----------
    settings : WorkloadSettings
        Where requests come from.
    seed, replication : int
        Select the random streams; both at least 0.
    base_dir : Path
        The folder that relative paths in the settings start from.
    name : str, optional
        The workload's name if there are several. It is the class of the requests, and the first part of their ids and
        of the names of the random streams.
    kept : bool
        Whether requests with random arrivals are made as a list. If false, they are made while they are iterated over,
        provided that they are independent of each other.

    Raises
    ------
    InputError
        If a file is missing or wrong, or the settings cannot be met (more requests than a trace has rows).
    """
    draws = Draws.of(seed, replication, name)
    attributes = RequestAttributes(settings, draws, name)
    traffic = _source(settings, draws, base_dir, attributes, kept=kept)
    notes = traffic.notes
    if not len(traffic.requests) and not any(group.sessions for group in traffic.session_groups):
        notes = (*notes, "the workload has no requests" if name is None else f"workload {name} has no requests")
    rules = {} if attributes.pool is None else {attributes.pool: _rules(settings, draws)}
    return replace(traffic, requests=attributes.added_to(traffic.requests), notes=notes, rules=rules)


def generate_all(
    workloads: Mapping[str, WorkloadSettings], *, seed: int, replication: int = 0, base_dir: Path
) -> Traffic:
    """Return the traffic of several workloads together; see `generate`. They share no random numbers and no tokens."""
    parts = []
    for number, (name, settings) in enumerate(workloads.items()):
        with inside(name):
            traffic = generate(settings, seed=seed, replication=replication, base_dir=base_dir, name=name)
        parts.append(_with_own_streams(traffic, number))
    rules: dict[str, Rules] = {}
    for part in parts:
        rules |= part.rules
    return Traffic(
        _merged([part.requests for part in parts]),
        tuple(note for part in parts for note in part.notes),
        sum(part.dropped_rows for part in parts),
        tuple(group for part in parts for group in part.session_groups),
        rules,
    )


def check_random(settings: WorkloadSettings, *, seed: int, base_dir: Path, name: str | None) -> None:
    """Raise what `generate` would raise for arrivals, users or sessions; see `simqueue.workload.checking.check`."""
    draws = Draws.of(seed, 0, name)
    if settings.arrivals is None:
        _source(settings, draws, base_dir, RequestAttributes(settings, draws), kept=True)
        return
    with inside("arrivals"):
        build_arrivals(settings.arrivals, base_dir).check(
            partial(draws.rng, "arrivals"), num_requests=settings.num_requests, until_s=settings.arrivals_for_s
        )
    Lengths.of(settings, base_dir)


def _source(
    settings: WorkloadSettings, draws: Draws, base_dir: Path, attributes: RequestAttributes, *, kept: bool
) -> Traffic:
    """Return the requests of the workload's source, and its notes; sessions have their attributes already."""
    if settings.requests is not None:
        return Traffic(listed_requests(settings.requests))
    if settings.trace is not None:
        return trace_traffic(settings, draws, base_dir)
    if settings.arrivals is not None:
        return Traffic(synthetic_requests(settings.arrivals, settings, draws, base_dir, kept=kept))
    if settings.users is not None:
        return Traffic([], session_groups=(user_group(settings.users, settings, draws, base_dir, attributes),))
    if settings.sessions is not None:
        group = conversation_group(settings.sessions, settings, draws, base_dir, attributes)
        return Traffic([], session_groups=(group,))
    return Traffic([])


def _rules(settings: WorkloadSettings, draws: Draws) -> Rules:
    keys = settings.retry
    if keys is None:
        return Rules(settings.max_concurrency)
    retry = Retry(keys.limit, keys.backoff_s, keys.factor, keys.jitter, draws.uniform)
    return Rules(settings.max_concurrency, retry)


def _with_own_streams(traffic: Traffic, number: int) -> Traffic:
    """Return the traffic of workload `number` with token streams that no other workload has."""
    if number == 0:
        return traffic
    offset = number * _STREAM_STEP
    groups = tuple(replace(group, stream_offset=offset) for group in traffic.session_groups)
    shifted = _ShiftedStreams(traffic.requests, offset)
    requests = list(shifted) if isinstance(traffic.requests, Sequence) else shifted
    return replace(traffic, requests=requests, session_groups=groups)


class _ShiftedStreams:
    """Requests with renumbered token streams."""

    def __init__(self, requests: RequestStream, offset: int) -> None:
        self._requests, self._offset = requests, offset

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        for request in self._requests:
            yield request.with_streams_moved(self._offset)


def _merged(streams: Sequence[RequestStream]) -> RequestStream:
    if all(isinstance(requests, Sequence) for requests in streams):
        return sorted(chain.from_iterable(streams), key=_by_arrival)
    return _MergedStreams(streams)


class _MergedStreams:
    """Several streams as one, in order of arrival; requests with equal times are in the order of the workloads."""

    def __init__(self, streams: Sequence[RequestStream]) -> None:
        self._streams = streams

    def __len__(self) -> int:
        return sum(map(len, self._streams))

    def __iter__(self) -> Iterator[Request]:
        return merge(*self._streams, key=_by_arrival)
