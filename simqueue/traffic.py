"""What a workload hands to a simulation: requests with fixed arrival times, and sessions of users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from simqueue.request import Request


class RequestStream(Protocol):
    """Requests that can be counted and iterated over any number of times."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Request]: ...


class JitterDraw(Protocol):
    """A uniform random number in [0, 1) for each attempt of a request, independent of all other draws."""

    def __call__(self, request_id: str, attempt: int) -> float:
        """Return the number."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How clients retry after a timeout: with exponential backoff and jitter.

    Attributes
    ----------
    limit : int
        Retries after the first attempt.
    backoff_s, factor, jitter : float
        The client waits backoff_s factor^(k-1) seconds before retry k, counted from 1. The wait is lengthened by a
        random share of up to `jitter`.
    draw : JitterDraw
        Draws which share of `jitter` is used.
    """

    limit: int
    backoff_s: float
    factor: float
    jitter: float
    draw: JitterDraw

    def wait_s(self, request_id: str, attempt: int) -> float:
        """Return the wait before an attempt (1 for the first retry), in seconds."""
        jitter = self.jitter * self.draw(request_id, attempt) if self.jitter else 0.0
        return self.backoff_s * self.factor ** (attempt - 1) * (1 + jitter)


@dataclass(frozen=True, slots=True)
class Rules:
    """How the clients of one workload behave.

    Attributes
    ----------
    max_concurrency : int or None
        Concurrency limit: at most this many of their requests are at the server. Other requests wait at the client in
        first-come first-served order. None: no limit.
    retry : Retry or None
        None: no retries.
    """

    max_concurrency: int | None = None
    retry: Retry | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of a session.

    Attributes
    ----------
    think_s : float
        Time from the previous answer (or from the start of the session) until the request is sent.
    request : Request
        Described as if sent at time 0. Its arrival and its other times are shifted when it is sent.
    """

    think_s: float
    request: Request


@dataclass(frozen=True, slots=True)
class Session:
    """The requests of one user or conversation from `start_s` on: each is sent after the answer to the one before."""

    start_s: float
    turns: Iterable[Turn]


@dataclass(frozen=True, slots=True)
class SessionGroup:
    """The sessions of one workload.

    Attributes
    ----------
    sessions : tuple of Session
        In order of `start_s`.
    max_requests : int or None
        Limit on the requests of all sessions together.
    until_s : float or None
        No request is sent at or after this time.
    ends_on_failure : bool
        Whether a request without an answer ends its session (a conversation cannot continue without the answer).
    expected_requests : int
        Number of requests as far as it is known in advance.
    stream_offset : int
        Added to the token streams of all requests.
    """

    sessions: tuple[Session, ...]
    max_requests: int | None = None
    until_s: float | None = None
    ends_on_failure: bool = False
    expected_requests: int = 0
    stream_offset: int = 0


@dataclass(frozen=True, slots=True)
class Traffic:
    """The requests of one replication.

    Attributes
    ----------
    requests : RequestStream
        Requests with fixed arrival times, in order of arrival. Requests with equal arrival times keep the order of
        their source.
    notes : tuple of str
        One line each on rows that were dropped or sorted, and on workloads without requests.
    dropped_rows : int
        Trace rows that were dropped because they have no prompt or no output tokens.
    session_groups : tuple of SessionGroup
        Sessions, whose arrival times depend on the answers.
    rules : mapping of str to Rules
        Client behaviour by `Request.pool`.
    """

    requests: RequestStream
    notes: tuple[str, ...] = ()
    dropped_rows: int = 0
    session_groups: tuple[SessionGroup, ...] = ()
    rules: Mapping[str, Rules] = field(default_factory=dict)

    @property
    def expected_requests(self) -> int:
        """Number of requests as far as it is known in advance (for progress bars)."""
        return len(self.requests) + sum(group.expected_requests for group in self.session_groups)
