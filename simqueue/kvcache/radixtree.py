"""A radix tree of cached tokens: which prefix is there, who holds it, and which leaf is evicted next.

A node is a run of tokens after those of its parent, in whole pages. Tokens are runs of streams (see `identity`), so a
node costs the same however many tokens it has. Locks are counted from a node to the root; what is locked stays. Leaves
are evicted one by one, and a parent without children is a leaf.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Literal

from simqueue.errors import RunError
from simqueue.kvcache.identity import Run
from simqueue.kvcache.tokens import Tokens

Eviction = Literal["lru", "lfu", "slru", "fifo", "filo", "priority"]
SLRU_HITS = 2
"""Insertions of a node from which on slru protects it."""


@dataclass(frozen=True, slots=True)
class RadixRules:
    """What differs between versions of the tree.

    Attributes
    ----------
    eviction : str
        Which unlocked leaf is evicted first.
    recency : {"nodes", "path", "end"}
        Which times a walk leaves. nodes: every node its own, a node at which an insertion ends none; path: one for the
        whole path; end: as path, but a split renews its lower part.
    counts_hits : bool
        Whether insertions are counted; if not, lfu is lru.
    splits_prompt : bool
        Whether what is inserted beyond a prompt is a node of its own, so that it can be evicted without the prompt.
    looks_after : {"put", "always", "never"}
        Whether what was inserted is looked up again, which counts as a use: for running requests, also for finished
        ones, or not at all.
    evicts : {"amount", "amount_short", "short"}
        How much is evicted if n tokens are to be free. amount: n; amount_short: n, when a victim of a retraction leaves
        only what is missing; short: what is missing.
    """

    eviction: Eviction = "lru"
    recency: Literal["nodes", "path", "end"] = "path"
    counts_hits: bool = False
    splits_prompt: bool = False
    looks_after: Literal["put", "always", "never"] = "put"
    evicts: Literal["amount", "amount_short", "short"] = "amount"


class RadixNode:
    """Cached tokens after those of the parent.

    Attributes
    ----------
    parent : RadixNode or None
    key : hashable
        Its first page: its name among the children of the parent.
    runs : list of (stream, start, length)
    length, depth : int
        Its tokens, and all tokens up to its end.
    children : dict
    locks : int
    used, made : float
        Times of the last access and of its creation, in accesses.
    hits, priority : int
    queued : bool
        Whether it is among the candidates for eviction.
    """

    __slots__ = (
        "children",
        "depth",
        "hits",
        "key",
        "length",
        "locks",
        "made",
        "parent",
        "priority",
        "queued",
        "runs",
        "used",
    )

    def __init__(self, parent: RadixNode | None, key: Hashable, runs: list[Run], length: int, time: float) -> None:
        self.parent = parent
        self.key = key
        self.runs = runs
        self.length = length
        self.depth: int = length + (0 if parent is None else parent.depth)
        self.children: dict[Hashable, RadixNode] = {}
        self.locks = 0
        self.used = self.made = time
        self.hits = 0
        self.priority = 0
        self.queued = False


class RadixTree:
    """All cached tokens.

    Parameters
    ----------
    page : int
        Tokens in a page.
    rules : RadixRules

    Attributes
    ----------
    root : RadixNode
    tokens, evictable : int
        Cached tokens, and those of them that no request holds.
    """

    def __init__(self, page: int, rules: RadixRules) -> None:
        self.page = page
        self.rules = rules
        self.root = RadixNode(None, None, [], 0, 0.0)
        self.root.locks = 1
        self.tokens = self.evictable = 0
        self._time = 0.0
        self._added = 0
        self._candidates: list[tuple[Any, ...]] = []

    # -- walks ---------------------------------------------------------------------------------------------------

    def match(self, tokens: Tokens, length: int) -> RadixNode:
        """Return the node where the longest cached prefix of the first `length` tokens ends; it counts as used.

        A node of which only a part matches is split there.
        """
        length -= length % self.page
        node = self.root
        if not length:
            return node
        time = self._tick()
        each = self.rules.recency == "nodes"
        while node.depth < length:
            child = node.children.get(self._key(tokens, node.depth))
            if child is None:
                break
            same = self._same(child, tokens, length)
            if same < child.length:
                if not each:
                    child.used = time
                node = self._split(child, same)
                break
            node = child
            node.used = self._tick() if each else time
        if self.rules.recency == "end":
            self._touch_path(node)
        return node

    def insert(self, tokens: Tokens, length: int, priority: int = 0, known: int = 0) -> tuple[int, RadixNode]:
        """Add the first `length` tokens, cut to whole pages; return how many were there, and the node of the last one.

        Up to `known` tokens were inserted before for the same request, and do not count as hits again.
        """
        length -= length % self.page
        node = self.root
        if not length:
            return 0, node
        time = self._tick()
        each = self.rules.recency == "nodes"
        while node.depth < length:
            child = node.children.get(self._key(tokens, node.depth))
            if child is None:
                break
            same = self._same(child, tokens, length)
            if not each:
                child.used = self._tick() if self.rules.recency == "end" else time
            if same < child.length:
                child = self._split(child, same)
            node = child
            if each and node.depth < length:
                node.used = self._tick()
            node.priority = max(node.priority, priority)
            if self.rules.counts_hits and node.depth > known:
                node.hits += 1
        found = node.depth
        if found < length:
            node = self._add(node, tokens, length, priority)
            node.hits += int(self.rules.counts_hits and length > known)
        return found, node

    def peek(self, tokens: Tokens, length: int) -> int:
        """Return how many of the first `length` tokens are cached. Changes nothing."""
        length -= length % self.page
        node = self.root
        while node.depth < length:
            child = node.children.get(self._key(tokens, node.depth))
            if child is None:
                break
            same = self._same(child, tokens, length)
            if same < child.length:
                return node.depth + same
            node = child
        return node.depth

    def _same(self, child: RadixNode, tokens: Tokens, length: int) -> int:
        """Return how many tokens of a child match, in whole pages."""
        first = child.depth - child.length
        same = tokens.shared(child.runs, first, min(length, child.depth))
        return same - same % self.page

    def _key(self, tokens: Tokens, first: int) -> Hashable:
        if self.page > 1:
            return tuple(tokens.between(first, first + self.page))
        at = bisect_right(tokens.ends, first)
        stream, start, length = tokens.runs[at]
        return stream, start + first - (tokens.ends[at] - length)

    def _tick(self) -> float:
        self._time += 1.0
        return self._time

    def _touch_path(self, node: RadixNode) -> None:
        """Renew a node and, a little less, each of those above it."""
        time = self._tick()
        above: RadixNode | None = node
        while above is not None:
            above.used = time
            time -= 1e-5
            above = above.parent

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _split(self, child: RadixNode, length: int) -> RadixNode:
        """Make the first `length` tokens of a child a node of their own, in its place; return it."""
        parent = child.parent
        if parent is None:
            raise RunError("radix tree: the root cannot be split")
        upper = RadixNode(parent, child.key, [], length, self._tick())
        whole = Tokens(child.runs)
        upper.runs, lower = whole.between(0, length), whole.between(length, child.length)
        upper.locks, upper.priority = child.locks, child.priority
        if self.rules.recency == "end":
            upper.hits, upper.made = child.hits, child.made
            child.used = self._tick()
        child.parent, child.runs, child.length = upper, lower, child.length - length
        child.key = self._key(Tokens(lower), 0)
        upper.children[child.key] = child
        parent.children[upper.key] = upper
        return upper

    def _add(self, parent: RadixNode, tokens: Tokens, length: int, priority: int) -> RadixNode:
        first = parent.depth
        runs = tokens.between(first, length)
        node = RadixNode(parent, self._key(tokens, first), runs, length - first, self._tick())
        node.priority = priority
        parent.children[node.key] = node
        self.tokens += node.length
        self.evictable += node.length
        self._offer(node)
        return node

    # -- locks and eviction --------------------------------------------------------------------------------------

    def lock(self, node: RadixNode) -> None:
        """Hold all tokens up to the end of `node`."""
        above: RadixNode | None = node
        while above is not None and above is not self.root:
            if not above.locks:
                self.evictable -= above.length
            above.locks += 1
            above = above.parent

    def unlock(self, node: RadixNode) -> None:
        """Undo `lock`."""
        above: RadixNode | None = node
        while above is not None and above is not self.root:
            above.locks -= 1
            if not above.locks:
                self.evictable += above.length
                self._offer(above)
            above = above.parent

    def evict(self, tokens: int) -> int:
        """Evict leaves until at least `tokens` tokens are gone, or none is left; return how many went."""
        gone = 0
        while gone < tokens and self._candidates:
            entry = heappop(self._candidates)
            node: RadixNode = entry[-1]
            if entry[-2] != self._rank(node):  # used again since it was offered
                heappush(self._candidates, (*self._rank(node), self._serial(), self._rank(node), node))
                continue
            node.queued = False
            parent = node.parent
            if parent is None or node.children or node.locks:
                continue
            del parent.children[node.key]
            node.parent = None
            gone += node.length
            self._offer(parent)
        self.tokens -= gone
        self.evictable -= gone
        return gone

    def _offer(self, node: RadixNode) -> None:
        """Make a leaf that no request holds a candidate for eviction."""
        if node.queued or node.children or node.locks or node.parent is None:
            return
        node.queued = True
        rank = self._rank(node)
        heappush(self._candidates, (*rank, self._serial(), rank, node))

    def _serial(self) -> int:
        self._added += 1
        return self._added

    def _rank(self, node: RadixNode) -> tuple[float, float]:
        """Return the sort key of a leaf: the smallest is evicted first."""
        kind = self.rules.eviction
        if kind == "lru":
            return 0.0, node.used
        if kind == "lfu":
            return float(node.hits), node.used
        if kind == "slru":
            return float(node.hits >= SLRU_HITS), node.used
        if kind == "priority":
            return float(node.priority), node.used
        return 0.0, -node.made if kind == "filo" else node.made

    # -- for checks ----------------------------------------------------------------------------------------------

    def nodes(self) -> Iterator[RadixNode]:
        """Yield all nodes but the root, parents before their children."""
        open_nodes = list(self.root.children.values())
        while open_nodes:
            node = open_nodes.pop()
            yield node
            open_nodes.extend(node.children.values())

    def check(self) -> None:
        """Compare the sums with a walk over all nodes; raise `RunError` if they differ."""
        tokens = evictable = 0
        for node in self.nodes():
            parent = node.parent
            if parent is None or parent.children.get(node.key) is not node or node.depth != parent.depth + node.length:
                raise RunError(f"radix tree: a node of {node.length} tokens is not where its parent has it")
            if sum(length for _, _, length in node.runs) != node.length or node.length % self.page:
                raise RunError(f"radix tree: a node of {node.length} tokens holds runs {node.runs}")
            if node.locks < max((child.locks for child in node.children.values()), default=0):
                raise RunError("radix tree: a node is held by fewer than one of its children")
            if not (node.children or node.locks or node.queued):
                raise RunError("radix tree: a leaf that no request holds is no candidate for eviction")
            tokens += node.length
            evictable += 0 if node.locks else node.length
        if (tokens, evictable) != (self.tokens, self.evictable):
            counted = self.tokens, self.evictable
            raise RunError(f"radix tree: {counted} tokens and evictable tokens differ from {tokens, evictable}")
