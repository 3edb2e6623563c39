"""The scenario keys of a workload: where requests come from, and how their clients behave."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from simqueue.settings import Settings, invalid
from simqueue.workload.arrivals.settings import ArrivalSettings
from simqueue.workload.clients import ClassSettings, RetrySettings, SessionSettings, SystemPromptSettings, UserSettings
from simqueue.workload.inline import RequestSettings, check_ids
from simqueue.workload.lengths.settings import LengthSettings
from simqueue.workload.slo import SloSettings
from simqueue.workload.traces.settings import TraceSettings

_SOURCES = ("arrivals", "trace", "requests", "users", "sessions")
_LENGTHS = ("prompt_tokens", "output_tokens", "prompt_output_correlation", "system_prompt")
_ALLOWED_WITH = {
    "arrivals": (*_LENGTHS, "arrivals_for_s", "num_requests", "classes"),
    "trace": ("num_requests", "classes"),
    "requests": (),
    "users": (*_LENGTHS, "arrivals_for_s", "num_requests", "classes"),
    "sessions": (*_LENGTHS, "arrivals_for_s", "classes"),
}
_MORE_KEYS = _ALLOWED_WITH["arrivals"]
_CLASS_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"


class WorkloadSettings(Settings):
    """Where requests come from: exactly one of arrivals (with lengths), a trace, a list, users, sessions."""

    arrivals: ArrivalSettings | None = Field(default=None, description="When requests arrive, whatever the answers.")
    users: UserSettings | None = Field(default=None, description="A closed loop of users instead.")
    sessions: SessionSettings | None = Field(default=None, description="Conversations with growing context instead.")
    prompt_tokens: LengthSettings | None = Field(
        default=None,
        description="How long prompts are; in sessions, how many tokens a turn adds.",
        json_schema_extra={"unit": "tokens"},
    )
    output_tokens: LengthSettings | None = Field(
        default=None, description="How long outputs are.", json_schema_extra={"unit": "tokens"}
    )
    prompt_output_correlation: float = Field(
        default=0.0,
        ge=-1,
        le=1,
        description="Correlation of the normals behind both lengths (Gaussian copula): each law stays as it is.",
    )
    system_prompt: SystemPromptSettings | None = Field(
        default=None, description="Tokens before every prompt, shared by many; prompt_tokens come on top."
    )
    arrivals_for_s: float | None = Field(
        default=None,
        gt=0,
        description="Requests (or sessions) arrive strictly before this time. With a number: whichever comes first.",
        json_schema_extra={"unit": "s"},
    )
    num_requests: int | None = Field(
        default=None,
        ge=1,
        description="How many requests arrive. More than a trace has rows is an error.",
        json_schema_extra={"unit": "requests"},
    )
    trace: TraceSettings | None = Field(default=None, description="Requests from a recorded trace.")
    requests: tuple[RequestSettings, ...] | None = Field(
        default=None, strict=False, description="Requests listed one by one."
    )
    priority: int = Field(
        default=0,
        description="Smaller is more urgent; used by order: priority. For requests that have none of their own.",
    )
    timeout_s: float | None = Field(
        default=None,
        gt=0,
        description="A client gives up that long after it wanted an answer, waiting or running; a retry begins anew. "
        "null: never.",
        json_schema_extra={"unit": "s"},
    )
    retry: RetrySettings | None = Field(default=None, description="What clients do that gave up; null: they are gone.")
    max_concurrency: int | None = Field(
        default=None,
        ge=1,
        description="At most so many of these requests are at the server; others wait at the client, first come first "
        "served, and that wait is part of their latency. null: no limit.",
        json_schema_extra={"unit": "requests"},
    )
    classes: Annotated[dict[str, ClassSettings], Field(min_length=1)] | None = Field(
        default=None, description="name -> class: each request (in users and sessions: each person) is of one of them."
    )
    slo: SloSettings | None = Field(default=None, description="For goodput of this workload; null: the scenario's.")

    @field_validator("requests")
    @classmethod
    def _unique_ids(cls, value: tuple[RequestSettings, ...] | None) -> tuple[RequestSettings, ...] | None:
        check_ids(value or ())
        return value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [key for key in _SOURCES if getattr(self, key) is not None]
        if len(given) != 1:
            found = " and ".join(given) if given else "none"
            raise invalid(f"a workload needs exactly one of {', '.join(_SOURCES)}; found: {found}")
        source = given[0]
        for key in _MORE_KEYS:
            if getattr(self, key) != type(self).model_fields[key].default and key not in _ALLOWED_WITH[source]:
                raise invalid(f"{key} does not go with {source}{self._instead(source, key)}")
        return self

    @staticmethod
    def _instead(source: str, key: str) -> str:
        if source == "trace" and key == "arrivals_for_s":
            return "; cut a trace with trace.end_s or trace.limit"
        if source == "sessions" and key == "num_requests":
            return "; give sessions.num_sessions"
        return f", which {'have' if source == 'requests' else 'has'} their own" if key.endswith("tokens") else ""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        source = next((key for key in ("arrivals", "users", "sessions") if getattr(self, key) is not None), None)
        if source is None:
            return self
        missing = [key for key in ("prompt_tokens", "output_tokens") if getattr(self, key) is None]
        if missing:
            raise invalid(
                f"{source} need {' and '.join(missing)}: a length law, such as {{distribution: constant, value: 100}}"
            )
        complaint = self._endless()
        if complaint is not None:
            raise invalid(complaint)
        return self

    def _endless(self) -> str | None:
        if self.arrivals is not None:
            return self.arrivals.end_problem(self.num_requests, self.arrivals_for_s)
        if self.sessions is not None:
            return self.sessions.arrivals.end_problem(self.sessions.num_sessions, self.arrivals_for_s)
        if self.num_requests is None and self.arrivals_for_s is None:
            return "users need an end: num_requests or arrivals_for_s, or both"
        return None

    @model_validator(mode="after")
    def _rules_fit(self) -> Self:
        if self.retry is not None and not self._may_give_up():
            raise invalid("retry needs timeout_s: without it nobody ever gives up")
        return self

    def _may_give_up(self) -> bool:
        listed = any(item.timeout_s is not None for item in self.requests or ())
        classed = any(found.timeout_s is not None for found in (self.classes or {}).values())
        filed = self.trace is not None and self.trace.reader_name() in ("csv", "jsonl")  # may have a column gives_up_s
        return self.timeout_s is not None or listed or classed or filed
