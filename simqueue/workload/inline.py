"""Requests listed one by one in the scenario: small exact cases, for tests and teaching."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from simqueue.request import Request
from simqueue.settings import Settings, invalid
from simqueue.workload.lengths.settings import TOKENS_UNIT
from simqueue.workload.limits import MOST_TOKENS


def _as_text(value: Any) -> Any:
    """Turn an integer into an id: YAML reads ``id: 7`` as an integer."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


LARGEST_STREAM = 2**31 - 1
"""Largest number of a token stream in a scenario; generated streams have larger numbers."""

_Piece = Annotated[tuple[int, int, int], Field(strict=False)]


def token_pieces(pieces: Any, tokens: int | None) -> tuple[tuple[int, int, int], ...]:
    """Return the pieces of a prompt as `Request.prompt` has them.

    Parameters
    ----------
    pieces : sequence of (stream, start, length)
    tokens : int or None
        What their lengths must add up to; None: any number.

    Raises
    ------
    ValueError
        If they are no such pieces.
    """
    if not isinstance(pieces, list | tuple) or not all(_is_piece(piece) for piece in pieces):
        raise ValueError("pieces are [stream, start, length], integers of at least 0, 0 and 1")
    total = sum(piece[2] for piece in pieces)
    if tokens is not None and total != tokens:
        raise ValueError(f"the pieces have {total} tokens, prompt_tokens is {tokens}")
    return tuple((piece[0], piece[1], piece[2]) for piece in pieces)


def _is_piece(piece: Any) -> bool:
    whole = isinstance(piece, list | tuple) and all(isinstance(n, int) and not isinstance(n, bool) for n in piece)
    return whole and len(piece) == 3 and piece[0] >= 0 and piece[1] >= 0 and piece[2] >= 1


class RequestSettings(Settings):
    """One request of the list ``requests``."""

    id: Annotated[str, StringConstraints(min_length=1), BeforeValidator(_as_text)] | None = Field(
        default=None, description="name, unique in the list; null: the position in the list, counted from 0"
    )
    arrival_s: float = Field(ge=0, description="arrival time", json_schema_extra={"unit": "s"})
    prompt_tokens: int | None = Field(
        default=None,
        ge=1,
        le=MOST_TOKENS,
        description="length of the prompt; null: the sum of the lengths in prompt",
        json_schema_extra=TOKENS_UNIT,
    )
    output_tokens: int = Field(ge=1, le=MOST_TOKENS, description="length of the output", json_schema_extra=TOKENS_UNIT)
    priority: int = Field(default=0, description="smaller is more urgent; used by `order: priority`")
    deadline_s: float | None = Field(
        default=None,
        ge=0,
        description="deadline of the answer, counted from the start of the run; used by `order: deadline`",
        json_schema_extra={"unit": "s"},
    )
    request_class: str | None = Field(default=None, alias="class", description="label for summaries")
    timeout_s: float | None = Field(
        default=None,
        gt=0,
        description="the client cancels the request this long after its arrival, waiting or running; null: that of "
        "the workload",
        json_schema_extra={"unit": "s"},
    )
    prompt: tuple[_Piece, ...] | None = Field(
        default=None,
        strict=False,
        min_length=1,
        description="tokens of the prompt, for prefix caches, as pieces [stream, start, length]. Equal streams and "
        "positions are equal tokens; null: tokens that no other request has",
    )
    output_stream: int | None = Field(
        default=None,
        ge=0,
        le=LARGEST_STREAM,
        description="the j-th output token is token j of this stream; null: tokens that no other request has",
    )
    max_output_tokens: int | None = Field(
        default=None,
        ge=1,
        le=MOST_TOKENS,
        description="limit of the output that the server knows, from which `engine: sglang` reserves memory; null: "
        "output_tokens",
        json_schema_extra=TOKENS_UNIT,
    )
    ignore_eos: bool | None = Field(
        default=None,
        description="whether the server knows that the output is as long as its limit, for `engine: sglang`; null: if "
        "max_output_tokens is not given",
    )
    routing_key: str | None = Field(
        default=None,
        description="what the request belongs to; used by `schedule_policy: routing-key` of `engine: sglang`",
    )

    @model_validator(mode="after")
    def _prompt_length(self) -> Self:
        if self.prompt is None and self.prompt_tokens is None:
            raise invalid("prompt_tokens is missing; give it, or prompt")
        if self.prompt is not None:
            try:
                token_pieces(self.prompt, self.prompt_tokens)
            except ValueError as error:
                raise invalid(str(error), "prompt") from None
        return self

    @model_validator(mode="after")
    def _limit_of_output(self) -> Self:
        if self.max_output_tokens is not None and self.max_output_tokens < self.output_tokens:
            text = f"must be at least output_tokens, which is {self.output_tokens}"
            raise invalid(text, "max_output_tokens", value=self.max_output_tokens)
        return self

    @property
    def length(self) -> int:
        """Length of the prompt in tokens."""
        if self.prompt_tokens is not None:
            return self.prompt_tokens
        return sum(piece[2] for piece in self.prompt or ())

    @model_validator(mode="after")
    def _deadline_after_arrival(self) -> Self:
        if self.deadline_s is not None and self.deadline_s < self.arrival_s:
            text = f"must be at least arrival_s, which is {self.arrival_s:g}: both count from the start of the run"
            raise invalid(text, "deadline_s", value=self.deadline_s)
        return self


def check_ids(items: Sequence[RequestSettings]) -> None:
    """Check that no two requests have the same id, given or by position."""
    first: dict[str, int] = {}
    for position, item in enumerate(items):
        name = _id(item, position)
        if name in first:
            text = f"id '{name}' is used twice, by items {first[name]} and {position} (counted from 0)"
            raise invalid(text, position, "id", value=name)
        first[name] = position


def listed_requests(items: Iterable[RequestSettings]) -> list[Request]:
    """Return the requests in order of arrival; ties keep the order of the list."""
    requests = [
        Request(
            _id(item, position),
            item.arrival_s,
            item.length,
            item.output_tokens,
            item.priority,
            item.deadline_s,
            item.request_class,
            item.prompt,
            item.output_stream,
            gives_up_s=None if item.timeout_s is None else item.arrival_s + item.timeout_s,
            max_output_tokens=item.max_output_tokens,
            ignore_eos=item.ignore_eos,
            routing_key=item.routing_key,
        )
        for position, item in enumerate(items)
    ]
    return sorted(requests, key=lambda request: request.arrival_s)


def _id(item: RequestSettings, position: int) -> str:
    return str(position) if item.id is None else item.id
