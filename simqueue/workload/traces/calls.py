"""Exports of tracing tools: calls of a model among spans and runs of other kinds, as rows of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simqueue.datafiles.csvtable import Table
from simqueue.errors import InputError
from simqueue.workload.traces.base import TraceRows, token_counts
from simqueue.workload.traces.formats import TimeUnit
from simqueue.workload.traces.timecells import read_times


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model, as text.

    Attributes
    ----------
    start, prompt, output : str
        When it was sent, and its token counts.
    name, parent : str
        Its id, and that of what it is part of; empty if there is none.
    session : str
        The conversation that it belongs to; empty if there is none.
    """

    start: str
    prompt: str
    output: str
    name: str
    parent: str
    session: str


@dataclass(frozen=True, slots=True)
class ExportForm:
    """How an export is read and spoken of.

    Attributes
    ----------
    counted : str
        What it is a list of: spans, runs.
    columns : tuple of str
        What the file calls start, prompt tokens and output tokens.
    unit : str
        Unit of start times that are numbers.
    others : str
        What is left out, in words.
    """

    counted: str
    columns: tuple[str, str, str]
    unit: TimeUnit
    others: str


class _Seen:
    """What has been seen of a file: how many spans, how many calls, and which calls are part of which."""

    def __init__(self) -> None:
        self.total = 0
        self.calls = 0
        self._names: set[str] = set()
        self._parents: set[str] = set()

    def add(self, call: Call | None) -> bool:
        """Count one span, and return whether it is a call."""
        self.total += 1
        if call is None:
            return False
        self.calls += 1
        self._names.add(call.name)
        self._parents.add(call.parent)
        return True

    def notes(self, label: str, form: ExportForm) -> Iterator[str]:
        """Yield what the user should know."""
        if self.calls < self.total:
            left = self.total - self.calls
            yield f"{label}: {left} of {self.total} {form.counted}s were left out: {form.others}"
        around = len((self._names & self._parents) - {""})
        if around:
            yield f"{label}: calls with other calls inside them: {around}; their tokens may be counted twice"


def call_rows(found: Iterable[Call | None], label: str, form: ExportForm, at_once: int | None) -> Iterator[TraceRows]:
    """Yield the calls of an export as rows, `at_once` at a time or all together.

    Parameters
    ----------
    found : iterable of Call or None
        One item for each span or run of the file; None for those that are no calls.
    label : str
        The name of the file in messages.
    form : ExportForm
    at_once : int or None

    Raises
    ------
    InputError
        If there are no calls, or a time or a count is wrong.
    """
    seen = _Seen()
    waiting: list[tuple[int, Call]] = []
    for call in found:
        if not seen.add(call) or call is None:
            continue
        if len(waiting) == at_once:
            yield _rows(waiting, label, form)
            waiting = []
        waiting.append((seen.total, call))
    if not waiting:
        raise InputError(f"{label}: none of {seen.total} {form.counted}s is a call of a model; left out: {form.others}")
    yield replace(_rows(waiting, label, form), notes=tuple(seen.notes(label, form)))


def _rows(numbered: Sequence[tuple[int, Call]], label: str, form: ExportForm) -> TraceRows:
    calls = [call for _, call in numbered]
    start, prompt, output = form.columns
    cells = {
        start: tuple(call.start for call in calls),
        prompt: tuple(call.prompt for call in calls),
        output: tuple(call.output or "0" for call in calls),  # a call that failed has none
    }
    table = Table(label, cells, [number for number, _ in numbered], counted=form.counted)
    time, _ = read_times(table, start, form.unit)
    more: dict[str, Any] = {"session": [call.session or None for call in calls]}
    if all(call.name for call in calls):
        more["request_id"] = [call.name for call in calls]
    counts = (token_counts(table, prompt), token_counts(table, output))
    return TraceRows(label, table.lines, time, *counts, more, counted=form.counted)
