"""The contract of trace readers: a file in; columns out, with the file's own times and in its order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simqueue.datafiles.columns import Columns
from simqueue.errors import InputError
from simqueue.workload.limits import MOST_TOKENS
from simqueue.workload.traces.formats import ReadOptions

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
        Line number of each row.
    time : int64 or float64 array
        Arrival time of each request, in ticks from any origin. Integer ticks stay exact.
    ticks_per_s : float
        Ticks in a second.
    prompt_tokens, output_tokens : int64 arrays
        Token counts, at least 0.
    more : mapping of str to sequence
        Further attributes of `Request` by name, if the file has them; None if a row has none. Times are in seconds
        from the origin of the file.
    """

    label: str
    lines: Sequence[int]
    time: NDArray[np.int64] | NDArray[np.float64]
    ticks_per_s: float
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    more: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    def wrong(self, row: int, message: str) -> InputError:
        """Return the error for one row, with file and line."""
        return InputError(f"{self.label}:{self.lines[row]}: {message}")


def token_counts(table: Columns, name: str) -> NDArray[np.int64]:
    """Return a column of token counts, each from 0 to `MOST_TOKENS`; InputError for anything else."""
    return np.array(table.integers(name, most=MOST_TOKENS), dtype=np.int64)


def times(table: Columns, name: str) -> NDArray[np.float64]:
    """Return a column of times, each at least 0; InputError for anything else."""
    return np.array(table.floats(name, least=0), dtype=np.float64)


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
