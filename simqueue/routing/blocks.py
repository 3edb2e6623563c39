"""The blocks of a prompt as keys: two prompts share the key of a block if all tokens up to its end are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from simqueue.request import Request

Key = int
"""All tokens up to a place: a hash of 128 bits of the pieces before the last one and of where that one starts, then its
length. No two different beginnings ever meet."""
_LENGTH_BITS = 40


class Blocks:
    """Makes the keys of prompts. It remembers those of the last one, because routers ask for them twice."""

    def __init__(self) -> None:
        self._last: tuple[Request, int, int | None, bool] | None = None
        self._keys: tuple[Key, ...] = ()

    def of(
        self, request: Request, block_tokens: int, most: int | None = None, *, with_rest: bool = False
    ) -> tuple[Key, ...]:
        """Return the keys of the blocks of a prompt, from its beginning.

        Parameters
        ----------
        request : Request
            Without known tokens, its blocks are those of no other request.
        block_tokens : int
        most : int or None
            Number of blocks that are looked at.
        with_rest : bool
            Whether the tokens after the last whole block are a block too.
        """
        asked = (request, block_tokens, most, with_rest)
        last = self._last
        if last is None or last[0] is not request or last[1:] != asked[1:]:
            self._last = asked
            self._keys = tuple(_keys(request, block_tokens, most, with_rest=with_rest))
        return self._keys


def _keys(request: Request, block_tokens: int, most: int | None, *, with_rest: bool) -> Iterator[Key]:
    total = request.prompt_tokens
    end = total if most is None else min(total, most * block_tokens)
    edge, past, before = block_tokens, 0, 0
    for stream, start, length in _runs(request):
        run = _hashed(past, stream, start) << _LENGTH_BITS
        last = min(before + length, end)
        if edge <= last:
            yield from range(run + edge - before, run + last - before + 1, block_tokens)
            edge += (last - edge) // block_tokens * block_tokens + block_tokens
        if with_rest and before < end == last and end % block_tokens:
            yield run + end - before
        before += length
        past = run + length


def _runs(request: Request) -> list[tuple[Any, int, int]]:
    """Return the pieces of the prompt with adjacent ones joined, so that it does not matter how it was cut."""
    if request.prompt is None:
        return [(request.request_id, 0, request.prompt_tokens)]
    runs: list[tuple[Any, int, int]] = []
    for stream, start, length in request.prompt:
        if runs and runs[-1][0] == stream and sum(runs[-1][1:]) == start:
            runs[-1] = (stream, runs[-1][1], runs[-1][2] + length)
        elif length:
            runs.append((stream, start, length))
    return runs


def _hashed(past: int, stream: object, start: int) -> int:
    """Return a hash of 128 bits, the same on every machine."""
    text = f"{past} {stream!r} {start}"
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest(), "big")


def common(keys: tuple[Key, ...], known: dict[Key, Any]) -> int:
    """Return how many keys at the beginning are known, in a mapping that knows with a block all those before it."""
    low, high = 0, len(keys)
    if not known or (keys and keys[0] not in known):  # most prompts at most replicas
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if keys[middle - 1] in known:
            low = middle
        else:
            high = middle - 1
    return low
