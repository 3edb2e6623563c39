"""A paged pool with a prefix cache: full blocks stay findable after their request has gone, until they are reused.

Blocks are registered when the step that fills them is planned, so later requests of the same step can hit them. Free
blocks are handed out in order: first those without identity, then the least recently freed; a request's own blocks are
freed from its last to its first. Equal blocks that were computed twice live side by side; a lookup takes the oldest.
A decoding request owns one growing extent whose end follows from the decode clock and is read only when somebody looks;
so decoding costs nothing here. The rules are those of vLLM's V1 block pool; where its versions differ is a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator

from mypy_extensions import mypyc_attr

from simqueue.errors import RunError
from simqueue.kvcache.base import Hit
from simqueue.kvcache.extents import Birth, Extent, IdleQueue
from simqueue.kvcache.identity import Node, Path, Trie
from simqueue.kvcache.paged import PagedKVCache
from simqueue.request import Job

Piece = tuple[Extent, int, int]
"""(extent, first block, end block)."""


class Holding:
    """What one request has in the cache: registered blocks in order, hits first, and those it makes by decoding."""

    __slots__ = ("growing", "path", "pieces")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pieces: list[Piece] = []
        self.growing: Extent | None = None

    @property
    def registered(self) -> int:
        """Blocks registered so far, those still growing apart."""
        return self.pieces[-1][2] if self.pieces else 0


@mypyc_attr(allow_interpreted_subclasses=True)
class PrefixKVCache(PagedKVCache):
    """Paged blocks that are found again by what they hold.

    Parameters
    ----------
    blocks, block_size, watermark_blocks : int
        As in `KVCache`.
    unhashed_first : bool
        Whether freed blocks without identity are reused before all others (else they queue like them).
    lag : int
        By how many steps the registration of generated blocks lags (1 with asynchronous scheduling).

    Attributes
    ----------
    queried_tokens, hit_tokens : int
        Tokens looked up and found, once per request, at its first admission.
    self_hit_tokens : int
        Tokens found by preempted requests that come back; apart, since mostly they find their own.
    """

    shares = True

    def __init__(
        self, blocks: int, block_size: int, watermark_blocks: int = 0, *, unhashed_first: bool = True, lag: int = 0
    ) -> None:
        super().__init__(blocks, block_size, watermark_blocks)
        self.unhashed_first = unhashed_first
        self.lag = lag
        self._steps: Callable[[], int] = int
        self._blank = blocks
        self._idle = IdleQueue()
        self._trie = Trie()
        self._paths: dict[Job, Path] = {}
        self._holdings: dict[Job, Holding] = {}
        self._growers: dict[Extent, Holding] = {}
        self.queried_tokens = self.hit_tokens = self.self_hit_tokens = 0

    def follow(self, steps: Callable[[], int]) -> None:
        """Learn the decode clock: `steps` returns the number of the step that is being planned, or was last."""
        self._steps = steps

    # -- questions -----------------------------------------------------------------------------------------------

    def lookup(self, job: Job) -> Hit:
        """Return the longest run of cached blocks from the first token; the last known token is never among them."""
        limit = (job.known_tokens - 1) // self.block_size
        pieces: list[Piece] = []
        idle = block = 0
        may_grow = False
        for node, first, end in self._path(job).blocks(0, limit, self.block_size):
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
        """Return the oldest copy of a block, and up to where it surely is the oldest."""
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
        if extent.base is None:
            return extent.end
        return max(extent.first, (extent.base + self._steps() - 1 - self.lag) // self.block_size)

    # -- actions -------------------------------------------------------------------------------------------------

    def admit(self, job: Job, hit: Hit, tokens: int) -> None:
        """Let `job` enter: hits are referenced, then new blocks handed out and the full ones registered."""
        holding = self._holdings[job] = Holding(self._path(job))
        for extent, first, end in hit.parts:
            part = self._cut(extent, first, end)
            if not part.refs:
                self._idle.remove(part)
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
        """Let a prefilling `job` go on; its full blocks are registered at once."""
        self.take(blocks)
        self._register(job, tokens)

    def begin_decoding(self, job: Job) -> None:
        """Open the extent that grows with the decode clock."""
        holding = self._holdings[job]
        first = holding.registered
        size = self.block_size
        birth = Birth(2 * (size - job.base + 1 + self.lag), 2 * size, job.place)
        growing = Extent(holding.path.nodes[-1], first, first, birth, refs=1)
        growing.base = job.base
        holding.path.nodes[-1].extents.append(growing)
        holding.growing = growing
        self._growers[growing] = holding

    def end_decoding(self, job: Job, tokens: int) -> None:
        """Close the growing extent where the registration of `tokens` tokens stands."""
        holding = self._holdings[job]
        growing = holding.growing
        if growing is None:
            return
        del self._growers[growing]
        growing.base = None
        growing.end = max(growing.first, (tokens - self.lag) // self.block_size)
        holding.growing = None
        if len(growing):
            holding.pieces.append((growing, growing.first, growing.end))
        else:
            self._forget_extent(growing)

    def complete(self, job: Job, tokens: int) -> None:
        """Register what lagged behind: the last token of `job` has been delivered."""
        self._register(job, tokens, after_step=1)

    def release(self, job: Job, tokens: int) -> None:
        """Free the blocks of `job` from its last to its first; those that others use too stay."""
        holding = self._holdings.pop(job)
        unhashed = self.blocks_for(tokens) - holding.registered
        if unhashed:
            self.give_back(unhashed)
            if self.unhashed_first:
                self._blank += unhashed
            else:
                self._idle.append(Extent(None, 0, unhashed, Birth(0, 0, 0), refs=0))
        for piece in reversed(holding.pieces):
            for part in reversed(list(_parts(piece))):
                part.refs -= 1
                if not part.refs:
                    self._idle.append(part)
                    self.give_back(len(part))

    def forget(self, job: Job) -> None:
        """Drop what is known of a request that will not come back."""
        path = self._paths.pop(job, None)
        if path is not None:
            self._trie.leave(path)

    def state(self) -> Hashable:
        """Return which blocks wait for reuse, in order, and which every request uses.

        What a preempted request has computed may stay cached, so that it gets on though its tokens start from none.
        """
        held = tuple(tuple(map(_content, self._parts_of(holding))) for holding in self._holdings.values())
        return self._blank, tuple(map(_content, self._idle)), held

    def take(self, blocks: int) -> None:
        """Hand out blocks: blank ones first, then the longest unused, which are forgotten."""
        super().take(blocks)
        blank = min(blocks, self._blank)
        self._blank -= blank
        blocks -= blank
        while blocks:
            extent = self._idle.front
            reused = min(blocks, len(extent))
            extent.end -= reused
            blocks -= reused
            if not len(extent):
                self._idle.remove(extent)
                self._forget_extent(extent)

    def _register(self, job: Job, tokens: int, after_step: int = 0) -> None:
        holding = self._holdings[job]
        first, end = holding.registered, tokens // self.block_size
        if end <= first:
            return
        birth = Birth(2 * self._steps() + after_step, 0, job.place)
        for node, a, b in holding.path.blocks(first, end, self.block_size):
            extent = Extent(node, a, b, birth, refs=1)
            node.extents.append(extent)
            holding.pieces.append((extent, a, b))

    def _forget_extent(self, extent: Extent) -> None:
        if extent.node is not None:
            extent.node.extents.remove(extent)
            self._trie.prune(extent.node)

    def _cut(self, extent: Extent, first: int, end: int) -> Extent:
        """Return the extent of exactly these blocks, split off where needed."""
        while self._end(extent) <= first and extent.rest is not None:
            extent = extent.rest
        if extent.first < first:
            extent = self._split(extent, first)
        if self._end(extent) > end or extent.base is not None:
            self._split(extent, end)
        return extent

    def _split(self, extent: Extent, block: int) -> Extent:
        """Cut `extent` before `block` and return the second part; whoever holds the whole holds both."""
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
            self._idle.insert_before(rest, extent)
        extent.end = block
        return rest

    # -- checks --------------------------------------------------------------------------------------------------

    def check(self, holders: Iterable[tuple[Job, int]]) -> None:
        """Compare pool, queue and references with a walk over the holders."""
        idle = list(self._idle)
        if any(extent.refs or extent.base is not None for extent in idle):
            raise RunError("KV cache: blocks wait for reuse that somebody uses")
        if self._blank + sum(map(len, idle)) != self.free:
            raise RunError(f"KV cache: {self._blank} blank + {sum(map(len, idle))} idle differ from {self.free} free")
        refs: dict[int, int] = {}
        parts: dict[int, Extent] = {}
        unhashed = 0
        for job, tokens in holders:
            holding = self._holdings[job]
            registered = holding.registered
            for part in self._parts_of(holding):
                parts[id(part)] = part
                refs[id(part)] = refs.get(id(part), 0) + 1
            unhashed += self.blocks_for(tokens) - registered
        wrong = [part for key, part in parts.items() if part.refs != refs[key]]
        if wrong:
            raise RunError(f"KV cache: {len(wrong)} extents count other references than their holders")
        if any(extent.refs != 1 for extent in self._growers):
            raise RunError("KV cache: a growing extent is shared")
        self.check_total(unhashed + sum(map(len, parts.values())))

    def _parts_of(self, holding: Holding) -> Iterator[Extent]:
        for piece in holding.pieces:
            yield from _parts(piece)


def _content(extent: Extent) -> tuple[Hashable, int, int]:
    return (None if extent.node is None else extent.node.past()), extent.first, extent.end


def _append(pieces: list[Piece], extent: Extent, first: int, end: int) -> None:
    if pieces and pieces[-1][0] is extent and pieces[-1][2] == first:
        pieces[-1] = (extent, pieces[-1][1], end)
    else:
        pieces.append((extent, first, end))


def _parts(piece: Piece) -> Iterator[Extent]:
    """Yield the extents that now make up a piece which was one extent when it was taken."""
    extent, first, end = piece
    part: Extent | None = extent
    while part is not None and first < end:
        yield part
        first = part.end
        part = part.rest
