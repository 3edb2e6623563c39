"""Policies without running sums: every question about the batch is answered by a walk over it, in list order.

The third way to the same tables, beside folded and single steps. It is slow on purpose and shares no arithmetic with
the counters: contexts, ends, demands and registered blocks are looked up request by request at every step. Tests play
it against the others; benchmarks show what the counters save. It goes with ``fast: false``.
"""

from __future__ import annotations

from collections.abc import Iterable

from simqueue.errors import RunError
from simqueue.kvcache.base import Hit
from simqueue.kvcache.extents import Birth, Extent
from simqueue.kvcache.prefix import PrefixKVCache
from simqueue.request import Job
from simqueue.schedulers.base import Policy
from simqueue.schedulers.decoding import DecodeCounters
from simqueue.schedulers.iteration import IterationPolicy


def walking(policy: Policy) -> Policy:
    """Let a fresh `policy` walk its batch at every step, and return it. Padded waves count as they did."""
    if isinstance(policy, IterationPolicy):
        _walk(policy)
    return policy


def _walk(policy: IterationPolicy) -> None:
    kv, seats = policy.kv, policy.seats
    seats.decodes = counters = WalkedCounters(kv.block_size, grows=kv.grows)
    policy.walks = True
    if isinstance(kv, PrefixKVCache):
        policy.kv = seats.kv = WalkedPrefixKVCache(kv, counters)


class WalkedCounters(DecodeCounters):
    """The decode counters as a list of the decoding requests, each with its tokens."""

    def __init__(self, block_size: int, *, grows: bool) -> None:
        super().__init__(block_size, grows=grows)
        self._tokens: dict[Job, int] = {}

    @property
    def decoding(self) -> Iterable[Job]:
        """Who decodes."""
        return self._tokens

    @property
    def context_tokens(self) -> int:
        """Tokens that all decodes of the next step attend to."""
        return sum(self._tokens.values())

    def tokens(self, job: Job) -> int:
        """Return the tokens that a decoding `job` has now."""
        return self._tokens[job]

    def needs_block(self, job: Job) -> int:
        """Return 1 if the next step of a decoding `job` starts a new block, else 0."""
        return int(self._grows and self._tokens[job] % self._block_size == 1 % self._block_size)

    def demand(self) -> int:
        """Return how many blocks the next step takes."""
        return sum(map(self.needs_block, self._tokens))

    def demand_of(self, n: int) -> int:
        """Refuse: walked steps never repeat."""
        raise RunError(f"walked steps are taken one by one, not {n} at once")

    def steps_within(self, free_blocks: int, limit: int) -> int:
        """Return 0: no step is repeated."""
        return 0

    def start(self, job: Job) -> None:
        """Let `job` decode from the next step on."""
        job.decoding = True
        self._tokens[job] = job.known_tokens
        self._walk()

    def stop(self, job: Job) -> None:
        """Take `job` out and write its tokens down."""
        job.decoding = False
        job.known_tokens = self._tokens.pop(job)
        job.computed_tokens = job.known_tokens - 1
        self._walk()

    def step(self, n: int = 1) -> list[Job]:
        """Make one token for each decoding request; return the requests that made their last one, by admission."""
        self.steps += n
        for job in self._tokens:
            self._tokens[job] += n
        ended = [job for job, tokens in self._tokens.items() if tokens == job.last_known_tokens]
        for job in ended:
            self.stop(job)
        return sorted(ended, key=lambda job: job.rank)

    def check(self, decoding: Iterable[Job]) -> None:
        """Compare who decodes with `decoding`."""
        if sorted(job.index for job in decoding) != sorted(job.index for job in self._tokens):
            raise RunError("others decode than those who run")

    def _walk(self) -> None:
        self.seqs = len(self._tokens)
        self.latest_rank = max((job.rank for job in self._tokens), default=-1)


class WalkedPrefixKVCache(PrefixKVCache):
    """A prefix cache in which generated blocks are registered one by one, without growing extents.

    Parameters
    ----------
    like : PrefixKVCache
        Fresh; its pool and rules are taken over.
    counters : WalkedCounters
        Says who decodes and with how many tokens.
    """

    def __init__(self, like: PrefixKVCache, counters: WalkedCounters) -> None:
        super().__init__(
            like.total,
            like.block_size,
            like.watermark_blocks,
            free_queue=lambda _: like._free_queue,
            registration_lag=like.registration_lag,
        )
        self._counters = counters
        self._offset: dict[Job, int] = {}

    def lookup(self, job: Job) -> Hit:
        """Return what is cached, once all that the decodes of this step fill is registered."""
        counters = self._counters
        for other in counters.decoding:
            self._register_made(other, counters.tokens(other) - 1 + self.step_number - counters.steps)
        return super().lookup(job)

    def begin_decoding(self, job: Job) -> None:
        """Note with how many tokens `job` begins, and when."""
        self._offset[job] = job.known_tokens - self._counters.steps

    def end_decoding(self, job: Job, tokens: int) -> None:
        """Register what `job` has made, `tokens` of it being in the cache."""
        if job in self._offset:
            self._register_made(job, tokens)
            del self._offset[job]

    def _register_made(self, job: Job, tokens: int) -> None:
        """Register the full blocks of `job` up to the lag, `tokens` of its tokens being in the cache."""
        holding = self._holdings[job]
        for block in range(holding.registered, (tokens - self.registration_lag) // self.block_size):
            filled_at = (block + 1) * self.block_size + self.registration_lag + 1 - self._offset[job]
            birth = Birth(2 * filled_at, 0, job.rank)
            node = next(node for node, _, _ in holding.path.blocks(block, block + 1, self.block_size))
            extent = Extent(node, block, block + 1, birth, refs=1)
            node.extents.append(extent)
            holding.pieces.append((extent, block, block + 1))
