"""The contract of KV caches: questions about blocks, then actions on their number.

A pool is a number of blocks. How many blocks a request holds follows from the tokens it has in the cache. So a cache
without sharing stores nothing per request, and taking or giving back is one addition, whatever the batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from mypy_extensions import mypyc_attr

from simqueue.errors import RunError
from simqueue.request import Job, Request


@dataclass(frozen=True, slots=True)
class Hit:
    """What a prefix cache has of a request's tokens.

    Attributes
    ----------
    tokens, blocks : int
        Tokens that need not be computed, and the full blocks they are in.
    idle_blocks : int
        How many of the blocks no request uses now. They count as free until the hit takes them.
    may_grow : bool
        Whether the hit ends where a decoding request is making further blocks, so it can be longer at the next step.
    parts : tuple
        Where the blocks are; private to the cache.
    """

    tokens: int = 0
    blocks: int = 0
    idle_blocks: int = 0
    may_grow: bool = False
    parts: tuple[Any, ...] = ()


NO_HIT = Hit()


@mypyc_attr(allow_interpreted_subclasses=True)
class KVCache:
    """A pool of equal blocks.

    Parameters
    ----------
    blocks : int
        Usable blocks.
    block_size : int
        Tokens in a block.
    watermark_blocks : int
        Blocks that admissions leave free while other requests run.

    Attributes
    ----------
    step_number : int
        The number of the step that is being planned, or was planned last, in decode steps; set by the policy.
    """

    grows: bool
    """Whether a request takes more blocks as its context grows."""
    shares: bool = False
    """Whether requests can use each other's blocks."""
    registration_lag: int = 0
    """By how many steps the registration of generated blocks lags, if requests share blocks."""

    def __init__(self, blocks: int, block_size: int, watermark_blocks: int = 0) -> None:
        self.total = blocks
        self.block_size = block_size
        self.watermark_blocks = watermark_blocks
        self.free = blocks
        self.step_number = 0
        self._least_free = blocks

    # -- questions -----------------------------------------------------------------------------------------------

    @property
    def reserve_tokens(self) -> int | Literal["request_max"] | None:
        """Tokens reserved for each request at its admission; None: blocks are taken as the context grows."""
        return None

    @property
    def used(self) -> int:
        """Blocks in use now."""
        return self.total - self.free

    @property
    def peak_used(self) -> int:
        """The most blocks that were ever in use."""
        return self.total - self._least_free

    def blocks_for(self, tokens: int) -> int:
        """Return how many blocks hold `tokens` tokens."""
        return -(-tokens // self.block_size)

    @abstractmethod
    def held(self, request: Request, tokens: int) -> int:
        """Return how many blocks `request` holds with `tokens` (>= 1) of its tokens in the cache."""
        raise NotImplementedError

    def growth(self, request: Request, before: int, after: int) -> int:
        """Return how many more blocks are needed to go from `before` (0: not admitted yet) to `after` tokens."""
        return self.held(request, after) - (self.held(request, before) if before else 0)

    def peak_tokens(self, request: Request) -> int:
        """Return the most tokens of `request` that are ever in the cache: the last output token is never fed."""
        return request.prompt_tokens + request.output_tokens - 1

    def lookup(self, job: Job) -> Hit:
        """Return what is cached of the known tokens of `job`, except the last one. Changes nothing."""
        return NO_HIT

    def cached_tokens(self, request: Request) -> int:
        """Return how many tokens of a prompt are cached now, except its last one. Changes nothing."""
        return 0

    def can_admit(self, job: Job, hit: Hit, tokens: int, *, others_run: bool) -> bool:
        """Return whether `job` can be admitted with `tokens` in the cache; the watermark applies while others run."""
        needed = self.held(job.request, tokens)
        if hit is not NO_HIT:
            needed += hit.idle_blocks - hit.blocks
        if others_run:
            needed += self.watermark_blocks
        return needed <= self.free

    # -- actions -------------------------------------------------------------------------------------------------

    def admit(self, job: Job, hit: Hit, tokens: int) -> None:
        """Admit `job` with `tokens` in the cache, the hit included. Precondition: `can_admit`."""
        self.take(self.held(job.request, tokens))

    def extend(self, job: Job, blocks: int, tokens: int) -> None:
        """Take `blocks`, its `growth`, for a prefilling `job` that goes on to `tokens`. Precondition: they are free."""
        self.take(blocks)

    def begin_decoding(self, job: Job) -> None:
        """Learn that `job` grows by one token per step from now on; `take` is called for all such requests at once."""

    def end_decoding(self, job: Job, tokens: int) -> None:
        """Learn that `job` no longer decodes, with `tokens` in the cache."""

    def release(self, job: Job, tokens: int) -> None:
        """Give back all blocks of `job`, which has `tokens` in the cache."""
        self.give_back(self.held(job.request, tokens))

    def complete(self, job: Job, tokens: int) -> None:
        """Learn that the last token of `job` has been delivered, with `tokens` in the cache."""

    def forget(self, job: Job) -> None:
        """Learn that `job` will not return."""

    def state(self) -> Hashable:
        """Return what the cache holds besides the numbers of tokens of its requests (to find livelocks)."""
        return ()

    def take(self, blocks: int) -> None:
        """Take blocks out of the pool. Precondition: ``0 <= blocks <= free``."""
        free = self.free - blocks
        if blocks < 0 or free < 0:
            raise RunError(f"KV cache: cannot take {blocks} blocks, {self.free} of {self.total} are free")
        self.free = free
        if free < self._least_free:
            self._least_free = free

    def give_back(self, blocks: int) -> None:
        """Put blocks back. Precondition: ``0 <= blocks <= used``."""
        free = self.free + blocks
        if blocks < 0 or free > self.total:
            raise RunError(f"KV cache: cannot give back {blocks} blocks, {self.used} are in use")
        self.free = free

    def check(self, holders: Iterable[tuple[Job, int]]) -> None:
        """Compare the pool with a walk over its `holders`, each with its tokens in the cache; raise `RunError`."""
        self.check_total(sum(self.held(job.request, tokens) for job, tokens in holders))

    def check_total(self, held_blocks: int) -> None:
        """Compare the pool with the number of blocks that are held."""
        if self.free + held_blocks != self.total:
            raise RunError(
                f"KV cache: {self.free} free + {held_blocks} held blocks differ from the pool's {self.total}"
            )
