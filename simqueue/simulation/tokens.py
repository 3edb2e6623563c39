"""When tokens reach their clients: gaps between tokens, without a list of tokens.

All decodes of a step get their token at its end. So between two tokens of one request lies one *tick*, the time since
the decodes' last step, and a tick is shared by everybody who decoded in both. What does not fit this is a request's own
gap: its first decode when steps without decodes lay between, and the wait of a preempted request. The longest gap of a
request is the longest tick since it joined, found by bisection in a stack of suffix maxima, or an own gap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import sub

import numpy as np
from numpy.typing import NDArray

from simqueue.request import Job
from simqueue.simulation.columns import Columns

GAPS_AT_ONCE = 4096


class TokenLog:
    """Ticks of one replica's decodes and the gaps they make."""

    def __init__(self) -> None:
        self.ticks = 0
        self._last_tick_s = 0.0
        self._newly_joined: dict[Job, None] = {}
        self._max_after: list[int] = []
        self._max_gap_s: list[float] = []
        self.columns = Columns(gap_s="d", tokens="q")
        self._gaps_s: list[float] = []
        self._tokens: list[int] = []
        self.own_gap_count = 0

    def joined(self, job: Job, time_s: float) -> None:
        """Log that a prompt (or a recomputed context) of `job` is complete: one token now, decodes follow."""
        if job.last_token_s is not None:
            self._own_gap(job, time_s - job.last_token_s)
        job.last_token_s = time_s
        job.tokens_emitted += 1
        job.joined_tick = self.ticks
        self._newly_joined[job] = None

    def resumed(self, job: Job) -> None:
        """Log that `job`, which had left, decodes on from the next tick; no token now."""
        job.joined_tick = self.ticks
        self._newly_joined[job] = None

    def left(self, job: Job) -> None:
        """Log that `job` decodes no more: it has its last token, was preempted, or the run is over."""
        joined_tick = job.joined_tick
        if joined_tick is None:
            return
        self._newly_joined.pop(job, None)
        job.joined_tick = None
        if self.ticks > joined_tick:
            job.tokens_emitted += self.ticks - joined_tick
            job.last_token_s = self._last_tick_s
            first = bisect_right(self._max_after, joined_tick)
            if first < len(self._max_after):
                _raise_max(job, self._max_gap_s[first])

    def burst(self, job: Job, tokens: int, time_s: float) -> None:
        """Log that `tokens` (>= 1) of `job` reach its client together."""
        if job.last_token_s is not None:
            self._own_gap(job, time_s - job.last_token_s)
        if tokens > 1:
            self._own_gap(job, 0.0, tokens - 1)
        job.last_token_s = time_s
        job.tokens_emitted += tokens

    def ticked(self, decoding: int, start_s: float, ends_s: Sequence[float]) -> None:
        """Log steps in a row, from `start_s`, in each of which the same `decoding` (>= 1) requests got a token."""
        n = len(ends_s)
        joined = self._newly_joined
        if joined:
            self._ticked_with_newcomers(decoding, start_s, ends_s)
        else:
            longest_s = ends_s[0] - self._last_tick_s
            self._gaps_s.append(longest_s)
            if n > 1:
                gaps_s = list(map(sub, ends_s[1:], ends_s))
                self._gaps_s.extend(gaps_s)
                longest_s = max(longest_s, *gaps_s)
            self._tokens.extend([decoding] * n)
            self._push_max(self.ticks + n, longest_s)
        self.ticks += n
        self._last_tick_s = ends_s[-1]
        if len(self._gaps_s) > GAPS_AT_ONCE:
            self._settle()

    def gaps(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return every gap between two tokens of one request, in seconds, and how many tokens it holds for."""
        self._settle()
        columns = self.columns.arrays()
        return columns["gap_s"], columns["tokens"]

    def _settle(self) -> None:
        self.columns.extend((self._gaps_s, self._tokens))
        self._gaps_s.clear()
        self._tokens.clear()

    def _ticked_with_newcomers(self, decoding: int, start_s: float, ends_s: Sequence[float]) -> None:
        joined = self._newly_joined
        continuing = decoding - len(joined)
        since_s = self._last_tick_s if continuing else start_s
        first_gap_s = ends_s[0] - since_s
        sharing = decoding
        for job in joined:
            if job.last_token_s != since_s:
                sharing -= 1
                self._first_decode(job, ends_s[0])
        joined.clear()
        if sharing:
            self._append_run((first_gap_s,), sharing)
            self._push_max(self.ticks + 1, first_gap_s)
        n = len(ends_s)
        if n > 1:
            gaps_s = list(map(sub, ends_s[1:], ends_s))
            self._append_run(gaps_s, decoding)
            self._push_max(self.ticks + n, max(gaps_s))

    def _first_decode(self, job: Job, time_s: float) -> None:
        """Its first decode did not follow its first token directly; so the shared tick is not its gap."""
        if job.last_token_s is not None and job.joined_tick is not None:
            self._own_gap(job, time_s - job.last_token_s)
            job.tokens_emitted += 1
            job.last_token_s = time_s
            job.joined_tick += 1

    def _own_gap(self, job: Job, gap_s: float, tokens: int = 1) -> None:
        self._append_run((gap_s,), tokens)
        self.own_gap_count += tokens
        _raise_max(job, gap_s)

    def _append_run(self, gaps_s: Sequence[float], tokens: int) -> None:
        self._gaps_s.extend(gaps_s)
        self._tokens.extend([tokens] * len(gaps_s))

    def _push_max(self, tick: int, gap_s: float) -> None:
        gaps, ticks = self._max_gap_s, self._max_after
        while gaps and gaps[-1] <= gap_s:
            gaps.pop()
            ticks.pop()
        gaps.append(gap_s)
        ticks.append(tick)


def _raise_max(job: Job, gap_s: float) -> None:
    if job.max_itl_s is None or gap_s > job.max_itl_s:
        job.max_itl_s = gap_s
