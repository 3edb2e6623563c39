"""What sglang-router and vllm-router were given in a recording: keys, texts and session keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, get_args

from pydantic import ValidationError

from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.request import Request
from simqueue.routing import Router
from simqueue.routing.gateway.front import Front
from simqueue.routing.gateway.hashing import short_hash
from simqueue.routing.gateway.pairs import PairRouter
from simqueue.routing.gateway.products import sglang_pair, sglang_policy, vllm_pair, vllm_policy
from simqueue.routing.gateway.settings import SglangSettings, VllmRouterSettings
from simqueue.routing.texts import DIGITS, Alphabet, HexDigits, Piece, Text, scaled
from simqueue.settings import problems_of

TOKENS_PER_STREAM = 4096
FIRST_CODE_POINT = 0x10000
SESSION_HEADERS = ("x-session-id", "x-user-id", "x-tenant-id", "x-request-id", "x-correlation-id", "x-trace-id")
"""Headers that name a session for vllm-router; the first that is not empty counts."""
KEY_HEADER = "x-smg-routing-key"
"""Header that has the routing key for sglang-router."""
_LONGEST_KEY_BYTES = 100
_BEGINNING = 6
"""Characters with which every key of token numbers begins."""


def token_id(stream: int, position: int) -> int:
    """Return the number of a token of a recording."""
    return stream * TOKENS_PER_STREAM + position


class SentFront(Front):
    """Requests as they were sent: one character per token.

    Parameters
    ----------
    recorded : mapping
        The content of a recording.
    """

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        super().__init__(1)
        self._recorded = recorded
        self._by_tokens = (recorded["router"], recorded["version"]) == ("vllm-router", "0.1.17")
        self._has_tokens = not str(recorded["case"]).startswith("ca_notok")
        self.alphabet = HexDigits(token_id) if self._by_tokens else Alphabet()
        self._steps: dict[str, Mapping[str, Any]] = {}

    def see(self, request: Request, step: Mapping[str, Any]) -> None:
        """Take the step that sends a request."""
        self._steps[request.request_id] = step

    def forget(self, request: Request) -> None:
        """Forget a request that has ended."""
        self._steps.pop(request.request_id, None)

    def text(self, request: Request) -> Text:
        """Return the text of the step, or the key made of its tokens."""
        if not self._by_tokens:
            return scaled(self._characters(self._steps[request.request_id]), 1)
        if not self._has_tokens:
            return ()
        return (("beginning", 0, _BEGINNING), *scaled(pieces_of(prompt_of(self._steps[request.request_id])), DIGITS))

    def units(self, characters: int) -> int:
        """Return characters, or whole tokens."""
        return max(0, characters - _BEGINNING) // DIGITS if self._by_tokens else characters

    def whole(self, characters: int) -> int:
        """Return the characters of whole tokens."""
        return _BEGINNING + self.units(characters) * DIGITS if self._by_tokens and characters else characters

    def key(self, request: Request) -> str | None:
        """Return the value of the header that names a session or a key."""
        found = self._header(request)
        return None if found is None else found[1]

    def hashed_key(self, request: Request) -> str:
        """Return the header that names a session, or else the text."""
        found = self._header(request)
        if found is not None:
            return f"header:{found[0]}:{found[1]}"
        text = self.words(request)
        if len(text.encode()) <= _LONGEST_KEY_BYTES:
            return f"request:{text}"
        return f"request_hash:{short_hash(text)}"

    def _header(self, request: Request) -> tuple[str, str] | None:
        headers = self._steps[request.request_id].get("headers", {})
        names = (KEY_HEADER,) if self._recorded["router"] == "sglang-router" else SESSION_HEADERS
        return next(((name, headers[name]) for name in names if headers.get(name)), None)

    def words(self, request: Request) -> str:
        """Return the prompt, or of a chat what stands for it."""
        step = self._steps[request.request_id]
        if "messages" in step:
            return str(step.get("body", {}).get("session_params", {}).get("session_id", ""))
        pieces = step["prompt"]
        numbers = [token_id(stream, start + i) for stream, start, length in pieces for i in range(length)]
        return "".join(chr(FIRST_CODE_POINT + number) for number in numbers)

    def _characters(self, step: Mapping[str, Any]) -> list[Piece]:
        """Return the text that is sent; vllm-router does not see the text of a chat."""
        if "messages" not in step:
            return pieces_of(step["prompt"])
        if self._recorded["router"] == "vllm-router":
            return []
        joined: list[Piece] = []
        for number, message in enumerate(step["messages"]):
            joined += [("between", 0, 1)] if number else []
            joined += pieces_of(message["content"])
        return joined


def pieces_of(prompt: Sequence[Sequence[int]]) -> list[Piece]:
    """Return pieces as texts have them."""
    return [(stream, start, length) for stream, start, length in prompt]


def prompt_of(step: Mapping[str, Any]) -> list[Sequence[int]]:
    """Return the tokens that an engine sees."""
    if "messages" in step:
        return [piece for message in step["messages"] for piece in message["content"]]
    return list(step["prompt"])


def policy_of(recorded: Mapping[str, Any], front: Front) -> Router:
    """Return the policy of a recording."""
    keys = _keys(recorded, recorded["policy"])
    if isinstance(keys, SglangSettings):
        return sglang_policy(keys, Random(0), front)
    return vllm_policy(keys, Random(0), front)


def pair_of(recorded: Mapping[str, Any], front: Front) -> PairRouter:
    """Return the policies of a recording with pools."""
    prefill, decode = (_keys(recorded, recorded.get(f"{pool}_policy", recorded["policy"])) for pool in POOLS)
    if isinstance(prefill, SglangSettings) and isinstance(decode, SglangSettings):
        return sglang_pair(prefill, decode, Random(0), front)
    if isinstance(prefill, VllmRouterSettings) and isinstance(decode, VllmRouterSettings):
        return vllm_pair(prefill, decode, Random(0), front)
    raise InputError(f"router {recorded['router']!r} has no pools")


POOLS = ("prefill", "decode")


def _keys(recorded: Mapping[str, Any], policy: str) -> SglangSettings | VllmRouterSettings:
    """Return the keys of a recording; evictions are steps of it, so none may happen by itself."""
    kind = SglangSettings if recorded["router"] == "sglang-router" else VllmRouterSettings
    named = {"version": recorded["version"], "policy": policy}
    for key, name in named.items():
        known = get_args(kind.model_fields[key].annotation)
        if name not in known:
            raise InputError(unknown(key, name, known))
    given = {**recorded["config"], "eviction_interval_secs": 0, "token_loads": "reported_tokens" in recorded}
    try:
        return kind.model_validate({**named, **given})
    except ValidationError as error:
        raise InputError("; ".join(str(problem) for problem in problems_of(error))) from None
