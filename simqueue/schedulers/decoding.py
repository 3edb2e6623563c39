"""The decode clock: running sums over everybody who decodes, so that a step costs the same whatever the batch.

A request that joins stores ``base = tokens - steps`` once and is then untouched until it leaves: while it decodes it
has ``base + steps`` tokens. Hence the summed context is ``sum(base) + seqs * steps``; its last token falls on a step
known at joining (a heap); and it needs a new block whenever ``base + steps`` is one more than a multiple of the block
size, so the demand of a step is one entry of a histogram and the demand of n steps a slice sum.
Joining and leaving cost O(log n), a step O(1).
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from mypy_extensions import mypyc_attr

from simqueue.errors import RunError
from simqueue.request import Job

NEVER = 1 << 62


@mypyc_attr(allow_interpreted_subclasses=True)
class DecodeClock:
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
        self.latest_place = -1
        """At least the rank by admission of everybody who decodes."""
        self._base_sum = 0
        self._block_size = block_size
        self._grows = grows
        self._needs_at = [0] * block_size
        self._last_steps: list[tuple[int, int, Job]] = []
        self.next_end = NEVER
        """The step on which the first of them makes its last token."""

    @property
    def context_tokens(self) -> int:
        """Tokens that all decodes of the next step attend to, the fed ones included."""
        return self._base_sum + self.seqs * self.steps

    def tokens(self, job: Job) -> int:
        """Return the tokens (prompt and output) that a decoding `job` has now."""
        return job.base + self.steps

    def needs_block(self, job: Job) -> int:
        """Return 1 if the next step of a decoding `job` starts a new block, else 0."""
        return int(self._grows and (job.base + self.steps - 1) % self._block_size == 0)

    def demand(self) -> int:
        """Return how many blocks the next step takes, all decodes together."""
        return self._needs_at[self.steps % self._block_size] if self._grows else 0

    def demand_of(self, n: int) -> int:
        """Return how many blocks the next `n` steps take, all decodes together."""
        if not self._grows:
            return 0
        size = self._block_size
        start = self.steps % size
        rounds, rest = divmod(n, size)
        demand = rounds * self.seqs + sum(self._needs_at[start : start + rest])
        if start + rest > size:
            demand += sum(self._needs_at[: start + rest - size])
        return demand

    def carried(self, free_blocks: int, limit: int) -> int:
        """Return how many of the next `limit` steps `free_blocks` carry."""
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

    def steps_to_first_end(self) -> int:
        """Return in how many steps the first of them makes its last token. Precondition: somebody decodes."""
        return self.next_end - self.steps

    def join(self, job: Job) -> None:
        """Let `job`, whose known tokens are computed but for the newest, decode from the next step on."""
        place = job.place
        job.decoding = True
        job.base = base = job.known_tokens - self.steps
        job.last_step = last_step = job.request.prompt_tokens + job.output_tokens - base
        if place > self.latest_place:
            self.latest_place = place
        if last_step < self.next_end:
            self.next_end = last_step
        heappush(self._last_steps, (last_step, place, job))
        self.seqs += 1
        self._base_sum += base
        self._needs_at[(1 - base) % self._block_size] += 1

    def leave(self, job: Job) -> None:
        """Take `job` out (finished, preempted or gone) and write its tokens down."""
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
            self.latest_place = -1
        elif job.last_step == self.next_end:
            self.next_end = self._head()[0]

    def step(self, n: int = 1) -> list[Job]:
        """Make one token for everybody, `n` times; return those that made their last one, by admission.

        Precondition: ``n <= steps_to_first_end()`` if somebody decodes.
        """
        self.steps = steps = self.steps + n
        ended: list[Job] = []
        while self.next_end <= steps:
            job = self._head()[2]
            self.leave(job)
            ended.append(job)
        return ended

    def check(self, decoding: Iterable[Job]) -> None:
        """Compare the counters with a walk over `decoding`."""
        jobs = list(decoding)
        needs_at = [0] * self._block_size
        for job in jobs:
            needs_at[(1 - job.base) % self._block_size] += 1
        walked = (len(jobs), sum(job.base for job in jobs), needs_at)
        if walked != (self.seqs, self._base_sum, self._needs_at):
            raise RunError(f"decode counters {self.seqs, self._base_sum, self._needs_at} differ from {walked}")
        if jobs and min(job.last_step for job in jobs) != self._head()[0]:
            raise RunError(f"next end at step {self._head()[0]} differs from the earliest last step of all decodes")

    def _head(self) -> tuple[int, int, Job]:
        heap = self._last_steps
        while True:
            last_step, place, job = heap[0]
            if job.decoding and job.last_step == last_step and job.place == place:
                return heap[0]
            heappop(heap)
