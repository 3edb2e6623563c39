"""A paged pool with a prefix cache: full blocks can be hit after their request has left, until they are reused.

Blocks are registered when the step that fills them is planned, so later requests of the same step can hit them. Equal
blocks that were computed twice exist side by side; a lookup takes the oldest. In which order free blocks are reused is
a strategy (`FreeQueue`).

A decoding request owns one growing extent. Its end follows from the decode counters and is computed only when a lookup
reads it, so decoding costs nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator

from mypy_extensions import mypyc_attr

from simqueue.errors import RunError
from simqueue.kvcache.base import Hit
from simqueue.kvcache.extents import Birth, Extent
from simqueue.kvcache.freequeue import FreeQueue, VllmFreeQueue
from simqueue.kvcache.identity import Node, Path, Trie
from simqueue.kvcache.layouts import PagedKVCache
from simqueue.request import Job, Request

Piece = tuple[Extent, int, int]
"""(extent, first block, end block)."""


class Holding:
    """What one request has in the cache: registered blocks in order, hits first, then those it has made."""

    __slots__ = ("growing", "path", "pieces")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pieces: list[Piece] = []
        self.growing: Extent | None = None

    @property
    def registered(self) -> int:
        """Blocks registered so far, without those of the growing extent."""
        return self.pieces[-1][2] if self.pieces else 0


@mypyc_attr(allow_interpreted_subclasses=True)
class PrefixKVCache(PagedKVCache):
    """Paged blocks that are found again by what they hold.

    Parameters
    ----------
    blocks, block_size, watermark_blocks : int
        As in `KVCache`.
    free_queue : callable
        Number of blocks -> a free queue with all of them; by default that of vLLM V1.
    registration_lag : int
        By how many steps the registration of generated blocks lags (1 with asynchronous scheduling).

    Attributes
    ----------
    queried_tokens, hit_tokens : int
        Tokens looked up and found, once per request, at its first admission.
    self_hit_tokens : int
        Tokens found by preempted requests when they return. Counted separately, since mostly they find their own.
    """

    shares = True

    def __init__(
        self,
        blocks: int,
        block_size: int,
        watermark_blocks: int = 0,
        *,
        free_queue: Callable[[int], FreeQueue] = VllmFreeQueue,
        registration_lag: int = 0,
    ) -> None:
        super().__init__(blocks, block_size, watermark_blocks)
        self.registration_lag = registration_lag
        self._free_queue = free_queue(blocks)
        self._trie = Trie()
        self._paths: dict[Job, Path] = {}
        self._holdings: dict[Job, Holding] = {}
        self._growers: dict[Extent, Holding] = {}
        self.queried_tokens = self.hit_tokens = self.self_hit_tokens = 0

    # -- questions -----------------------------------------------------------------------------------------------

    def lookup(self, job: Job) -> Hit:
        """Return the longest run of cached blocks from the first token; the last known token is never among them."""
        return self._found(self._path(job), (job.known_tokens - 1) // self.block_size)

    def cached_tokens(self, request: Request) -> int:
        """Return how many tokens of a prompt are cached now, except its last one. Changes nothing."""
        return self._found(self._trie.known(request), (request.prompt_tokens - 1) // self.block_size).tokens

    def _found(self, path: Path, limit: int) -> Hit:
        """Return the longest run of cached blocks from the first one on, up to `limit` blocks."""
        pieces: list[Piece] = []
        idle = block = 0
        may_grow = False
        for node, first, end in path.blocks(0, limit, self.block_size):
            block = first
            while block < end and (found := self._oldest(node, block, end)) is not None:
                extent, until = found
                _append(pieces, extent, block, until)
                idle += 0 if extent.refs else until - block
                block = until
            if block < end:
                may_grow = any(other.base is not None for other in node.extents)
                break
        return Hit(block * self.block_size, block, idle, may_grow, tuple(pieces))

    def _path(self, job: Job) -> Path:
        path = self._paths.get(job)
        if path is None:
            path = self._paths[job] = self._trie.path(job)
        return path

    def _oldest(self, node: Node, block: int, end: int) -> tuple[Extent, int] | None:
        """Return the oldest copy of a block, and up to where it certainly is the oldest."""
        copies = [extent for extent in node.extents if extent.first <= block < self._end(extent)]
        if not copies:
            return None
        oldest = min(copies, key=lambda extent: extent.birth.of(block))
        until = min(end, self._end(oldest))
        for other in node.extents:
            if other is not oldest and other.first < until and self._end(other) > block:
                return oldest, block + 1
        return oldest, until

    def _end(self, extent: Extent) -> int:
        """Return where an extent ends now. A growing one has ``base + step_number - 1`` tokens, less the lag."""
        if extent.base is None:
            return extent.end
        return max(extent.first, (extent.base + self.step_number - 1 - self.registration_lag) // self.block_size)

    # -- actions -------------------------------------------------------------------------------------------------

    def admit(self, job: Job, hit: Hit, tokens: int) -> None:
        """Admit `job`: reference the hits, then take new blocks and register the full ones."""
        holding = self._holdings[job] = Holding(self._path(job))
        for extent, first, end in hit.parts:
            part = self._cut(extent, first, end)
            if not part.refs:
                self._free_queue.remove(part)
                super().take(len(part))
            part.refs += 1
            holding.pieces.append((part, first, end))
        self.take(self.blocks_for(tokens) - hit.blocks)
        self._register(job, tokens)
        if job.preemptions:
            self.self_hit_tokens += hit.tokens
        else:
            self.queried_tokens += job.known_tokens
            self.hit_tokens += hit.tokens

    def extend(self, job: Job, blocks: int, tokens: int) -> None:
        """Take blocks for a prefilling `job`; its full blocks are registered at once."""
        self.take(blocks)
        self._register(job, tokens)

    def begin_decoding(self, job: Job) -> None:
        """Open the extent that grows with the decode steps."""
        holding = self._holdings[job]
        first = holding.registered
        size = self.block_size
        birth = Birth(2 * (size - job.base + 1 + self.registration_lag), 2 * size, job.rank)
        growing = Extent(holding.path.nodes[-1], first, first, birth, refs=1)
        growing.base = job.base
        holding.path.nodes[-1].extents.append(growing)
        holding.growing = growing
        self._growers[growing] = holding

    def end_decoding(self, job: Job, tokens: int) -> None:
        """Close the growing extent at what is registered of `tokens` tokens."""
        holding = self._holdings[job]
        growing = holding.growing
        if growing is None:
            return
        del self._growers[growing]
        growing.base = None
        growing.end = max(growing.first, (tokens - self.registration_lag) // self.block_size)
        holding.growing = None
        if len(growing):
            holding.pieces.append((growing, growing.first, growing.end))
        else:
            self._drop(growing)

    def complete(self, job: Job, tokens: int) -> None:
        """Register what the lag left out: the last token of `job` has been delivered."""
        self._register(job, tokens, after_step=1)

    def release(self, job: Job, tokens: int) -> None:
        """Free the blocks of `job`, except those that other requests use."""
        holding = self._holdings.pop(job)
        unregistered = self.blocks_for(tokens) - holding.registered
        freed = []
        for part in self._parts_of(holding):
            part.refs -= 1
            if not part.refs:
                freed.append(part)
        self._free_queue.put(freed, unregistered)
        self.give_back(unregistered + sum(map(len, freed)))

    def forget(self, job: Job) -> None:
        """Drop what is known of a request that will not return."""
        path = self._paths.pop(job, None)
        if path is not None:
            self._trie.leave(path)

    def state(self) -> Hashable:
        """Return which blocks are free, in the order of reuse, and which every request uses.

        What a preempted request has computed can stay cached, so that it makes progress though it starts again.
        """
        held = tuple(tuple(part.content() for part in self._parts_of(holding)) for holding in self._holdings.values())
        return self._free_queue.state(), held

    def take(self, blocks: int) -> None:
        """Take blocks out of the pool; cached blocks that are reused for it can no longer be hit."""
        super().take(blocks)
        for extent in self._free_queue.take(blocks):
            self._drop(extent)

    def _register(self, job: Job, tokens: int, after_step: int = 0) -> None:
        holding = self._holdings[job]
        first, end = holding.registered, tokens // self.block_size
        if end <= first:
            return
        birth = Birth(2 * self.step_number + after_step, 0, job.rank)
        for node, a, b in holding.path.blocks(first, end, self.block_size):
            extent = Extent(node, a, b, birth, refs=1)
            node.extents.append(extent)
            holding.pieces.append((extent, a, b))

    def _drop(self, extent: Extent) -> None:
        if extent.node is not None:
            extent.node.extents.remove(extent)
            self._trie.prune(extent.node)

    def _cut(self, extent: Extent, first: int, end: int) -> Extent:
        """Return the extent of exactly these blocks, split off if needed."""
        while self._end(extent) <= first and extent.rest is not None:
            extent = extent.rest
        if extent.first < first:
            extent = self._split(extent, first)
        if self._end(extent) > end or extent.base is not None:
            self._split(extent, end)
        return extent

    def _split(self, extent: Extent, block: int) -> Extent:
        """Cut `extent` before `block` and return the second part; requests that hold the whole hold both.

        If it grows, only the second part goes on growing: the first one is complete and can be shared.
        """
        rest = Extent(extent.node, block, extent.end, extent.birth, extent.refs)
        rest.rest, extent.rest = extent.rest, rest
        if extent.node is not None:
            extent.node.extents.append(rest)
        if extent.base is not None:
            rest.base, extent.base = extent.base, None
            owner = self._growers[rest] = self._growers.pop(extent)
            owner.growing = rest
            owner.pieces.append((extent, extent.first, block))
        elif not extent.refs:
            self._free_queue.split(extent, rest)
        extent.end = block
        return rest

    # -- checks --------------------------------------------------------------------------------------------------

    def check(self, holders: Iterable[tuple[Job, int]]) -> None:
        """Compare pool, free queue and references with a walk over the holders."""
        self._free_queue.check(self.free)
        refs: dict[int, int] = {}
        parts: dict[int, Extent] = {}
        unregistered = 0
        for job, tokens in holders:
            holding = self._holdings[job]
            registered = holding.registered
            for part in self._parts_of(holding):
                parts[id(part)] = part
                refs[id(part)] = refs.get(id(part), 0) + 1
            unregistered += self.blocks_for(tokens) - registered
        wrong = [part for key, part in parts.items() if part.refs != refs[key]]
        if wrong:
            raise RunError(f"KV cache: {len(wrong)} extents count other references than their holders")
        if any(extent.refs != 1 for extent in self._growers):
            raise RunError("KV cache: a growing extent is shared")
        self.check_total(unregistered + sum(map(len, parts.values())))

    def _parts_of(self, holding: Holding) -> Iterator[Extent]:
        """Yield the extents that now make up what a request holds, in order of position."""
        for extent, _, end in holding.pieces:
            part: Extent | None = extent
            while part is not None:
                yield part
                part = part.rest if part.end < end else None


def _append(pieces: list[Piece], extent: Extent, first: int, end: int) -> None:
    if pieces and pieces[-1][0] is extent and pieces[-1][2] == first:
        pieces[-1] = (extent, pieces[-1][1], end)
    else:
        pieces.append((extent, first, end))
