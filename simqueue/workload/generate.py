"""From workload settings and a seed to the requests of one replication."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from simqueue.errors import InputError
from simqueue.request import Request
from simqueue.workload.inline import listed_requests
from simqueue.workload.settings import WorkloadSettings
from simqueue.workload.streams import stream
from simqueue.workload.traces import Luck, StreamedTrace, replay


class RequestStream(Protocol):
    """Requests that can be counted, and gone through as often as one likes."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Request]: ...


@dataclass(frozen=True, slots=True)
class Traffic:
    """The requests of one replication.

    Attributes
    ----------
    requests : sized iterable of Request
        In order of arrival; requests of one instant stay in the order of their source.
    notes : tuple of str
        What was dropped, sorted or found empty: one line each, for people.
    dropped_rows : int
        Trace rows left out because they had no tokens.
    """

    requests: RequestStream
    notes: tuple[str, ...] = ()
    dropped_rows: int = 0


def generate(settings: WorkloadSettings, *, seed: int, replication: int = 0, base_dir: Path) -> Traffic:
    """Return the traffic of one replication.

    The same arguments give the same requests to the last bit. Arrivals, prompt lengths and output lengths (and the
    choice of rows when a trace is thinned) have a random stream each, so changing one leaves the others as they are.

    Parameters
    ----------
    settings : WorkloadSettings
        Where requests come from.
    seed, replication : int
        Select the random streams; both at least 0.
    base_dir : Path
        The folder that relative paths in the settings start from.

    Raises
    ------
    InputError
        If a file is missing or wrong, or the settings cannot be met (more requests than a trace has rows).
    """
    if settings.requests is not None:
        traffic = Traffic(listed_requests(settings.requests))
    elif settings.trace is not None and settings.trace.stream:
        thin = partial(stream, seed, replication, "trace.thin")
        read = StreamedTrace(settings.trace, base_dir, thin, settings.num_requests)
        traffic = Traffic(read, read.notes, read.dropped_rows)
    elif settings.trace is not None:
        luck = Luck(stream(seed, replication, "trace.thin"), stream(seed, replication, "trace.spread"))
        played = replay(settings.trace, base_dir, luck, settings.num_requests)
        traffic = Traffic(played.requests, played.notes, played.dropped_rows)
    else:
        traffic = Traffic(_synthetic(settings, seed, replication, base_dir))
    if len(traffic.requests):
        return traffic
    return Traffic([], (*traffic.notes, "the workload has no requests"), traffic.dropped_rows)


def _synthetic(settings: WorkloadSettings, seed: int, replication: int, base_dir: Path) -> list[Request]:
    """Return requests with random arrivals and lengths; ids count them from 0."""
    if settings.arrivals is None or settings.prompt_tokens is None or settings.output_tokens is None:
        raise InputError("workload: arrivals need prompt_tokens and output_tokens")
    arrival_s = settings.arrivals.resolved(base_dir).times(
        stream(seed, replication, "arrivals"), num_requests=settings.num_requests, until_s=settings.arrivals_for_s
    )
    n = len(arrival_s)
    prompts = settings.prompt_tokens.resolved(base_dir).sample(stream(seed, replication, "prompt_tokens"), n)
    outputs = settings.output_tokens.resolved(base_dir).sample(stream(seed, replication, "output_tokens"), n)
    columns = zip(arrival_s.tolist(), prompts.tolist(), outputs.tolist(), strict=True)
    return [Request(str(i), at_s, prompt, output) for i, (at_s, prompt, output) in enumerate(columns)]
