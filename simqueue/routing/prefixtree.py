"""A radix tree of the texts that were sent to each owner, with a size limit per owner."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from simqueue.routing.texts import START, Alphabet, Place, Text, common_prefix, divided, length_of, rest_of


class Node:
    """A node: the text from its parent to it, and its owners.

    Attributes
    ----------
    label : Text
    length : int
        Characters of the label.
    children : dict
        By the first character of their labels.
    last_use : dict of int to int
        Its owners, in the order in which they got it, and when they last used it: a count, not seconds.
    creator : int or None
        The owner whose text made the node, or the one that took its place.
    """

    __slots__ = ("children", "creator", "label", "last_use", "length", "parent")

    def __init__(self, label: Text, length: int, parent: Node | None, creator: int | None) -> None:
        self.label = label
        self.length = length
        self.parent = parent
        self.creator = creator
        self.children: dict[Hashable, Node] = {}
        self.last_use: dict[int, int] = {}

    def replace_creator(self, owner: int) -> None:
        """Put an owner in the place of the creator if that one no longer has the node."""
        if self.creator not in self.last_use:
            self.creator = owner


class Match(NamedTuple):
    """Where a text leaves the tree.

    Attributes
    ----------
    node : Node
        The last node of which at least one character is equal.
    matched : int
        Characters that are equal, from the beginning of the text on.
    """

    node: Node
    matched: int

    @property
    def owners(self) -> tuple[int, ...]:
        """Owners of the node, in the order in which they got it; none at the root."""
        return tuple(self.node.last_use)


class PrefixTree:
    """Texts by owner. An owner of a node also has all nodes above it.

    Work for a text grows with its pieces and with the nodes on its way, not with the texts before it.

    Parameters
    ----------
    alphabet : Alphabet or None
        Which characters are equal. None: those with the same stream and position.
    """

    def __init__(self, alphabet: Alphabet | None = None) -> None:
        self._alphabet = alphabet or Alphabet()
        self._root = Node((), 0, None, None)
        self._sizes: dict[int, int] = {}
        self._owned: dict[int, dict[Node, None]] = {}
        self._time = 0

    @property
    def sizes(self) -> Mapping[int, int]:
        """Characters of each owner; owners that never had any are left out."""
        return self._sizes

    def find(self, text: Text) -> Match:
        """Return how far the tree knows `text`. Changes nothing."""
        node, matched, place = self._root, 0, START
        while place.piece < len(text):
            child = node.children.get(self._symbol(text, place))
            if child is None:
                break
            equal, place = common_prefix(child.label, text, place, self._alphabet)
            node, matched = child, matched + equal
            if equal < child.length:
                break
        return Match(node, matched)

    def insert(self, text: Text, owner: int) -> None:
        """Give `text` to `owner`: every node on its way is used now; nodes are split where texts part."""
        self._time += 2
        self._sizes.setdefault(owner, 0)
        self._owned.setdefault(owner, {})
        node, place = self._root, START
        while place.piece < len(text):
            child = node.children.get(self._symbol(text, place))
            if child is None:
                node = self._added(node, rest_of(text, place), owner)
                place = Place(len(text), 0)
            else:
                equal, place = common_prefix(child.label, text, place, self._alphabet)
                node = child if equal == child.length else self._split(child, equal)
            self._use(node, owner)

    def touch(self, match: Match, owner: int) -> None:
        """Count a look-up as a use of the nodes from the root to `match` by one of its owners, before an insertion."""
        node: Node | None = match.node
        while node is not None and owner in node.last_use:
            node.last_use[owner] = self._time + 1
            node = node.parent

    def remove(self, owner: int) -> None:
        """Take everything from `owner`."""
        self.take(list(self._owned.pop(owner, ())), owner)
        self._sizes.pop(owner, None)

    def leaving(self, owner: int, most: int, age: Callable[[int], Any] | None = None) -> list[Node]:
        """Return the nodes that `owner` must give up to have at most `most` characters; changes nothing.

        The least recently used leaf goes first: a node that the owner has without any of its children. A node without
        children left is a leaf in turn.

        Parameters
        ----------
        owner, most : int
        age : callable or None
            Sorts uses: smaller goes first. Uses by insertion are even numbers that grow with time, and the look-up
            before one is one less. None: as they are.
        """
        size = self._sizes.get(owner, 0)
        if size <= most:
            return []
        below = dict.fromkeys(self._owned[owner], 0)
        for node in below:
            if node.parent in below:
                below[node.parent] += 1
        age = age or int
        ties = count()
        leaves = [(age(node.last_use[owner]), next(ties), node) for node, children in below.items() if not children]
        heapq.heapify(leaves)
        found: list[Node] = []
        while leaves and size > most:
            _, _, node = heapq.heappop(leaves)
            found.append(node)
            size -= node.length
            if node.parent in below:
                below[node.parent] -= 1
                if not below[node.parent]:
                    heapq.heappush(leaves, (age(node.parent.last_use[owner]), next(ties), node.parent))
        return found

    def take(self, nodes: Sequence[Node], owner: int) -> None:
        """Take nodes from `owner`; those without an owner are gone."""
        for node in nodes:
            self._sizes[owner] -= node.length
            self._owned.get(owner, {}).pop(node, None)
            del node.last_use[owner]
            if not node.last_use and node.parent is not None:
                node.parent.children.pop(self._symbol(node.label, START), None)

    def evict(self, most: int) -> None:
        """Leave at most `most` characters to each owner; see `leaving`."""
        for owner in list(self._sizes):
            self.take(self.leaving(owner, most), owner)

    def check_integrity(self) -> None:
        """Check what must always hold; for tests.

        Raises
        ------
        RuntimeError
            If an owner lacks a node above one that it has, if a node has no owner, or if a size is wrong.
        """
        sizes = dict.fromkeys(self._sizes, 0)
        for node in self._nodes():
            parent = node.parent or self._root
            above = dict.fromkeys(node.last_use) if parent is self._root else parent.last_use
            if not node.last_use or any(owner not in above for owner in node.last_use):
                raise RuntimeError("a node without owners, or with one that does not have its parent")
            if node.length != length_of(node.label):
                raise RuntimeError("the length of a node is not that of its label")
            for owner in node.last_use:
                sizes[owner] += node.length
        owned = {owner: [node for node in self._nodes() if owner in node.last_use] for owner in self._owned}
        if any(set(nodes) != set(self._owned[owner]) for owner, nodes in owned.items()):
            raise RuntimeError("the nodes of an owner are not those that have it")
        if sizes != self._sizes:
            raise RuntimeError(f"sizes are {self._sizes}, the nodes have {sizes}")

    def _symbol(self, text: Text, place: Place) -> Hashable:
        stream, start, _ = text[place.piece]
        return self._alphabet.symbol(stream, start + place.offset)

    def _added(self, parent: Node, label: Text, owner: int) -> Node:
        node = Node(label, length_of(label), parent, owner)
        parent.children[self._symbol(label, START)] = node
        return node

    def _split(self, lower: Node, at: int) -> Node:
        """Put a node with the first `at` characters of `lower` and all its owners above it."""
        head, tail = divided(lower.label, at)
        upper = Node(head, at, lower.parent, lower.creator)
        upper.last_use = dict(lower.last_use)
        for owner in upper.last_use:
            self._owned[owner][upper] = None
        if lower.parent is not None:
            lower.parent.children[self._symbol(head, START)] = upper
        lower.label, lower.length, lower.parent = tail, lower.length - at, upper
        upper.children[self._symbol(tail, START)] = lower
        return upper

    def _use(self, node: Node, owner: int) -> None:
        if owner not in node.last_use:
            self._sizes[owner] += node.length
            self._owned[owner][node] = None
        node.last_use[owner] = self._time

    def _nodes(self) -> Iterator[Node]:
        """Yield all nodes but the root."""
        left = list(self._root.children.values())
        while left:
            node = left.pop()
            left.extend(node.children.values())
            yield node
