"""The traffic of a workload whose requests come from a trace."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from simqueue.errors import InputError
from simqueue.traffic import Traffic
from simqueue.workload.settings import WorkloadSettings
from simqueue.workload.streams import Draws
from simqueue.workload.traces.replay import TraceStreams, replay
from simqueue.workload.traces.streaming import StreamedTrace


def trace_traffic(settings: WorkloadSettings, draws: Draws, base_dir: Path) -> Traffic:
    """Return the requests that a workload selects from its trace, read at once or (``stream: true``) in pieces.

    Parameters
    ----------
    settings : WorkloadSettings
        With a trace.
    draws : Draws
        The random streams of the workload.
    base_dir : Path
        The folder that relative paths start from.

    Raises
    ------
    InputError
        If the file does not follow its format, or has fewer rows than needed.
    """
    trace = settings.trace
    if trace is None:
        raise InputError("workload: a trace is needed")
    if trace.stream:
        streamed = StreamedTrace(trace, base_dir, partial(draws.rng, "trace.thin"), settings.num_requests)
        return Traffic(streamed, streamed.notes, streamed.dropped_rows)
    streams = TraceStreams(draws.rng("trace.thin"), draws.rng("trace.spread"))
    replayed = replay(trace, base_dir, streams, settings.num_requests)
    return Traffic(replayed.requests, replayed.notes, replayed.dropped_rows)


def check_trace(settings: WorkloadSettings, *, seed: int, base_dir: Path, name: str | None) -> None:
    """Raise what `trace_traffic` would raise in replication 0."""
    trace_traffic(settings, Draws.of(seed, 0, name), base_dir)
