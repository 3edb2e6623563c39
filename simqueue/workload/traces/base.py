"""The contract of trace readers: a file in, columns out, in the file's own time and order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError


@dataclass(frozen=True)
class TraceRows:
    """Rows of a trace file, in the order of the file; every column has one entry a row.

    Attributes
    ----------
    label : str
        How the file is called in messages.
    lines : tuple of int
        Line number of each row.
    time : array of int64 or float64
        When each request arrived, in ticks from any origin. Whole ticks stay exact.
    ticks_per_s : float
        Ticks in a second.
    prompt_tokens, output_tokens : int64 arrays
        Token counts, at least 0.
    request_id, request_class : tuple of str or None, or None where the file has no such column
        Names and labels.
    priority : int64 array or None
        Smaller is more urgent.
    deadline_s : float64 array or None
        In the time of the file and in seconds; NaN where a row has none.
    """

    label: str
    lines: tuple[int, ...]
    time: NDArray[np.int64] | NDArray[np.float64]
    ticks_per_s: float
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    request_id: tuple[str, ...] | None = None
    request_class: tuple[str | None, ...] | None = None
    priority: NDArray[np.int64] | None = None
    deadline_s: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.lines)

    def wrong(self, row: int, message: str) -> InputError:
        """Return the error about one row, naming file and line."""
        return InputError(f"{self.label}: line {self.lines[row]}: {message}")


class TraceReader(Protocol):
    """Reads one trace format."""

    @property
    def renames(self) -> tuple[str, ...]:
        """Columns that the user may rename by ``columns``; empty where the format fixes them."""

    @property
    def starts_at_zero(self) -> bool:
        """Whether the file's times can be taken as seconds from the start of a run (``origin: file``)."""

    def read(self, path: Path, label: str, columns: Mapping[str, str]) -> TraceRows:
        """Return all rows of the file.

        Parameters
        ----------
        path : Path
            The file.
        label : str
            How to call it in messages.
        columns : mapping of str to str
            The file's names of columns that it calls otherwise.

        Raises
        ------
        InputError
            With file and line, for anything that is not a row of this format.
        """
