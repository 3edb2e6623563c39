"""Traces that come with the package, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.workload.traces.base import ReadOptions

_FOLDER = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class PackagedTrace:
    """One entry of the catalog: where the file is, how to read it, whose it is the SHA-256 sum it must have and,
    where it has hash ids, how many tokens one stands for.
    """

    name: str
    path: Path
    format: str
    licence: str
    source: str
    sha256: str
    block_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """What a list of traces shows about one of them.

    Attributes
    ----------
    name : str
        As in ``trace: {name: ...}``.
    rows : int
        Requests in the file.
    span_s : float
        Seconds from the first arrival to the last.
    mean_rate_rps : float or None
        Gaps per second of span; None for fewer than two different times.
    licence, source : str
        Whose it is and where it is from.
    """

    name: str
    rows: int
    span_s: float
    mean_rate_rps: float | None
    licence: str
    source: str


@cache
def _catalog() -> Mapping[str, PackagedTrace]:
    from ruamel.yaml import YAML  # noqa: PLC0415  (settings stay light to import)

    entries = YAML(typ="safe").load(_FOLDER / "catalog.yaml")
    return {
        name: PackagedTrace(
            name,
            _FOLDER / entry["file"],
            entry["format"],
            entry["licence"],
            entry["source"],
            entry["sha256"],
            entry.get("block_tokens"),
        )
        for name, entry in entries.items()
    }


def trace_names() -> list[str]:
    """Return the names of the packaged traces."""
    return list(_catalog())


def packaged_trace(name: str) -> PackagedTrace:
    """Return one packaged trace.

    Raises
    ------
    InputError
        If there is none of that name; tells the nearest one and all of them.
    """
    if name not in _catalog():
        raise InputError(unknown("trace", name, trace_names()))
    return _catalog()[name]


def trace_rows() -> list[TraceSummary]:
    """Return one summary for each packaged trace, read from the files themselves."""
    return [_summary(packaged_trace(name)) for name in trace_names()]


def _summary(trace: PackagedTrace) -> TraceSummary:
    from simqueue.workload.traces.readers import READERS  # noqa: PLC0415  (settings stay light to import)

    (rows,) = READERS[trace.format].chunks(trace.path, trace.name, ReadOptions(), None)
    span_s = float((rows.time.max() - rows.time.min()) / rows.ticks_per_s)
    rate = (len(rows) - 1) / span_s if span_s > 0 else None
    return TraceSummary(trace.name, len(rows), span_s, rate, trace.licence, trace.source)
