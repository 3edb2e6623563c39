"""Which tokens are the same, without token arrays.

A sequence is a path in a trie. A node is a run: consecutive tokens of one stream after a given past. Adjacent pieces of
one stream are one run, so a path does not depend on how a prompt was cut. Two sequences share the block that ends at a
position exactly if their paths share the node there. So (node, block number) identifies all tokens up to the end of a
block, and a million tokens cost as much as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simqueue.request import Job, Request

Run = tuple[Any, int, int]
"""(stream, start in the stream, length)."""
ENDLESS = 1 << 62


class Node:
    """A run after a given past.

    Attributes
    ----------
    parent, key : Node and its name for this child
    children : dict of (position, stream, start) to Node
        What can follow, from which position on.
    extents : list
        Cached blocks of this run; kept by the cache.
    users : int
        Requests in the system whose path contains this node.
    """

    __slots__ = ("children", "extents", "key", "parent", "users")

    def __init__(self, parent: Node | None, key: tuple[int, Any, int]) -> None:
        self.parent = parent
        self.key = key
        self.children: dict[tuple[int, Any, int], Node] = {}
        self.extents: list[Any] = []
        self.users = 0

    def past(self) -> tuple[tuple[int, Any, int], ...]:
        """Return the keys from the root to here: what all its tokens are."""
        keys = []
        node = self
        while node.parent is not None:
            keys.append(node.key)
            node = node.parent
        return tuple(keys)


class Path:
    """The runs of one request, prompt and output.

    Attributes
    ----------
    nodes : list of Node
    ends : list of int
        Position at which each run ends; the last one has no end.
    """

    __slots__ = ("ends", "nodes")

    def __init__(self, nodes: list[Node], ends: list[int]) -> None:
        self.nodes = nodes
        self.ends = ends

    def blocks(self, first: int, end: int, block_size: int) -> Iterator[tuple[Node, int, int]]:
        """Yield (node, first, end) pieces of the blocks from `first` up to `end`, each the node of its last token."""
        for node, run_end in zip(self.nodes, self.ends, strict=True):
            here = min(end, run_end // block_size)
            if here > first:
                yield node, first, here
                first = here
            if first >= end:
                return


class Trie:
    """All runs that a request uses or that are cached."""

    def __init__(self) -> None:
        self.root = Node(None, (0, None, 0))

    def path(self, job: Job) -> Path:
        """Return the path of a request; missing nodes are made."""
        nodes, ends = [], []
        node, position = self.root, 0
        for stream, start, length in pieces_of(job):
            key = (position, stream, start)
            child = node.children.get(key)
            if child is None:
                child = node.children[key] = Node(node, key)
            node, position = child, position + length
            node.users += 1
            nodes.append(node)
            ends.append(position)
        ends[-1] = ENDLESS
        return Path(nodes, ends)

    def known(self, request: Request) -> Path:
        """Return the path of a prompt as far as there are nodes; none is made."""
        nodes, ends = [], []
        node, position = self.root, 0
        for stream, start, length in maximal(list(request.prompt or ())):
            child = node.children.get((position, stream, start))
            if child is None:
                break
            node, position = child, position + length
            nodes.append(node)
            ends.append(position)
        return Path(nodes, ends)

    def leave(self, path: Path) -> None:
        """Remove a request from the users of its path."""
        for node in reversed(path.nodes):
            node.users -= 1
            self.prune(node)

    def prune(self, node: Node) -> None:
        """Remove a node that has no users, cached blocks or children, and its parents if the same holds for them."""
        while node.parent is not None and not (node.users or node.extents or node.children):
            del node.parent.children[node.key]
            node = node.parent


def pieces_of(job: Job) -> list[Run]:
    """Return the maximal runs of a request's tokens; its own tokens are a stream named after the request."""
    request = job.request
    own = ("own", job.index)
    pieces: list[Run] = list(request.prompt) if request.prompt else [(own, 0, request.prompt_tokens)]
    if request.output_stream is not None:
        pieces.append((request.output_stream, request.output_start, request.output_tokens))
    else:
        pieces.append((own, request.prompt_tokens, request.output_tokens))
    return maximal(pieces)


def maximal(pieces: list[Run]) -> list[Run]:
    """Return pieces with those joined that follow each other in a stream."""
    runs: list[Run] = []
    for stream, start, length in pieces:
        if not length:
            continue
        if runs and runs[-1][0] == stream and runs[-1][1] + runs[-1][2] == start:
            runs[-1] = (stream, runs[-1][1], runs[-1][2] + length)
        else:
            runs.append((stream, start, length))
    return runs
