"""The contract of trace readers: a file in, columns out, in the file's own time and order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from simqueue.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TimeUnit = Literal["s", "ms", "us", "ns"]

TICKS: dict[TimeUnit, int] = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
"""Ticks in a second."""

MOMENTS = ("deadline_s", "wanted_s", "gives_up_s")
"""Request attributes that are times: they move along when a trace is shifted."""


@dataclass(frozen=True)
class TraceRows:
    """Rows of a trace file, in the order of the file; every column has one entry a row.

    Attributes
    ----------
    label : str
        How the file is called in messages.
    lines : sequence of int
        Line number of each row.
    time : array of int64 or float64
        When each request arrived, in ticks from any origin. Whole ticks stay exact.
    ticks_per_s : float
        Ticks in a second.
    prompt_tokens, output_tokens : int64 arrays
        Token counts, at least 0.
    more : mapping of str to sequence
        Further attributes of `Request` by name, where the file has them; None where a row has none. Times are in
        seconds and in the time of the file.
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
        """Return the error about one row, naming file and line."""
        return InputError(f"{self.label}:{self.lines[row]}: {message}")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a reader has to be told about a file.

    Attributes
    ----------
    columns : mapping of str to str
        The file's names of columns that it calls otherwise.
    time_unit : str
        Unit of its times, where the format leaves that open.
    block_tokens : int or None
        Tokens that one of its hash ids stands for.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    time_unit: TimeUnit = "s"
    block_tokens: int | None = None


class TraceReader(Protocol):
    """Reads one trace format."""

    def chunks(self, path: Path, label: str, options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows of the file, `at_once` at a time or all together.

        Parameters
        ----------
        path : Path
            The file.
        label : str
            How to call it in messages.
        options : ReadOptions
        at_once : int or None

        Raises
        ------
        InputError
            With file and line, for anything that is not a row of this format.
        """
