"""Counters over all decoding requests, so that the cost of a step does not grow with the batch.

A request that starts to decode stores ``base = tokens - steps`` once. It is then not touched until it stops: while it
decodes it has ``base + steps`` tokens. Three answers follow:

- the summed context is ``sum(base) + seqs * steps``;
- the step of its last token is known when it starts (a heap);
- it needs a new block when ``base + steps`` is one more than a multiple of the block size, so the blocks that a step
  needs are one entry of a histogram, and the blocks that n steps need are the sum of a slice.

Starting and stopping cost O(log n), a step O(1).
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from mypy_extensions import mypyc_attr

from simqueue.errors import RunError
from simqueue.request import Job

NEVER = 1 << 62


@mypyc_attr(allow_interpreted_subclasses=True)
class DecodeCounters:
    """Counters of the decoding requests of one replica.

    Parameters
    ----------
    block_size : int
        Tokens in a KV block.
    grows : bool
        Whether decoding takes blocks at all (False for contiguous reservations).
    """

    def __init__(self, block_size: int, *, grows: bool) -> None:
        self.steps = 0
        self.seqs = 0
        self.latest_rank = -1
        """An upper bound of the ranks by admission of all decoding requests."""
        self._base_sum = 0
        self._block_size = block_size
        self._grows = grows
        self._needs_at = [0] * block_size
        self._last_steps: list[tuple[int, int, Job]] = []
        self.next_end = NEVER
        """The number of the step that makes the next last token of a request."""

    @property
    def context_tokens(self) -> int:
        """Tokens that all decodes of the next step attend to, the tokens they feed included."""
        return self._base_sum + self.seqs * self.steps

    def tokens(self, job: Job) -> int:
        """Return the number of tokens (prompt and output) that a decoding `job` has now."""
        return job.base + self.steps

    def needs_block(self, job: Job) -> int:
        """Return 1 if the next step of a decoding `job` starts a new block, else 0."""
        return int(self._grows and (job.base + self.steps - 1) % self._block_size == 0)

    def demand(self) -> int:
        """Return how many blocks all decodes together need for the next step."""
        return self._needs_at[self.steps % self._block_size] if self._grows else 0

    def demand_of(self, n: int) -> int:
        """Return how many blocks all decodes together need for the next `n` steps."""
        if not self._grows:
            return 0
        size = self._block_size
        start = self.steps % size
        rounds, rest = divmod(n, size)
        demand = rounds * self.seqs + sum(self._needs_at[start : start + rest])
        if start + rest > size:
            demand += sum(self._needs_at[: start + rest - size])
        return demand

    def steps_within(self, free_blocks: int, limit: int) -> int:
        """Return for how many of the next `limit` steps `free_blocks` are enough."""
        if self.demand_of(limit) <= free_blocks:
            return limit
        size = self._block_size
        rounds = free_blocks // self.seqs
        free_blocks -= rounds * self.seqs
        n = rounds * size
        while (need := self._needs_at[(self.steps + n) % size]) <= free_blocks:
            free_blocks -= need
            n += 1
        return n

    def start(self, job: Job) -> None:
        """Count `job` from the next step on. Precondition: all its known tokens but the newest are computed."""
        rank = job.rank
        job.decoding = True
        job.base = base = job.known_tokens - self.steps
        job.last_step = last_step = job.request.prompt_tokens + job.output_tokens - base
        if rank > self.latest_rank:
            self.latest_rank = rank
        if last_step < self.next_end:
            self.next_end = last_step
        heappush(self._last_steps, (last_step, rank, job))
        self.seqs += 1
        self._base_sum += base
        self._needs_at[(1 - base) % self._block_size] += 1

    def stop(self, job: Job) -> None:
        """Stop counting `job` (finished, preempted or cancelled) and store how many tokens it has."""
        base = job.base
        self.seqs -= 1
        self._base_sum -= base
        self._needs_at[(1 - base) % self._block_size] -= 1
        job.decoding = False
        job.known_tokens = tokens = base + self.steps
        job.computed_tokens = tokens - 1
        if not self.seqs:
            self._last_steps.clear()
            self.next_end = NEVER
            self.latest_rank = -1
        elif job.last_step == self.next_end:
            self.next_end = self._head()[0]

    def step(self, n: int = 1) -> list[Job]:
        """Make `n` tokens for every decoding request; return the requests that made their last one, by admission.

        Precondition: ``steps + n <= next_end``.
        """
        self.steps = steps = self.steps + n
        ended: list[Job] = []
        while self.next_end <= steps:
            job = self._head()[2]
            self.stop(job)
            ended.append(job)
        return ended

    def check(self, decoding: Iterable[Job]) -> None:
        """Compare the counters with sums over `decoding`, the decoding requests; raise `RunError` if they differ."""
        jobs = list(decoding)
        needs_at = [0] * self._block_size
        for job in jobs:
            needs_at[(1 - job.base) % self._block_size] += 1
        counted = (len(jobs), sum(job.base for job in jobs), needs_at)
        if counted != (self.seqs, self._base_sum, self._needs_at):
            raise RunError(f"decode counters {self.seqs, self._base_sum, self._needs_at} differ from {counted}")
        if jobs and min(job.last_step for job in jobs) != self._head()[0]:
            raise RunError(f"next end at step {self._head()[0]} differs from the earliest last step")

    def _head(self) -> tuple[int, int, Job]:
        heap = self._last_steps
        while True:
            last_step, rank, job = heap[0]
            if job.decoding and job.last_step == last_step and job.rank == rank:
                return heap[0]
            heappop(heap)
