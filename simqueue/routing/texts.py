"""Texts as routers compare them: pieces of streams, in characters.

A text is a tuple of pieces ``(stream, start, length)``, as `Request.prompt` is, but counted in characters. Characters
with the same stream and position are equal. Others differ, unless the `Alphabet` says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

Stream = int | str
"""Numbers are streams of tokens; names are what no token has."""
Piece = tuple[Stream, int, int]
Text = tuple[Piece, ...]

DIGITS = 8
"""Hexadecimal digits of a token, where a key is made of token numbers."""


class Alphabet:
    """Which characters are equal: here only those with the same stream and position."""

    def symbol(self, stream: Stream, position: int) -> Hashable:
        """Return what a character is: equal for equal characters."""
        return stream, position

    def common(self, one: tuple[Stream, int], other: tuple[Stream, int], most: int) -> int:
        """Return how many characters are equal from two different places on, at most `most`."""
        return 0


class HexDigits(Alphabet):
    """Characters are the hexadecimal digits of token numbers, so different tokens can begin alike.

    Parameters
    ----------
    token : callable
        The number of the token, below 2**32, of a stream and a position in tokens.
    """

    def __init__(self, token: Callable[[int, int], int]) -> None:
        self._token = token

    def symbol(self, stream: Stream, position: int) -> Hashable:
        """Return a digit of a token."""
        if isinstance(stream, str):
            return stream, position
        return f"{self._token(stream, position // DIGITS):08x}"[position % DIGITS]

    def common(self, one: tuple[Stream, int], other: tuple[Stream, int], most: int) -> int:
        """Compare digit by digit."""
        equal = 0
        while equal < most and self.symbol(one[0], one[1] + equal) == self.symbol(other[0], other[1] + equal):
            equal += 1
        return equal


class Place(NamedTuple):
    """A place in a text: the piece, and the characters of it that are before the place."""

    piece: int
    offset: int


START = Place(0, 0)


def length_of(text: Text) -> int:
    """Return the number of characters."""
    return sum(length for _, _, length in text)


def scaled(pieces: Iterable[Piece], characters: int) -> Text:
    """Return a text with this many characters for each one of `pieces`, without empty pieces."""
    return tuple((stream, start * characters, length * characters) for stream, start, length in pieces if length)


def rest_of(text: Text, place: Place) -> Text:
    """Return the text from a place on."""
    if place.piece == len(text):
        return ()
    stream, start, length = text[place.piece]
    return ((stream, start + place.offset, length - place.offset), *text[place.piece + 1 :])


def divided(text: Text, at: int) -> tuple[Text, Text]:
    """Return the first `at` characters, and the others; neither may be empty."""
    for number, (stream, start, length) in enumerate(text):
        if at < length:
            upper = text[:number] + (((stream, start, at),) if at else ())
            return upper, ((stream, start + at, length - at), *text[number + 1 :])
        at -= length
    return text, ()


def common_prefix(label: Text, text: Text, place: Place, alphabet: Alphabet) -> tuple[int, Place]:
    """Return with how many equal characters `label` and `text` from `place` on begin, and the place after them."""
    equal, offset, (piece, at) = 0, 0, place
    number = 0
    while number < len(label) and piece < len(text):
        stream, start, length = label[number]
        other, other_start, other_length = text[piece]
        most = min(length - offset, other_length - at)
        one, two = (stream, start + offset), (other, other_start + at)
        same = most if one == two else alphabet.common(one, two, most)
        equal, offset, at = equal + same, offset + same, at + same
        if offset == length:
            number, offset = number + 1, 0
        if at == other_length:
            piece, at = piece + 1, 0
        if same < most:
            break
    return equal, Place(piece, at)
