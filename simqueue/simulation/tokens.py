"""When tokens reach their clients: gaps between tokens, without a list of tokens.

All decodes of a step get their token at its end. So between two tokens of one request lies one *tick*, the time since
the decodes' last step, and a tick is shared by everybody who decoded in both. What does not fit this is a request's own
gap: its first decode when steps without decodes lay between, and the wait of a preempted request. The longest gap of a
request is the longest tick between its joining and its leaving, or an own gap.

During the run ticks and those spans are only written down; numpy works them off some thousand ticks at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from struct import pack

import numpy as np
from numpy.typing import NDArray

from simqueue.request import Job
from simqueue.simulation.columns import Columns
from simqueue.simulation.recording import Table

TICKS_AT_ONCE = 4096


class TokenLog:
    """Ticks of one replica's decodes and the gaps they make.

    Attributes
    ----------
    ticks : int
        Decode steps so far.
    """

    def __init__(self) -> None:
        self.columns = Columns(gap_s="d", tokens="q")
        self.ticks = 0
        self._last_tick_s = 0.0
        self._joined: dict[Job, None] = {}
        self._newly_joined: dict[Job, None] = {}
        # what is still to be worked off
        self._ends_s: list[float] = []
        self._runs: list[tuple[int, int]] = []
        """(requests, ticks): how many got a token in each of so many ticks in a row."""
        self._irregular: list[tuple[int, float, int]] = []
        """(tick, since when, for how many): ticks that do not count from the tick before, or not for everybody."""
        self._spans: list[tuple[Job, int, int]] = []
        """Who left, and from which to which tick it decoded."""
        # what has been
        self._own_gaps_s, self._own_tokens = array("d"), array("q")
        self._settled_s = 0.0
        self._kept_s: NDArray[np.float64] = np.empty(0)
        """The latest ticks: as many as somebody who decodes has seen."""

    def joined(self, job: Job, time_s: float) -> None:
        """Log that a prompt (or a recomputed context) of `job` is complete: one token now, decodes follow."""
        if job.last_token_s is not None:
            self._own_gap(job, time_s - job.last_token_s)
        job.last_token_s = time_s
        job.tokens_emitted += 1
        self.resumed(job)

    def resumed(self, job: Job) -> None:
        """Log that `job`, which had left, decodes on from the next tick; no token now."""
        job.joined_tick = self.ticks
        self._joined[job] = self._newly_joined[job] = None

    def left(self, job: Job) -> None:
        """Log that `job` decodes no more: it has its last token, was preempted, or the run is over."""
        joined_tick, ticks = job.joined_tick, self.ticks
        if joined_tick is None:
            return
        job.joined_tick = None
        del self._joined[job]
        if joined_tick == ticks:
            self._newly_joined.pop(job, None)
            return
        job.tokens_emitted += ticks - joined_tick
        job.last_token_s = self._last_tick_s
        self._spans.append((job, joined_tick, ticks))

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
        if self._newly_joined:
            self._first_tick(decoding, start_s, ends_s[0])
        n = len(ends_s)
        noted_s = self._ends_s
        noted_s += ends_s
        self._runs.append((decoding, n))
        self.ticks += n
        self._last_tick_s = ends_s[-1]
        if len(noted_s) > TICKS_AT_ONCE:
            self.settle()

    def settle(self) -> None:
        """Work off what was written down, so that everybody who has left has its longest gap."""
        ends_s = np.frombuffer(pack(f"{len(self._ends_s)}d", *self._ends_s))
        tokens = np.repeat(*np.array(self._runs, dtype=np.int64).reshape(-1, 2).T)
        gaps_s = np.diff(ends_s, prepend=self._settled_s)
        first = self.ticks - len(ends_s)
        for tick, since_s, sharing in self._irregular:
            gaps_s[tick - first] = ends_s[tick - first] - since_s
            tokens[tick - first] = sharing
        held = tokens > 0
        self.columns.extend((gaps_s[held], tokens[held]))
        self._kept_s = np.concatenate((self._kept_s, gaps_s))
        self._find_longest()
        self._kept_s = self._kept_s[max(0, len(self._kept_s) - self._seen_by_somebody()) :]
        self._settled_s = self._last_tick_s
        self._ends_s.clear()
        self._runs.clear()
        self._irregular.clear()

    def gaps(self) -> Table:
        """Return gap_s, every gap between two tokens of one request, and how many tokens it holds for."""
        self.settle()
        self.columns.extend((self._own_gaps_s, self._own_tokens))
        return self.columns.arrays()

    def _seen_by_somebody(self) -> int:
        """Return how many of the latest ticks anybody who decodes may have seen."""
        for job in self._joined:  # in order of joining, but for one tick by which a first decode may be late
            return self.ticks + 1 - (job.joined_tick or 0)
        return 0

    def _find_longest(self) -> None:
        """Give those who have left the longest tick of their span."""
        if not self._spans:
            return
        kept_from = self.ticks - len(self._kept_s)
        jobs, firsts, ends = zip(*self._spans, strict=True)
        self._spans.clear()
        edges = np.array((firsts, ends)).T.ravel() - kept_from
        longest = np.maximum.reduceat(np.append(self._kept_s, 0.0), edges)[::2]
        for job, longest_s in zip(jobs, longest.tolist(), strict=True):
            if job.max_itl_s is None or longest_s > job.max_itl_s:
                job.max_itl_s = longest_s

    def _first_tick(self, decoding: int, start_s: float, end_s: float) -> None:
        """See who takes part in a tick for the first time, and for whom it is the gap since its first token."""
        joined = self._newly_joined
        since_s = self._last_tick_s if decoding > len(joined) else start_s
        sharing = decoding
        for job in joined:
            if job.last_token_s != since_s:
                sharing -= 1
                self._first_decode(job, end_s)
        joined.clear()
        if sharing != decoding or since_s != self._last_tick_s:
            self._irregular.append((self.ticks, since_s, sharing))

    def _first_decode(self, job: Job, time_s: float) -> None:
        """Its first decode did not follow its first token directly; so the shared tick is not its gap."""
        if job.last_token_s is not None and job.joined_tick is not None:
            self._own_gap(job, time_s - job.last_token_s)
            job.tokens_emitted += 1
            job.last_token_s = time_s
            job.joined_tick += 1

    def _own_gap(self, job: Job, gap_s: float, tokens: int = 1) -> None:
        self._own_gaps_s.append(gap_s)
        self._own_tokens.append(tokens)
        if job.max_itl_s is None or gap_s > job.max_itl_s:
            job.max_itl_s = gap_s
