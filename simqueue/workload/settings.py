"""The scenario keys of a workload: where requests come from, and how their clients behave."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from simqueue.datafiles.limits import MOST_KEYS
from simqueue.settings import Settings, invalid
from simqueue.workload.arrivals.settings import ArrivalSettings
from simqueue.workload.clients import (
    ClassSettings,
    RetrySettings,
    SessionSettings,
    SystemPromptSettings,
    UserSettings,
)
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


class WorkloadSettings(Settings):
    """Where requests come from: exactly one of arrivals (with lengths), a trace, a list, users, sessions."""

    arrivals: ArrivalSettings | None = Field(
        default=None, description="arrival process of requests that do not depend on answers (open loop)"
    )
    users: UserSettings | None = Field(default=None, description="a closed loop of users")
    sessions: SessionSettings | None = Field(default=None, description="conversations with a growing context")
    prompt_tokens: LengthSettings | None = Field(
        default=None,
        description="distribution of prompt lengths; in sessions, of the new tokens per turn",
        json_schema_extra={"unit": "tokens"},
    )
    output_tokens: LengthSettings | None = Field(
        default=None, description="distribution of output lengths", json_schema_extra={"unit": "tokens"}
    )
    prompt_output_correlation: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description="correlation of the normal scores of both lengths (Gaussian copula); the two distributions do not "
        "change. null: 0",
    )
    system_prompt: SystemPromptSettings | None = Field(
        default=None, description="tokens at the start of every prompt, shared by many requests; added to prompt_tokens"
    )
    arrivals_for_s: float | None = Field(
        default=None,
        gt=0,
        description="requests (or sessions) arrive strictly before this time; with a number: whichever comes first",
        json_schema_extra={"unit": "s"},
    )
    num_requests: int | None = Field(
        default=None,
        ge=1,
        description="number of requests; an error if a trace has fewer rows",
        json_schema_extra={"unit": "requests"},
    )
    trace: TraceSettings | None = Field(default=None, description="requests from a recorded trace")
    requests: tuple[RequestSettings, ...] | None = Field(
        default=None, strict=False, description="requests listed one by one"
    )
    priority: int = Field(
        default=0,
        description="smaller is more urgent; used by `order: priority`; for requests without a priority of their own",
    )
    timeout_s: float | None = Field(
        default=None,
        gt=0,
        description="clients cancel a request that is not finished after this time; the time starts again for each "
        "retry. null: never",
        json_schema_extra={"unit": "s"},
    )
    retry: RetrySettings | None = Field(
        default=None, description="how clients retry after a timeout; null: they do not"
    )
    max_concurrency: int | None = Field(
        default=None,
        ge=1,
        description="concurrency limit: at most this many of these requests are at the server. Other requests wait at "
        "the client, first come first served. TTFT, E2EL and SLOs count from sending a request; the wait before it has "
        "rows of its own. null: no limit",
        json_schema_extra={"unit": "requests"},
    )
    classes: Annotated[dict[str, ClassSettings], Field(min_length=1, max_length=MOST_KEYS)] | None = Field(
        default=None,
        description="name -> class: each request (with users and sessions: each user or session) belongs to one class",
    )
    slo: SloSettings | None = Field(
        default=None, description="limits for goodput of this workload; null: those of the scenario"
    )

    @property
    def independent_lengths(self) -> tuple[LengthSettings, LengthSettings] | None:
        """Distributions of prompt and output lengths, or None if lengths are not drawn independently from them."""
        if self.prompt_tokens is None or self.output_tokens is None:
            return None
        related = self.system_prompt is not None or bool(self.prompt_output_correlation)
        return None if related else (self.prompt_tokens, self.output_tokens)

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
            if getattr(self, key) is not None and key not in _ALLOWED_WITH[source]:
                raise invalid(f"cannot be combined with {source}{self._instead(source, key)}", key)
        return self

    @staticmethod
    def _instead(source: str, key: str) -> str:
        if source == "trace" and key == "arrivals_for_s":
            return "; use trace.end_s or trace.limit"
        if source == "sessions" and key == "num_requests":
            return "; use sessions.num_sessions"
        return ", which has lengths of its own" if key.endswith("tokens") else ""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        source = next((key for key in ("arrivals", "users", "sessions") if getattr(self, key) is not None), None)
        if source is None:
            return self
        missing = [key for key in ("prompt_tokens", "output_tokens") if getattr(self, key) is None]
        if missing:
            raise invalid(
                f"{source} need {' and '.join(missing)}: a length distribution, such as "
                "{distribution: constant, value: 100}"
            )
        problem = self._end_problem()
        if problem is not None:
            raise invalid(problem)
        return self

    def _end_problem(self) -> str | None:
        if self.arrivals is not None:
            return self.arrivals.end_problem(self.num_requests, self.arrivals_for_s)
        if self.sessions is not None:
            return self.sessions.arrivals.end_problem(self.sessions.num_sessions, self.arrivals_for_s)
        if self.num_requests is None and self.arrivals_for_s is None:
            return "users need an end: num_requests or arrivals_for_s, or both"
        return None

    @model_validator(mode="after")
    def _retries_need_timeouts(self) -> Self:
        if self.retry is not None and not self.can_time_out:
            raise invalid("needs timeout_s: only requests that time out are retried", "retry")
        return self

    @property
    def can_time_out(self) -> bool:
        """Whether clients cancel any of the requests after a time."""
        listed = any(item.timeout_s is not None for item in self.requests or ())
        classed = any(found.timeout_s is not None for found in (self.classes or {}).values())
        in_file = self.trace is not None and "gives_up_s" in self.trace.optional_columns
        return self.timeout_s is not None or listed or classed or in_file
