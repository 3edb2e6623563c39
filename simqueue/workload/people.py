"""The scenario keys of those who ask: users, sessions, classes, patience, shared system prompts."""

from __future__ import annotations

from pydantic import Field
from pydantic.config import JsonDict

from simqueue.settings import Settings
from simqueue.workload.arrivals import ArrivalSettings
from simqueue.workload.durations import NO_TIME, DurationSettings
from simqueue.workload.lengths import LengthSettings
from simqueue.workload.lengths.base import TOKENS_UNIT
from simqueue.workload.limits import MOST_TOKENS
from simqueue.workload.slo import SloSettings

_SECONDS: JsonDict = {"unit": "s"}


class UserSettings(Settings):
    """A closed loop: so many users, each of whom thinks, asks, waits for the whole answer, and thinks again."""

    count: int = Field(ge=1, le=1_000_000, description="How many users.", json_schema_extra={"unit": "users"})
    think_s: DurationSettings = Field(
        default=NO_TIME, description="Time before each question, the first one too.", json_schema_extra=_SECONDS
    )
    ramp_up_s: float = Field(
        default=0.0,
        ge=0,
        description="User i of n comes at i / n of this time, so that they do not all begin together.",
        json_schema_extra=_SECONDS,
    )


class SessionSettings(Settings):
    """Conversations: each turn's prompt is everything said before and new tokens, asked some time after the answer.

    A turn that is refused or given up ends its conversation.
    """

    arrivals: ArrivalSettings = Field(description="When conversations begin.")
    num_sessions: int | None = Field(
        default=None, ge=1, description="How many conversations begin. With arrivals_for_s: whichever comes first."
    )
    turns: LengthSettings = Field(
        description="How many turns a conversation has: a law, as for lengths.", json_schema_extra={"unit": "turns"}
    )
    think_s: DurationSettings = Field(
        default=NO_TIME, description="Time from an answer to the next turn.", json_schema_extra=_SECONDS
    )


class SystemPromptSettings(Settings):
    """Tokens that stand before every prompt and are the same for many."""

    tokens: int = Field(ge=1, le=MOST_TOKENS, description="How many.", json_schema_extra=TOKENS_UNIT)
    variants: int = Field(
        default=1, ge=1, le=1_000_000, description="How many different ones there are, each equally likely."
    )


class RetrySettings(Settings):
    """What clients do that have given up: ask again."""

    limit: int = Field(ge=1, le=100, description="Retries after the first attempt.")
    backoff_s: float = Field(
        default=1.0, ge=0, le=1e9, description="Wait before the first retry.", json_schema_extra=_SECONDS
    )
    factor: float = Field(default=2.0, ge=1, le=100, description="Each further wait is this times the one before.")
    jitter: float = Field(
        default=0.0, ge=0, le=10, description="Waits are longer by a random share, up to this, so that nobody marches."
    )


class ClassSettings(Settings):
    """One kind of requests within a workload."""

    weight: float = Field(gt=0, le=1e9, description="How often this class comes, relative to the others.")
    priority: int | None = Field(
        default=None, description="Smaller is more urgent; used by order: priority. null: the workload's."
    )
    timeout_s: float | None = Field(
        default=None,
        gt=0,
        description="See timeout_s of the workload. null: the workload's.",
        json_schema_extra=_SECONDS,
    )
    slo: SloSettings | None = Field(default=None, description="For goodput; null: the workload's.")
