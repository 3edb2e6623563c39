"""Requests written down one by one in the scenario: small exact cases, for tests and teaching."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from simqueue.request import Request
from simqueue.settings import Settings
from simqueue.workload.lengths.base import TOKENS_UNIT
from simqueue.workload.limits import MOST_TOKENS
from simqueue.workload.refusal import refusal


def _as_text(value: Any) -> Any:
    """Let a whole number pass as an id: YAML reads ``id: 7`` as one."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class RequestSettings(Settings):
    """One request of the list ``requests``."""

    id: Annotated[str, StringConstraints(min_length=1), BeforeValidator(_as_text)] | None = Field(
        default=None, description="Name, unique in the list; its position, counted from 0, if not given."
    )
    arrival_s: float = Field(ge=0, description="When it arrives.", json_schema_extra={"unit": "s"})
    prompt_tokens: int = Field(ge=1, le=MOST_TOKENS, description="Tokens to read.", json_schema_extra=TOKENS_UNIT)
    output_tokens: int = Field(ge=1, le=MOST_TOKENS, description="Tokens to make.", json_schema_extra=TOKENS_UNIT)
    priority: int = Field(default=0, description="Smaller is more urgent; used by order: priority.")
    deadline_s: float | None = Field(
        default=None,
        ge=0,
        description="Absolute time by which the answer is wanted; used by order: deadline.",
        json_schema_extra={"unit": "s"},
    )
    request_class: str | None = Field(default=None, alias="class", description="A label for summaries.")

    @model_validator(mode="after")
    def _deadline_after_arrival(self) -> Self:
        if self.deadline_s is not None and self.deadline_s < self.arrival_s:
            raise refusal(
                f"deadline_s {self.deadline_s:g} is before arrival_s {self.arrival_s:g}: "
                "deadlines are absolute times, counted from the start of the run"
            )
        return self


def check_ids(items: Sequence[RequestSettings]) -> None:
    """Refuse a list in which two requests have the same id, given or by position."""
    first: dict[str, int] = {}
    for position, item in enumerate(items):
        name = _id(item, position)
        if name in first:
            raise refusal(f"id '{name}' is used twice, by items {first[name]} and {position} (counted from 0)")
        first[name] = position


def listed_requests(items: Iterable[RequestSettings]) -> list[Request]:
    """Return the requests in order of arrival, ties by position in the list."""
    requests = [
        Request(
            _id(item, position),
            item.arrival_s,
            item.prompt_tokens,
            item.output_tokens,
            item.priority,
            item.deadline_s,
            item.request_class,
        )
        for position, item in enumerate(items)
    ]
    return sorted(requests, key=lambda request: request.arrival_s)


def _id(item: RequestSettings, position: int) -> str:
    return str(position) if item.id is None else item.id
