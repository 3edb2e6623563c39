"""The KV cache of SGLang: pages of requests, and a radix tree of what can be found again.

A request owns the pages beyond what the tree has of it, and holds the path of the tree before them. Tokens that are put
into the tree change their owner; copies of what is there already are given back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mypy_extensions import mypyc_attr

from simqueue.errors import RunError
from simqueue.kvcache.identity import Run, pieces_of
from simqueue.kvcache.layouts import PagedKVCache
from simqueue.kvcache.radixtree import RadixNode, RadixRules, RadixTree
from simqueue.kvcache.tokens import Tokens
from simqueue.request import Job, Request


class Holding:
    """What one request has in the cache.

    Attributes
    ----------
    tokens : Tokens
        Its tokens, prompt and output.
    prompt_tokens : int
        Of these, those of the prompt as the engine takes it.
    node : RadixNode or None
        Where the path ends that it holds; None: it holds nothing.
    shared : int
        Tokens that the tree has of it: those up to `node`.
    length : int
        Its tokens in the cache, `shared` included.
    inserted : int
        The most tokens that it has put into the tree since it was admitted.
    """

    __slots__ = ("inserted", "length", "node", "prompt_tokens", "shared", "tokens")

    def __init__(self, tokens: Tokens, prompt_tokens: int) -> None:
        self.tokens = tokens
        self.prompt_tokens = prompt_tokens
        self.node: RadixNode | None = None
        self.shared = self.length = self.inserted = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class RadixKVCache(PagedKVCache):
    """Pages, with a radix tree of finished and running requests.

    `free` counts what is free and what could be evicted; `available` is what is free at once.

    Parameters
    ----------
    blocks, block_size : int
        Pages of the pool, and tokens in a page.
    rules : RadixRules
    caches : bool
        Whether anything is found again (False: the engine's disable_radix_cache).

    Attributes
    ----------
    available : int
        Tokens in free pages.
    tree : RadixTree
    queried_tokens, hit_tokens, self_hit_tokens : int
        As in `PrefixKVCache`.
    """

    shares = True

    def __init__(self, blocks: int, block_size: int, rules: RadixRules, *, caches: bool = True) -> None:
        super().__init__(blocks, block_size)
        self.rules = rules
        self.shares = self.caches = caches
        self.available = blocks * block_size
        self.tree = RadixTree(block_size, rules)
        self.queried_tokens = self.hit_tokens = self.self_hit_tokens = 0

    # -- questions -----------------------------------------------------------------------------------------------

    @property
    def usable(self) -> int:
        """Tokens in free pages and in pages that could be evicted."""
        return self.available + self.tree.evictable

    def cached_tokens(self, request: Request) -> int:
        """Return how many tokens of a prompt are cached now, except its last one. Changes nothing."""
        if not self.caches or not request.prompt:
            return 0
        return self.tree.peek(Tokens(request.prompt), request.prompt_tokens - 1)

    def holding(self, job: Job, prompt_tokens: int, stop_stream: Any = None) -> Holding:
        """Return a new holding of a request that has arrived.

        Parameters
        ----------
        job : Job
        prompt_tokens : int
            Tokens of the prompt that the engine takes.
        stop_stream : optional
            The stream of its last token, if that is not part of the answer's own stream.
        """
        return Holding(Tokens(_pieces(job, prompt_tokens, stop_stream)), prompt_tokens)

    # -- actions -------------------------------------------------------------------------------------------------

    def make_room(self, tokens: int) -> bool:
        """Evict if fewer than `tokens` tokens are free; return whether they are free then."""
        if self.available < tokens and self.caches:
            missing = tokens - self.available
            self.evict(missing if self.rules.evicts == "short" else tokens)
        return self.available >= tokens

    def make_room_of_victim(self, tokens: int) -> None:
        """Evict after a request was retracted, so that `tokens` tokens are free."""
        if self.available < tokens and self.caches:
            self.evict(tokens if self.rules.evicts == "amount" else tokens - self.available)

    def evict(self, tokens: int) -> None:
        """Evict leaves of the tree until `tokens` tokens are gone, or none is left."""
        self.available += self.tree.evict(tokens)
        self._count()

    def hold(self, holding: Holding, node: RadixNode) -> None:
        """Hold a path of the tree, which is all that the request has in the cache."""
        self.tree.lock(node)
        holding.node = node
        holding.shared = holding.length = node.depth
        self._count()

    def lengthen(self, holding: Holding, tokens: int) -> None:
        """Take pages for the next `tokens` tokens of a request. Precondition: they are free."""
        before = holding.length
        holding.length += tokens
        self.take_tokens((self.blocks_for(holding.length) - self.blocks_for(before)) * self.block_size)

    def take_tokens(self, tokens: int) -> None:
        """Take free tokens, in whole pages."""
        self.available -= tokens
        if self.available < 0:
            raise RunError(f"KV cache: {-self.available} tokens more are taken than are free")
        self._count()

    def give_tokens(self, tokens: int) -> None:
        """Give back tokens, in whole pages."""
        self.available += tokens
        self._count()

    def put(self, holding: Holding, length: int, priority: int) -> None:
        """Put the first `length` tokens into the tree, in whole pages, and hold them there."""
        if not self.caches:
            return
        node, found = self._insert(holding, length, priority)
        if self.rules.looks_after != "never":
            node = self.tree.match(holding.tokens, length)
        self.tree.lock(node)
        if holding.node is not None:
            self.tree.unlock(holding.node)
        self.available += found - holding.shared
        holding.node, holding.shared = node, node.depth
        self._count()

    def finish(self, holding: Holding, length: int, priority: int) -> None:
        """Put the first `length` tokens into the tree, and give back all else that a request has."""
        moved = 0
        if self.caches:
            _, found = self._insert(holding, length, priority)
            if self.rules.looks_after == "always":
                self.tree.match(holding.tokens, length)
            moved = length - length % self.block_size - found
        self.available += self.blocks_for(holding.length) * self.block_size - holding.shared - moved
        self._let_go(holding)

    def drop(self, holding: Holding) -> None:
        """Give back all that a request has; nothing of it is put into the tree."""
        self.available += self.blocks_for(holding.length) * self.block_size - holding.shared
        self._let_go(holding)

    def _insert(self, holding: Holding, length: int, priority: int) -> tuple[RadixNode, int]:
        found, node = self.tree.insert(holding.tokens, length, priority, holding.inserted)
        page = self.block_size
        holding.inserted = max(holding.inserted, length - length % page)
        prompt = holding.prompt_tokens - holding.prompt_tokens % page
        if self.rules.splits_prompt and 0 < prompt < length - length % page:
            self.tree.insert(holding.tokens, prompt, priority + 1, prompt)
        return node, found

    def _let_go(self, holding: Holding) -> None:
        if holding.node is not None:
            self.tree.unlock(holding.node)
        holding.node = None
        holding.shared = holding.length = holding.inserted = 0
        self._count()

    def _count(self) -> None:
        """Count free blocks, after a change."""
        self.free = free = (self.available + self.tree.evictable) // self.block_size
        if free < self._least_free:
            self._least_free = free

    # -- for checks ----------------------------------------------------------------------------------------------

    def check_holdings(self, holdings: Iterable[tuple[Holding, int]], others: int = 0) -> None:
        """Compare the pool with a walk over the tree and all holdings; raise `RunError` if they differ.

        Parameters
        ----------
        holdings : iterable of (Holding, int)
            What requests have, and how many of their tokens are in the cache.
        others : int
            Tokens that are held besides.
        """
        self.tree.check()
        own = others + sum(self.blocks_for(tokens) * self.block_size - one.shared for one, tokens in holdings)
        if self.available + self.tree.tokens + own != self.total * self.block_size:
            raise RunError(
                f"KV cache: {self.available} free + {self.tree.tokens} cached + {own} held tokens differ from the "
                f"pool's {self.total * self.block_size}"
            )


def _pieces(job: Job, prompt_tokens: int, stop_stream: Any) -> list[Run]:
    """Return the tokens of a request: a prompt that is cut loses its end, a stop token has a stream of its own."""
    pieces = pieces_of(job)
    request = job.request
    if prompt_tokens == request.prompt_tokens and stop_stream is None:
        return pieces
    whole = Tokens(pieces)
    pieces = whole.between(0, prompt_tokens)
    made = request.output_tokens - (0 if stop_stream is None else 1)
    if made:
        pieces += whole.between(request.prompt_tokens, request.prompt_tokens + made)
    return pieces if stop_stream is None else [*pieces, (stop_stream, 0, 1)]
