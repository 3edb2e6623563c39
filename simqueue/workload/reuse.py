"""The share of prompt tokens that an unlimited prefix cache would find: an upper bound for any real cache."""

from __future__ import annotations

from collections.abc import Iterable

from simqueue.request import Request

Piece = tuple[int, int, int]


class SeenPrefixes:
    """A trie of token pieces: which piece follows which, and how far each has been seen."""

    def __init__(self) -> None:
        self._longest: dict[tuple[int, int, int], int] = {}
        self._children: dict[tuple[int, Piece], int] = {}

    def known_tokens(self, pieces: Iterable[Piece]) -> int:
        """Return the number of leading tokens that have been seen before."""
        node, known = 0, 0
        for stream, start, length in pieces:
            seen = self._longest.get((node, stream, start), 0)
            known += min(length, seen)
            child = self._children.get((node, (stream, start, length)))
            if child is None:
                break
            node = child
        return known

    def add(self, pieces: Iterable[Piece]) -> None:
        """Remember a sequence."""
        node = 0
        for piece in pieces:
            stream, start, length = piece
            key = (node, stream, start)
            self._longest[key] = max(length, self._longest.get(key, 0))
            node = self._children.setdefault((node, piece), len(self._children) + 1)


def prefix_reuse(requests: Iterable[Request]) -> float | None:
    """Return the share of prompt tokens in prefixes that an earlier prompt, with its answer, began with.

    None if no request states its tokens: then requests share none.

    Requests count in the given order, as if each were finished before the next. So this is an upper bound of what a
    cache finds.
    """
    seen = SeenPrefixes()
    found = total = 0
    known = False
    for request in requests:
        total += request.prompt_tokens
        if request.prompt is None:
            continue
        known = True
        found += seen.known_tokens(request.prompt)
        answer = () if request.output_stream is None else ((request.output_stream, 0, request.output_tokens),)
        seen.add((*request.prompt, *answer))
    return found / total if known else None
