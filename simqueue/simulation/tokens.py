"""When tokens reach their clients: gaps between tokens, without a list of tokens.

All decodes of a step get their token at its end. So the gap between two tokens of one request is one *tick*: the time
between the ends of two steps with decodes. All requests that decode in both share it. Other gaps are a request's own:
the gap before its first decode if steps without decodes lie between, and the gap of a preempted request. The longest
gap of a request is the longest tick from its first to its last decode, or an own gap.

An example, with steps of 1 s, and prefill in steps of its own. Request a has its prefill at 0 s and 3 output tokens, b
has its prefill at 2 s and 2 output tokens::

    step      0         1         2         3         4
              prefill   decode    prefill   decode
              a         a         b         a, b
    ends at   1 s       2 s       3 s       4 s

Tick 1 ends at 2 s, after 1 s: the gap between the first two tokens of a. Tick 2 ends at 4 s, 2 s after tick 1: the gap
between the last two tokens of a. For b the same step is its first decode, 1 s after its first token: an own gap of 1 s.
So the gaps are 1 s (a), 2 s (a) and 1 s (b). The longest gap of a is 2 s.

During the run ticks and spans are only written down. They are flushed through numpy in batches.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from struct import pack

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import RunError
from simqueue.request import Job
from simqueue.simulation.columns import Columns
from simqueue.simulation.recording import Table

TICKS_AT_ONCE = 4096


class TokenLog:
    """Ticks of one replica's decodes and the gaps they make.

    Parameters
    ----------
    policy : str
        Name of the class that plans the steps, for errors.

    Attributes
    ----------
    ticks : int
        Decode steps so far.
    """

    def __init__(self, policy: str = "policy") -> None:
        self._policy = policy
        self.columns = Columns(gap_s="d", tokens="q")
        self.ticks = 0
        self._last_tick_s = 0.0
        self._joined: dict[Job, None] = {}
        self._newly_joined: dict[Job, None] = {}
        # not flushed yet
        self._ends_s: list[float] = []
        self._runs: list[tuple[int, int]] = []
        """(requests, ticks): this many requests got a token in each of this many ticks in a row."""
        self._irregular: list[tuple[int, float, int]] = []
        """(tick, start, requests): ticks that do not start at the tick before, or that not all requests share."""
        self._spans: list[tuple[Job, int, int]] = []
        """Requests that stopped decoding, and their first and last tick."""
        # flushed
        self._own_gaps_s, self._own_tokens = array("d"), array("q")
        self._flushed_s = 0.0
        self._kept_s: NDArray[np.float64] = np.empty(0)
        """The latest ticks: as many as a decoding request has been part of."""

    @property
    def decoding(self) -> int:
        """Requests that get a token with each tick."""
        return len(self._joined)

    def joined(self, job: Job, time_s: float) -> None:
        """Log that a prompt (or a recomputed context) of `job` is complete: one token now, decodes follow."""
        if job.joined_tick is not None:
            raise self._error(job, "completes its prompt twice")
        if job.last_token_s is not None:
            self._own_gap(job, time_s - job.last_token_s)
        job.last_token_s = time_s
        job.tokens_emitted += 1
        self.resumed(job)

    def resumed(self, job: Job) -> None:
        """Log that `job` decodes again from the next tick on; no token now."""
        job.joined_tick = self.ticks
        self._joined[job] = self._newly_joined[job] = None

    def left(self, job: Job) -> None:
        """Log that `job` stopped decoding: it has its last token, was preempted or cancelled, or the run is over."""
        joined_tick, ticks = job.joined_tick, self.ticks
        if joined_tick is None:
            return
        job.joined_tick = None
        del self._joined[job]
        if joined_tick == ticks:
            self._newly_joined.pop(job, None)
            return
        job.tokens_emitted += ticks - joined_tick
        if job.tokens_emitted > job.output_tokens:
            raise self._error(job, f"gets {job.tokens_emitted} tokens, it asks for {job.output_tokens}")
        job.last_token_s = self._last_tick_s
        self._spans.append((job, joined_tick, ticks))

    def made(self, job: Job) -> int:
        """Return how many tokens of `job` have been logged."""
        return job.tokens_emitted + (0 if job.joined_tick is None else self.ticks - job.joined_tick)

    def burst(self, job: Job, tokens: int, time_s: float) -> None:
        """Log that `tokens` (>= 1) of `job` reach its client at one time."""
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
            self.flush()

    def flush(self) -> None:
        """Turn what was written down into columns; requests that stopped decoding get their longest gap."""
        ends_s = np.frombuffer(pack(f"{len(self._ends_s)}d", *self._ends_s))
        tokens = np.repeat(*np.array(self._runs, dtype=np.int64).reshape(-1, 2).T)
        gaps_s = np.diff(ends_s, prepend=self._flushed_s)
        first = self.ticks - len(ends_s)
        for tick, since_s, sharing in self._irregular:
            gaps_s[tick - first] = ends_s[tick - first] - since_s
            tokens[tick - first] = sharing
        held = tokens > 0
        self.columns.extend((gaps_s[held], tokens[held]))
        self._kept_s = np.concatenate((self._kept_s, gaps_s))
        self._find_longest()
        self._kept_s = self._kept_s[max(0, len(self._kept_s) - self._ticks_in_use()) :]
        self._flushed_s = self._last_tick_s
        self._ends_s.clear()
        self._runs.clear()
        self._irregular.clear()

    def gaps(self) -> Table:
        """Return the gaps between two tokens of one request (gap_s) and how many tokens have this gap."""
        self.flush()
        self.columns.extend((self._own_gaps_s, self._own_tokens))
        return self.columns.arrays()

    def _ticks_in_use(self) -> int:
        """Return how many of the latest ticks a decoding request can have been part of."""
        for job in self._joined:  # in order of joining, except that a first decode can be one tick late
            in_use = self.ticks + 1 - (job.joined_tick or 0)
            if in_use > job.output_tokens + 1:
                raise self._error(job, f"decodes on after its {job.output_tokens} tokens")
            return in_use
        return 0

    def _error(self, job: Job, what: str) -> RunError:
        """Return the error about a plan that is not possible."""
        return RunError(f"{self._policy}: a plan is wrong: '{job.request.request_id}' {what}")

    def _find_longest(self) -> None:
        """Give the requests that stopped decoding the longest tick of their span."""
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
        """Handle the first tick of requests: it is their gap only if their first token came when the tick started."""
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
        """Log an own gap: the first decode of `job` did not follow its first token directly."""
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
