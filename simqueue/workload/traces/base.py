"""The contract of trace readers: a file in; columns out, with the file's own times and in its order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simqueue.datafiles.columns import Columns, place
from simqueue.errors import InputError
from simqueue.workload.limits import MOST_TOKENS
from simqueue.workload.traces.formats import ReadOptions, TimeUnit
from simqueue.workload.traces.timecells import Moments
from simqueue.workload.traces.times import Times

MOMENTS = ("deadline_s", "wanted_s", "gives_up_s")
"""Request attributes that are times: they are shifted together with the arrival."""


@dataclass(frozen=True)
class TraceRows:
    """Rows of a trace file, in the order of the file; every column has one entry per row.

    Attributes
    ----------
    label : str
        The name of the file in messages.
    lines : sequence of int
        Number of each row in the file, counted from 1.
    time : Times
        Arrival time of each request.
    prompt_tokens, output_tokens : int64 arrays
        Token counts, at least 0.
    more : mapping of str to sequence
        Further attributes of `Request` by name, if the file has them; None if a row has none.
    moments : mapping of str to Moments
        Those of `MOMENTS` that the file has.
    counted : str
        What `lines` counts: lines of a text file, rows, spans, ...
    unit : str or None
        Unit of the times in the file; None if they are dates.
    notes : tuple of str
        One line each on what the user should know about the file.
    """

    label: str
    lines: Sequence[int]
    time: Times
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    more: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    moments: Mapping[str, Moments] = field(default_factory=dict)
    counted: str = "line"
    unit: TimeUnit | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def wrong(self, row: int, message: str) -> InputError:
        """Return the error for one row, with file and line."""
        return InputError(f"{place(self.label, self.counted, self.lines[row])}: {message}")

    def name_of(self, row: int) -> str:
        """Return how messages name a row: ``line 12``."""
        return f"{self.counted} {self.lines[row]}"


def token_counts(table: Columns, name: str) -> NDArray[np.int64]:
    """Return a column of token counts, each from 0 to `MOST_TOKENS`; InputError for anything else."""
    return np.array(table.integers(name, most=MOST_TOKENS), dtype=np.int64)


class TraceReader(Protocol):
    """Reads one trace format."""

    def chunks(self, path: Path, label: str, options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows of the file, `at_once` at a time, or all together.

        Parameters
        ----------
        path : Path
            The file.
        label : str
            The name of the file in messages.
        options : ReadOptions
        at_once : int or None

        Raises
        ------
        InputError
            With file and line, for a row that does not follow the format.
        """
