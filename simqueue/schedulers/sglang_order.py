"""The orders in which SGLang looks at waiting requests. All sorts are stable, and the sorted list is the new queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Final

from simqueue.kvcache.radix import RadixKVCache
from simqueue.kvcache.radixtree import RadixNode, RadixRules, RadixTree
from simqueue.schedulers.keys import SglangSettings
from simqueue.schedulers.sglang_batch import DecodeBatch
from simqueue.schedulers.sglang_entry import Entry
from simqueue.schedulers.sglang_rules import SglangRules

LONG_QUEUE: Final = 128
"""Waiting requests above which lpm and hrrn are fcfs for the pass, and up to which prefixes are touched."""
SHARED_TOKENS: Final = 32
"""A prefix that is shared with an earlier waiting request counts from this length on."""
REFRESH_EVERY: Final = 32
"""Attempts at a prefill between two refreshes of waiting prefixes."""
BY_TREE: Final = ("lpm", "dfs-weight", "hrrn")
"""Orders that look at the tree."""


class Order:
    """Sorts the queue at every attempt at a prefill.

    Parameters
    ----------
    flags : SglangSettings
    rules : SglangRules
    kv : RadixKVCache
    """

    def __init__(self, flags: SglangSettings, rules: SglangRules, kv: RadixKVCache) -> None:
        self.flags = flags
        self.rules = rules
        self.kv = kv
        by_tree = flags.schedule_policy in BY_TREE
        self.name = "fcfs" if by_tree and not kv.caches else flags.schedule_policy
        self._attempts = 0
        self._random = Random(0)  # the engine's generator is seeded too; a run repeats itself

    def matched(self, waiting: list[Entry]) -> bool:
        """Return whether the sort of this queue looks at the tree."""
        return self._active(waiting) in BY_TREE

    def sort(self, waiting: list[Entry], running: DecodeBatch, prefilled: int) -> None:
        """Sort the queue in place.

        Parameters
        ----------
        waiting : list of Entry
        running : DecodeBatch
        prefilled : int
            Prefill tokens that the scheduler has run so far (for hrrn).
        """
        active = self._active(waiting)
        if active in BY_TREE:
            self._sort_by_tree(active, waiting, prefilled)
            return
        if active == "lof":
            self._sort_by_length(waiting)
        elif active == "random":
            self._random.shuffle(waiting)
        elif active == "routing-key":
            _sort_by_routing_key(waiting, running)
        elif self.name == "fcfs" and self.flags.enable_priority_scheduling:
            waiting.sort(key=lambda entry: (self.urgency(entry), entry.entered))
        self._refresh(waiting)

    def urgency(self, entry: Entry) -> int:
        """Return the priority of a request such that the smaller is the more urgent."""
        priority = entry.job.request.priority
        return priority if self.flags.schedule_low_priority_values_first else -priority

    def look_up(self, entry: Entry, length: int) -> None:
        """Note where the first `length` tokens of a request end in the tree; they count as used."""
        if not self.kv.caches:
            return
        entry.node = node = self.kv.tree.match(entry.holding.tokens, length)
        entry.matched = node.depth

    def _active(self, waiting: list[Entry]) -> str:
        if self.name in ("lpm", "hrrn") and len(waiting) > LONG_QUEUE:
            return "long"
        return self.name

    def _sort_by_length(self, waiting: list[Entry]) -> None:
        if self.flags.enable_priority_scheduling:
            waiting.sort(key=lambda entry: (self.urgency(entry), -entry.max_new))
        else:
            waiting.sort(key=lambda entry: -entry.max_new)

    def _sort_by_tree(self, active: str, waiting: list[Entry], prefilled: int) -> None:
        late = self._look_up_all(waiting)
        if active == "dfs-weight":
            waiting[:] = by_weight(waiting)
        elif active == "lpm":
            waiting.sort(key=lambda entry: (entry in late, 0 if entry in late else -self._found(entry)))
        else:
            waiting.sort(key=lambda entry: self._response_ratio(entry, late, prefilled))

    def _look_up_all(self, waiting: list[Entry]) -> dict[Entry, None]:
        """Look up all requests; return those whose prefix an earlier one of them brings."""
        late: dict[Entry, None] = {}
        seen = RadixTree(1, RadixRules())
        for entry in waiting:
            known = entry.known if self.rules.matches_all else entry.known - 1
            self.look_up(entry, known)
            if entry.matched > SHARED_TOKENS or not self.rules.in_batch_prefixes:
                continue
            if seen.match(entry.holding.tokens, known).depth >= SHARED_TOKENS:
                late[entry] = None
            else:
                seen.insert(entry.holding.tokens, known)
        return late

    def _found(self, entry: Entry) -> int:
        """Return the tokens that were found; the last one has to be computed in any case."""
        if self.rules.gate == "page":
            return min(entry.matched, entry.known - 1)
        return entry.matched

    def _response_ratio(self, entry: Entry, late: dict[Entry, None], prefilled: int) -> tuple[float, str]:
        name = entry.job.request.request_id
        if entry in late:
            return float("inf"), name
        uncached = max(0, entry.prompt - self._found(entry))
        if not uncached:
            return -float("inf"), name
        return -(max(0, prefilled - entry.aged) / uncached), name

    def _refresh(self, waiting: list[Entry]) -> None:
        """Touch the prefixes of the first waiting requests now and then, the head last."""
        if not (self.rules.refreshes_waiting and waiting and self.kv.caches and self.kv.rules.eviction == "lru"):
            return
        due = self._attempts % REFRESH_EVERY == 0
        self._attempts += 1
        if due:
            for entry in reversed(waiting[:LONG_QUEUE]):
                self.kv.tree.match(entry.holding.tokens, entry.known)


def _sort_by_routing_key(waiting: list[Entry], running: DecodeBatch) -> None:
    """Requests with a key that runs come first, the most frequent key first; the others by key."""
    counts = Counter(entry.job.request.routing_key for entry in running.entries if entry.job.request.routing_key)
    if not counts:
        return

    def key(entry: Entry) -> tuple[int, int, str]:
        name = entry.job.request.routing_key or ""
        return (0, -counts[name], name) if name in counts else (1, 0, name)

    waiting.sort(key=key)


def by_weight(waiting: Iterable[Entry]) -> list[Entry]:
    """Return requests depth first through the tree: the subtree with most of them first, a node after its children."""
    at: dict[RadixNode, list[Entry]] = {}
    weights: dict[RadixNode, int] = {}
    root: RadixNode | None = None
    for entry in waiting:
        node = entry.node
        if node is None:
            continue
        at.setdefault(node, []).append(entry)
        above: RadixNode | None = node
        while above is not None:
            weights[above] = weights.get(above, 0) + 1
            root, above = above, above.parent
    order: list[Entry] = []
    open_nodes = [] if root is None else [(root, False)]
    while open_nodes:
        node, seen = open_nodes.pop()
        if seen:
            order.extend(at.get(node, ()))
            continue
        open_nodes.append((node, True))
        children = sorted((child for child in node.children.values() if child in weights), key=lambda c: -weights[c])
        open_nodes.extend((child, False) for child in reversed(children))
    return order
