"""From workload settings and a seed to the traffic of one replication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import merge
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simqueue.errors import inside
from simqueue.request import Request
from simqueue.traffic import RequestStream, Retry, Rules, SessionGroup, Traffic
from simqueue.workload.drawing import FIRST_STREAM, Draws, Lengths
from simqueue.workload.dressing import Dresser
from simqueue.workload.inline import listed_requests
from simqueue.workload.sessions import sessions, system_pieces, users
from simqueue.workload.settings import WorkloadSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Traffic", "generate", "generate_all"]

_STREAMS_APART = 2**56
"""Between the token streams of one workload and those of the next: nothing is shared across workloads."""

_AT_ONCE = 4096
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

    The same arguments give the same requests to the last bit. Arrivals, prompt lengths and output lengths, think times,
    classes and so on have a random stream each, so changing one leaves the others as they are.

    Parameters
    ----------
    settings : WorkloadSettings
        Where requests come from.
    seed, replication : int
        Select the random streams; both at least 0.
    base_dir : Path
        The folder that relative paths in the settings start from.
    name : str, optional
        The workload's name where there are several: its requests' class, and before its ids and random streams.
    kept : bool
        Whether requests with random arrivals are made as a list; else, where they are independent of each other, while
        they are gone through.

    Raises
    ------
    InputError
        If a file is missing or wrong, or the settings cannot be met (more requests than a trace has rows).
    """
    draws = Draws.of(seed, replication, name)
    dresser = Dresser(settings, draws, name)
    requests, notes, dropped = _open(settings, draws, base_dir, kept=kept)
    session_groups: tuple[SessionGroup, ...] = ()
    if settings.users is not None:
        session_groups = (users(settings, draws, base_dir, dresser),)
    elif settings.sessions is not None:
        session_groups = (sessions(settings, draws, base_dir, dresser),)
    if not len(requests) and not any(group.sessions for group in session_groups):
        notes = (*notes, "the workload has no requests" if name is None else f"workload {name} has no requests")
    rules = {} if dresser.pool is None else {dresser.pool: _rules(settings, draws)}
    return Traffic(dresser.dressed(requests), notes, dropped, session_groups, rules)


def generate_all(
    workloads: Mapping[str, WorkloadSettings], *, seed: int, replication: int = 0, base_dir: Path
) -> Traffic:
    """Return the traffic of several workloads together; see `generate`. Nothing is shared between them."""
    parts = []
    for number, (name, settings) in enumerate(workloads.items()):
        with inside(name):
            traffic = generate(settings, seed=seed, replication=replication, base_dir=base_dir, name=name)
        parts.append(_apart(traffic, number))
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


def _open(
    settings: WorkloadSettings, draws: Draws, base_dir: Path, *, kept: bool
) -> tuple[RequestStream, tuple[str, ...], int]:
    """Return the requests with fixed times, what there is to say about them, and how many rows were dropped."""
    if settings.requests is not None:
        return listed_requests(settings.requests), (), 0
    if settings.trace is not None and settings.trace.stream:
        from simqueue.workload.traces.streaming import StreamedTrace  # noqa: PLC0415  (few workloads play traces)

        read = StreamedTrace(settings.trace, base_dir, partial(draws.rng, "trace.thin"), settings.num_requests)
        return read, read.notes, read.dropped_rows
    if settings.trace is not None:
        from simqueue.workload.traces.replay import Luck, replay  # noqa: PLC0415  (few workloads play traces)

        luck = Luck(draws.rng("trace.thin"), draws.rng("trace.spread"))
        played = replay(settings.trace, base_dir, luck, settings.num_requests)
        return played.requests, played.notes, played.dropped_rows
    if settings.arrivals is not None:
        return _synthetic(settings, draws, base_dir, kept=kept), (), 0
    return [], (), 0


def _synthetic(settings: WorkloadSettings, draws: Draws, base_dir: Path, *, kept: bool) -> RequestStream:
    """Return requests with random arrivals and lengths; ids count them from 0."""
    if settings.arrivals is None:
        return []
    with inside("arrivals"):
        arrival_s = settings.arrivals.resolved(base_dir).times(
            draws.rng("arrivals"), num_requests=settings.num_requests, until_s=settings.arrivals_for_s
        )
    n = len(arrival_s)
    lengths = Lengths.of(settings, base_dir)
    prompts, outputs = lengths.sample(draws.rng("prompt_tokens"), draws.rng("output_tokens"), n)
    drawn = _Drawn(arrival_s, prompts, outputs)
    if not kept and settings.system_prompt is None and not settings.prompt_output_correlation:
        return drawn
    requests = list(drawn)
    if settings.system_prompt is None:
        return requests
    pieces = system_pieces(settings, draws, n)
    return [
        _behind(request, piece, FIRST_STREAM + i)
        for i, (request, piece) in enumerate(zip(requests, pieces, strict=True))
    ]


class _Drawn:
    """Requests that are made from their columns while they are gone through."""

    def __init__(self, *columns: NDArray[Any]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def __iter__(self) -> Iterator[Request]:
        for first in range(0, len(self), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            rows = zip(*(column[part].tolist() for column in self._columns), strict=True)
            for index, (at_s, prompt, output) in enumerate(rows, first):
                yield Request(str(index), at_s, prompt, output)


def _behind(request: Request, piece: tuple[int, int, int] | None, own_stream: int) -> Request:
    """Return a request with a shared piece of tokens before its own."""
    if piece is None:
        return request
    own = (own_stream, 0, request.prompt_tokens)
    return replace(request, prompt_tokens=piece[2] + request.prompt_tokens, prompt=(piece, own))


def _rules(settings: WorkloadSettings, draws: Draws) -> Rules:
    asked = settings.retry
    if asked is None:
        return Rules(settings.max_concurrency)
    retry = Retry(asked.limit, asked.backoff_s, asked.factor, asked.jitter, draws.uniform)
    return Rules(settings.max_concurrency, retry)


def _apart(traffic: Traffic, number: int) -> Traffic:
    """Return the traffic of workload `number` with token streams that no other workload has."""
    if number == 0:
        return traffic
    session_groups = tuple(replace(group, stream_offset=number * _STREAMS_APART) for group in traffic.session_groups)
    moved = _Moved(traffic.requests, number * _STREAMS_APART)
    requests = list(moved) if isinstance(traffic.requests, Sequence) else moved
    return replace(traffic, requests=requests, session_groups=session_groups)


class _Moved:
    """Requests whose token streams are renumbered."""

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
    return _Merged(streams)


class _Merged:
    """Several streams as one, by arrival; at one instant in the order of the workloads."""

    def __init__(self, streams: Sequence[RequestStream]) -> None:
        self._streams = streams

    def __len__(self) -> int:
        return sum(map(len, self._streams))

    def __iter__(self) -> Iterator[Request]:
        return merge(*self._streams, key=_by_arrival)
