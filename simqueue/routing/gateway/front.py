"""What the router sees of a request: its text, and the key of its session."""

from __future__ import annotations

from simqueue.request import Request
from simqueue.routing.texts import Alphabet, Text, scaled

SESSION_HEADER = "x-session-id"


class Front:
    """How requests look to the router.

    Parameters
    ----------
    chars_per_token : int
        Characters of the text, or of a key made of token numbers, per token; 0: the router gets no text.
    """

    def __init__(self, chars_per_token: int = 1) -> None:
        self.chars_per_token = chars_per_token
        self.alphabet = Alphabet()

    def text(self, request: Request) -> Text:
        """Return the text by which the request is routed. Without known tokens, it shares nothing with another."""
        if request.prompt is None:
            return scaled([(request.request_id, 0, request.prompt_tokens)], self.chars_per_token)
        return scaled(request.prompt, self.chars_per_token)

    def units(self, characters: int) -> int:
        """Return the units in which a match is measured: characters, or the whole tokens in them."""
        return characters

    def whole(self, characters: int) -> int:
        """Return how many of so many matched characters count: up to the end of the last whole unit."""
        return characters

    def key(self, request: Request) -> str | None:
        """Return the key by which a session is known; None: the request has none."""
        return request.session

    def hashed_key(self, request: Request) -> str:
        """Return the key whose hash decides."""
        if request.session is not None:
            return f"header:{SESSION_HEADER}:{request.session}"
        return f"request:{self.words(request)}"

    def words(self, request: Request) -> str:
        """Return the text as one that can be hashed: different for different texts."""
        return request.request_id if request.prompt is None else str(request.prompt)


class NoText(Front):
    """A pool that gets the key of a request, and not its text.

    Parameters
    ----------
    front : Front
        Has the keys.
    """

    def __init__(self, front: Front) -> None:
        super().__init__()
        self._front = front

    def text(self, request: Request) -> Text:
        """Return nothing."""
        return ()

    def key(self, request: Request) -> str | None:
        """Return the key of the session."""
        return self._front.key(request)

    def hashed_key(self, request: Request) -> str:
        """Return the key whose hash decides."""
        return self._front.hashed_key(request)

    def words(self, request: Request) -> str:
        """Return nothing."""
        return ""
