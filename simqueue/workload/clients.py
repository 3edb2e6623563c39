"""The scenario keys of clients: users, sessions, classes and their limits, retries, shared system prompts."""

from __future__ import annotations

from pydantic import Field
from pydantic.config import JsonDict

from simqueue.settings import Settings
from simqueue.workload.arrivals.settings import ArrivalSettings
from simqueue.workload.duration_settings import NO_TIME, DurationSettings
from simqueue.workload.lengths.settings import TOKENS_UNIT, LengthSettings
from simqueue.workload.limits import MOST_TOKENS
from simqueue.workload.slo import SloSettings

_SECONDS: JsonDict = {"unit": "s"}


class UserSettings(Settings):
    """A closed loop: each of a fixed number of users thinks, sends a request, waits for the answer, and repeats."""

    count: int = Field(ge=1, le=1_000_000, description="number of users", json_schema_extra={"unit": "users"})
    think_s: DurationSettings = Field(
        default=NO_TIME, description="think time before each request, including the first", json_schema_extra=_SECONDS
    )
    ramp_up_s: float = Field(
        default=0.0,
        ge=0,
        description="user i of n starts at i / n of this time, so that the users do not all start together",
        json_schema_extra=_SECONDS,
    )


class SessionSettings(Settings):
    """Conversations: the prompt of each turn is the whole conversation so far and new tokens.

    A turn is sent after the answer to the one before and a think time. A turn that is rejected or times out ends its
    conversation.
    """

    arrivals: ArrivalSettings = Field(description="when conversations start")
    num_sessions: int | None = Field(
        default=None, ge=1, description="number of conversations; with arrivals_for_s: whichever comes first"
    )
    turns: LengthSettings = Field(
        description="distribution of the number of turns per conversation, with the same keys as a length distribution",
        json_schema_extra={"unit": "turns"},
    )
    think_s: DurationSettings = Field(
        default=NO_TIME, description="time from an answer to the next turn", json_schema_extra=_SECONDS
    )


class SystemPromptSettings(Settings):
    """Tokens at the start of every prompt that many requests share."""

    tokens: int = Field(ge=1, le=MOST_TOKENS, description="length", json_schema_extra=TOKENS_UNIT)
    variants: int = Field(
        default=1, ge=1, le=1_000_000, description="number of different system prompts, each equally likely"
    )

    @property
    def is_random(self) -> bool:
        """Whether the prompt of a request is drawn."""
        return self.variants > 1


class RetrySettings(Settings):
    """How clients retry after a timeout."""

    limit: int = Field(ge=1, le=100, description="retries after the first attempt")
    backoff_s: float = Field(
        default=1.0, ge=0, le=1e9, description="wait before the first retry", json_schema_extra=_SECONDS
    )
    factor: float = Field(default=2.0, ge=1, le=100, description="each wait is the previous wait times this factor")
    jitter: float = Field(
        default=0.0,
        ge=0,
        le=10,
        description="each wait is extended by a random share between 0 and this value, to avoid synchronised retries",
    )

    @property
    def is_random(self) -> bool:
        """Whether waits are drawn."""
        return self.jitter > 0 and self.backoff_s > 0


class ClassSettings(Settings):
    """A class of requests within a workload."""

    weight: float = Field(gt=0, le=1e9, description="relative frequency of this class")
    priority: int | None = Field(
        default=None,
        description="smaller is more urgent; used by `order: priority`. null: priority of the workload",
    )
    timeout_s: float | None = Field(
        default=None,
        gt=0,
        description="as timeout_s of the workload; null: timeout_s of the workload",
        json_schema_extra=_SECONDS,
    )
    slo: SloSettings | None = Field(default=None, description="limits for goodput; null: those of the workload")


def class_label(workload: str | None, name: str | None) -> str | None:
    """Return the label of a class of a workload in tables; either name can be None."""
    parts = [part for part in (workload, name) if part is not None]
    return "/".join(parts) if parts else None
