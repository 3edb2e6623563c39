"""A request: what is asked (`Request`), and the request on its way through a replica (`Job`)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Final

QUEUE_FULL: Final = "queue full"
"""Begin of the reason of a rejection that depends on the queue, and not on the request."""


class Status(StrEnum):
    """How a request ended. The four counts add up to the requests that arrived."""

    FINISHED = "finished"
    REJECTED = "rejected"
    TIMED_OUT = "timed_out"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Request:
    """One request to the server.

    Attributes
    ----------
    request_id : str
        Unique in its run.
    arrival_s : float
        When it arrives, in seconds from the start of the run.
    prompt_tokens, output_tokens : int
        Number of prompt and output tokens, each at least 1.
    priority : int
        Smaller is more urgent; used by ``order: priority``.
    deadline_s : float or None
        Absolute time by which the client wants all tokens; used by ``order: deadline``.
    request_class : str or None
        A label for summaries.
    prompt : tuple of (stream, start, length) or None
        Identity of the prompt tokens, for prefix caches: pieces of streams whose lengths add up to `prompt_tokens`.
        Equal (stream, position) are equal tokens. None: no token is shared with another request.
    output_stream : int or None
        The j-th output token is (output_stream, output_start + j). None: no token is shared with another request.
    wanted_s : float or None
        When the client first wanted the answer: before `arrival_s` if it waited at the client or is a retry. None: at
        `arrival_s`. The time between is the wait at the client, which is no part of the latencies.
    gives_up_s : float or None
        When the client stops waiting. None: never.
    attempt : int
        0 for the first, 1 for the first retry.
    session, client : str or None
        Session and client that the request belongs to; labels for tables.
    pool : str or None
        Name of the client rules (timeout, retry, concurrency limit); None: no rules.
    output_start : int
        Position of the first output token in its stream: more than 0 if earlier ones were made elsewhere.
    max_output_tokens : int or None
        The limit of its answer that the server knows; None: `output_tokens`.
    ignore_eos : bool or None
        Whether the server knows that the answer has as many tokens as its limit. None: if `max_output_tokens` is None,
        as load generators ask.
    routing_key : str or None
        Name of what it belongs to, for servers that order their queue by it.
    """

    request_id: str
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    priority: int = 0
    deadline_s: float | None = None
    request_class: str | None = None
    prompt: tuple[tuple[int, int, int], ...] | None = None
    output_stream: int | None = None
    wanted_s: float | None = None
    gives_up_s: float | None = None
    attempt: int = 0
    session: str | None = None
    client: str | None = None
    pool: str | None = None
    output_start: int = 0
    max_output_tokens: int | None = None
    ignore_eos: bool | None = None
    routing_key: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make it again: it is frozen, so it cannot be filled in after it was made (pickle, copy)."""
        return Request, tuple([getattr(self, field.name) for field in fields(self)])

    @property
    def is_special(self) -> bool:
        """Whether it has more than an arrival, a prompt length and an output length."""
        urgent = self.priority != 0 or self.deadline_s is not None or self.gives_up_s is not None
        limited = self.max_output_tokens is not None or self.ignore_eos is not None or self.routing_key is not None
        return urgent or limited or self.prompt is not None or self.output_stream is not None

    @property
    def most_output_tokens(self) -> int:
        """The limit of its answer that the server knows."""
        return self.output_tokens if self.max_output_tokens is None else self.max_output_tokens

    @property
    def ignores_eos(self) -> bool:
        """Whether the server knows that the answer has as many tokens as its limit."""
        return self.max_output_tokens is None if self.ignore_eos is None else self.ignore_eos

    def with_streams_moved(self, offset: int) -> Request:
        """Return the request with `offset` added to the numbers of its token streams."""
        prompt, output = self.prompt, self.output_stream
        return replace(
            self,
            prompt=None if prompt is None else tuple((stream + offset, at, n) for stream, at, n in prompt),
            output_stream=None if output is None else output + offset,
        )


class Trip:
    """The way of a request through a fleet: its stays at replicas, one after the other.

    Attributes
    ----------
    job : Job
        The present stay, or the one that is to come.
    request : Request
        As the client sent it.
    member : object
        The replica where it is, as the fleet keeps it; None: at the router.
    routed_s : float or None
        When it was first sent to a replica, in seconds.
    reason : str or None
        Why the router chose the replica of its last stay.
    lost : list of Job
        Stays that failed, in order.
    keeps_tokens : bool
        Whether the tokens of the stays that failed are part of the answer.
    last_member : object
        The replica where it is or was last.
    reached : bool
        Whether it has reached that replica.
    reached_s : float or None
        When its present or last stay reached its replica, in seconds.
    first_token_at : object
        The replica of the first token, if that stay failed and its tokens are kept.
    lost_at : int
        Number of the replica of the last stay that failed; -1: none did.
    sent : int
        How often it was sent to a replica.
    attempts : int
        Attempts that failed.
    """

    __slots__ = (
        "attempts",
        "first_token_at",
        "job",
        "keeps_tokens",
        "last_member",
        "lost",
        "lost_at",
        "member",
        "reached",
        "reached_s",
        "reason",
        "request",
        "routed_s",
        "sent",
    )

    def __init__(self, job: Job) -> None:
        self.job = job
        self.request = job.request
        self.member: object = None
        self.routed_s: float | None = None
        self.reason: str | None = None
        self.lost: list[Job] = []
        self.keeps_tokens = False
        self.reached = False
        self.reached_s: float | None = None
        self.last_member: object = None
        self.first_token_at: object = None
        self.lost_at = -1
        self.sent = 0
        self.attempts = 0


class Job:
    """A request on its way through a replica: what the scheduler decided, and what the client saw.

    The scheduler writes the first group of attributes, the recorder the second. Each only reads the other group.

    Attributes
    ----------
    output_tokens : int
        Tokens that will be made: those of the request, or fewer if the policy cuts them.
    known_tokens : int
        Prompt and output tokens that exist (while not decoding; `DecodeCounters` counts decoding requests).
    computed_tokens : int
        Known tokens whose KV is in the cache (while not decoding).
    lost_tokens : int
        The most tokens whose KV it had when it was preempted. What it computes of them from then on is recomputed.
    decoding : bool
        Whether it is part of the decode counters.
    base, last_step, rank : int
        Its entry there: tokens less steps when it started, the step of its last token, its rank by admission.
    served_in : int
        The last step in which it was given prompt tokens.
    submitted_s : float or None
        When a front end handed it to the scheduler; None without a front end.
    first_scheduled_s, first_token_s, last_token_s : float or None
        When it was first part of a step, and when its first and its last token were made, in seconds.
    max_itl_s : float or None
        Longest gap between two of its tokens so far.
    preemptions, recomputed_tokens, cached_tokens, tokens_emitted : int
    joined_tick : int or None
        Number of ticks when it last started to decode; None while it does not decode.
    trip : Trip or None
        Its way through a fleet; None without a router.
    """

    __slots__ = (
        "base",
        "cached_tokens",
        "computed_tokens",
        "decoding",
        "first_scheduled_s",
        "first_token_s",
        "index",
        "joined_tick",
        "known_tokens",
        "last_step",
        "last_token_s",
        "lost_tokens",
        "max_itl_s",
        "output_tokens",
        "preemptions",
        "rank",
        "recomputed_tokens",
        "request",
        "served_in",
        "submitted_s",
        "tokens_emitted",
        "trip",
    )

    def __init__(self, request: Request, index: int) -> None:
        self.request = request
        self.index = index
        self.output_tokens = request.output_tokens
        self.known_tokens = request.prompt_tokens
        self.computed_tokens = 0
        self.lost_tokens = 0
        self.decoding = False
        self.base = 0
        self.last_step = 0
        self.rank = -1
        self.served_in = 0
        self.submitted_s: float | None = None
        self.first_scheduled_s: float | None = None
        self.first_token_s: float | None = None
        self.last_token_s: float | None = None
        self.max_itl_s: float | None = None
        self.preemptions = 0
        self.recomputed_tokens = 0
        self.cached_tokens = 0
        self.tokens_emitted = 0
        self.joined_tick: int | None = None
        self.trip: Trip | None = None

    @property
    def rest_tokens(self) -> int:
        """Known tokens still to be computed (0 when only a decode is left)."""
        return self.known_tokens - self.computed_tokens

    @property
    def last_known_tokens(self) -> int:
        """Known tokens when the last output token has been made."""
        return self.request.prompt_tokens + self.output_tokens
