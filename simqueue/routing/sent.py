"""A router's own record of the prompts that it sent to each replica: a guess of their prefix caches."""

from __future__ import annotations

from simqueue.request import Request
from simqueue.routing.base import View
from simqueue.routing.prefixtree import Node, PrefixTree
from simqueue.routing.texts import Text, scaled

_LEFT = 0.9
"""Share of the limit that is left when a record is cut, so that it is not cut for every prompt."""


class Sent:
    """Prompts by replica, as a radix tree.

    Parameters
    ----------
    most : int or None
        Tokens that are kept of each replica; None: as many as its KV pool holds.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._tree = PrefixTree()

    def tokens(self, request: Request) -> dict[int, int]:
        """Return how many tokens of a prompt, from its beginning, were sent to each replica; others are left out."""
        match = self._tree.find(_text(request))
        depth, found = 0, {}
        for node in _way(match.node):
            depth = min(depth + node.length, match.matched)
            found.update(dict.fromkeys(node.last_use, depth))
        return found

    def add(self, request: Request, replica: View) -> None:
        """Learn that a prompt is sent to a replica."""
        self._tree.insert(_text(request), replica.number)
        most = self._most or replica.kv_tokens
        if self._tree.sizes[replica.number] > most:
            self._tree.take(self._tree.leaving(replica.number, int(_LEFT * most)), replica.number)

    def forget(self, number: int) -> None:
        """Forget all that was sent to a replica."""
        self._tree.remove(number)


def _text(request: Request) -> Text:
    """Return the prompt, one character a token; without known tokens it shares nothing."""
    if request.prompt is None:
        return ((request.request_id, 0, request.prompt_tokens),)
    return scaled(request.prompt, 1)


def _way(node: Node) -> list[Node]:
    """Return the nodes from below the root to this one."""
    way: list[Node] = []
    while node.parent is not None:
        way.append(node)
        node = node.parent
    return way[::-1]
