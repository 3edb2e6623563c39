"""The tokens of a sequence as runs of streams, compared and cut without a list of tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from simqueue.kvcache.identity import Run, maximal


class Tokens:
    """The tokens of a request, prompt and output, as maximal runs.

    Attributes
    ----------
    runs : list of (stream, start, length)
    ends : list of int
        Position at which each run ends.
    """

    __slots__ = ("ends", "runs")

    def __init__(self, pieces: Sequence[Run]) -> None:
        self.runs = maximal(list(pieces))
        self.ends: list[int] = []
        position = 0
        for _, _, length in self.runs:
            position += length
            self.ends.append(position)

    def between(self, first: int, end: int) -> list[Run]:
        """Return the runs of positions `first` to `end`. Precondition: ``first < end``, within the tokens."""
        found = []
        at = bisect_right(self.ends, first)
        while first < end:
            stream, start, length = self.runs[at]
            skipped = first - (self.ends[at] - length)
            taken = min(length - skipped, end - first)
            found.append((stream, start + skipped, taken))
            first += taken
            at += 1
        return found

    def shared(self, runs: Sequence[Run], first: int, end: int) -> int:
        """Return how many tokens of `runs` are those from position `first` on, up to `end`."""
        same = at_run = used = 0
        at = bisect_right(self.ends, first)
        here = first
        while here < end and at_run < len(runs):
            stream, start, length = self.runs[at]
            other, begin, size = runs[at_run]
            skipped = here - (self.ends[at] - length)
            if stream != other or start + skipped != begin + used:
                break
            taken = min(length - skipped, size - used, end - here)
            same, here, used = same + taken, here + taken, used + taken
            if used == size:
                at_run, used = at_run + 1, 0
            if here == self.ends[at]:
                at += 1
        return same
