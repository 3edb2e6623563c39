"""Tokens that prompts begin with and that earlier requests had: what an unlimited prefix cache would find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from simqueue.request import Request

Piece = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Reused:
    """Leading tokens of a prompt that the same earlier request had last.

    Attributes
    ----------
    gap : int
        How many requests ago: 1 is the request before.
    tokens : int
    """

    gap: int
    tokens: int


class SeenPrefixes:
    """A trie of token pieces: which piece follows which, how far each has been seen, and when last.

    Attributes
    ----------
    reused_tokens : int
        Distinct tokens that were found at least once.
    """

    def __init__(self) -> None:
        self._longest: dict[Piece, int] = {}
        self._last: dict[Piece, int] = {}
        self._found: dict[Piece, int] = {}
        self._children: dict[tuple[int, Piece], int] = {}
        self.reused_tokens = 0

    def known(self, pieces: Iterable[Piece], number: int) -> list[Reused]:
        """Return which leading tokens have been seen before request `number`, in order."""
        node, found = 0, []
        for stream, start, length in pieces:
            key = (node, stream, start)
            tokens = min(length, self._longest.get(key, 0))
            if tokens:
                found.append(Reused(number - self._last[key], tokens))
                self.reused_tokens += max(0, tokens - self._found.get(key, 0))
                self._found[key] = max(tokens, self._found.get(key, 0))
            child = self._children.get((node, (stream, start, length)))
            if child is None:
                break
            node = child
        return found

    def add(self, pieces: Iterable[Piece], number: int) -> None:
        """Remember the tokens of request `number`."""
        node = 0
        for piece in pieces:
            stream, start, length = piece
            key = (node, stream, start)
            self._longest[key] = max(length, self._longest.get(key, 0))
            self._last[key] = number
            node = self._children.setdefault((node, piece), len(self._children) + 1)


def reused(requests: Iterable[Request], seen: SeenPrefixes | None = None) -> Iterator[list[Reused]]:
    """Yield, for each request, what its prompt begins with and an earlier request had, with its answer.

    Requests count in the given order, as if each were finished before the next. So this is an upper bound of what a
    cache finds.

    Parameters
    ----------
    requests : iterable of Request
    seen : SeenPrefixes, optional
        Where they are remembered; by default a new one.
    """
    known = SeenPrefixes() if seen is None else seen
    for number, request in enumerate(requests):
        if request.prompt is None:
            yield []
            continue
        yield known.known(request.prompt, number)
        answer = () if request.output_stream is None else ((request.output_stream, 0, request.output_tokens),)
        known.add((*request.prompt, *answer), number)


def prefix_reuse(requests: Iterable[Request]) -> float | None:
    """Return the share of prompt tokens in prefixes that an earlier prompt, with its answer, began with.

    None if no request states its tokens: then requests share none.
    """
    listed = list(requests)
    if all(request.prompt is None for request in listed):
        return None
    total = sum(request.prompt_tokens for request in listed)
    return sum(part.tokens for parts in reused(listed) for part in parts) / total
