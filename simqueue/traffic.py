"""What a workload hands to a simulation: requests at fixed times, and people who ask depending on the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from simqueue.request import Request


class RequestStream(Protocol):
    """Requests that can be counted, and gone through as often as one likes."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Request]: ...


class Luck(Protocol):
    """A uniform number in [0, 1) for an attempt of a request, whatever else was drawn."""

    def __call__(self, request_id: str, attempt: int) -> float:
        """Return the number."""


@dataclass(frozen=True, slots=True)
class Retry:
    """What a client does when it has given up: ask again, after a while that grows.

    Attributes
    ----------
    limit : int
        Retries after the first attempt.
    backoff_s, factor, jitter : float
        Before retry k, counted from 1, it waits backoff_s factor^(k-1) seconds, lengthened by up to the share `jitter`.
    luck : callable
        Draws the share of `jitter` that is used.
    """

    limit: int
    backoff_s: float
    factor: float
    jitter: float
    luck: Luck

    def wait_s(self, request_id: str, attempt: int) -> float:
        """Return how long to wait before an attempt (1 for the first retry)."""
        jitter = self.jitter * self.luck(request_id, attempt) if self.jitter else 0.0
        return self.backoff_s * self.factor ** (attempt - 1) * (1 + jitter)


@dataclass(frozen=True, slots=True)
class Rules:
    """How the clients of one workload behave.

    Attributes
    ----------
    max_concurrency : int or None
        At most so many of their requests are at the server; others wait at the client, first come first served.
    retry : Retry or None
        None: who gives up is gone.
    """

    max_concurrency: int | None = None
    retry: Retry | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of somebody who asks again and again.

    Attributes
    ----------
    think_s : float
        Time from the last answer (or from the start) until it is asked.
    request : Request
        As if asked at time 0: its arrival and the times it carries are moved to when it is.
    """

    think_s: float
    request: Request


@dataclass(frozen=True, slots=True)
class Script:
    """What one person asks, one after the other, from `start_s` on."""

    start_s: float
    turns: Iterable[Turn]


@dataclass(frozen=True, slots=True)
class Crowd:
    """People of one kind.

    Attributes
    ----------
    scripts : tuple of Script
        In order of `start_s`.
    max_requests : int or None
        All of them together ask at most so often.
    until_s : float or None
        Nobody asks at or after this time.
    leaves_on_failure : bool
        Whether a turn that is not answered ends a script (a conversation that lacks an answer cannot go on).
    expected_requests : int
        How many there will be, as far as that is known beforehand.
    stream_offset : int
        Added to the token streams of all their requests.
    """

    scripts: tuple[Script, ...]
    max_requests: int | None = None
    until_s: float | None = None
    leaves_on_failure: bool = False
    expected_requests: int = 0
    stream_offset: int = 0


@dataclass(frozen=True, slots=True)
class Traffic:
    """The requests of one replication.

    Attributes
    ----------
    requests : sized iterable of Request
        Those with fixed times, in order of arrival; requests of one instant stay in the order of their source.
    notes : tuple of str
        What was dropped, sorted or found empty: one line each, for people.
    dropped_rows : int
        Trace rows left out because they had no tokens.
    crowds : tuple of Crowd
        People who ask depending on the answers.
    rules : mapping of str to Rules
        By `Request.pool`, how its client behaves.
    """

    requests: RequestStream
    notes: tuple[str, ...] = ()
    dropped_rows: int = 0
    crowds: tuple[Crowd, ...] = ()
    rules: Mapping[str, Rules] = field(default_factory=dict)

    @property
    def expected_requests(self) -> int:
        """How many there will be, as far as that is known beforehand (for progress bars)."""
        return len(self.requests) + sum(crowd.expected_requests for crowd in self.crowds)
