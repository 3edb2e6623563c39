"""The result of one run of one policy: columns, not objects. Tables and metrics are made from this alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from simqueue.frontend import FrontEndTimes
from simqueue.request import Request

Column = NDArray[Any]


class Table(Mapping[str, Column]):
    """Columns of equal length, in memory or in a file; a lookup returns a whole column."""

    @abstractmethod
    def parts(self, *names: str) -> Iterator[Mapping[str, Column]]:
        """Go through the rows in order, in parts that fit in memory.

        Parameters
        ----------
        *names : str
            Names of the wanted columns.

        Raises
        ------
        KeyError
            If there is no such column.
        """


class KeptTable(dict[str, Column], Table):
    """Columns in memory: one part is the whole."""

    def parts(self, *names: str) -> Iterator[Mapping[str, Column]]:
        """Yield the columns as they are."""
        yield {name: self[name] for name in names}


@dataclass(frozen=True, slots=True)
class PrefixStatistics:
    """Tokens looked up in a prefix cache, once per request, and found.

    Attributes
    ----------
    queried_tokens, hit_tokens : int
        At first admissions.
    self_hit_tokens : int
        Found by preempted requests when they return; mostly their own. Not part of the other two.
    """

    queried_tokens: int
    hit_tokens: int
    self_hit_tokens: int


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """One replica of a fleet.

    Attributes
    ----------
    name, group : str
    front_end : FrontEndTimes or None
        What requests go through before its scheduler.
    blocks_total, blocks_peak : int
        Its KV pool and the most that was used at one time, in blocks.
    ready_s : float
        How long it ran, in seconds: ready, or draining.
    lost_step_s : float or None
        Time of steps that did not end: cut off by failures, or by the end of the run. None: there were none.
    slot_steps, idle_slot_steps : int or None
        As in `Recording`.
    prefix : PrefixStatistics or None
    """

    name: str
    group: str
    front_end: FrontEndTimes | None
    blocks_total: int
    blocks_peak: int
    ready_s: float
    lost_step_s: float | None
    slot_steps: int | None
    idle_slot_steps: int | None
    prefix: PrefixStatistics | None


@dataclass(frozen=True)
class FleetRecord:
    """What there is to say about a fleet besides its requests and steps.

    Attributes
    ----------
    replicas : tuple of ReplicaFacts
        By number.
    router : str
        Name of the router's class.
    lives : mapping of str to array
        time_s, replica, state (object: ready, draining, failed, gone, absent): each change, in order of time.
    stays : mapping of str to array
        request (its row in the requests table), replica, submitted_s, first_scheduled_s, first_token_s, last_token_s,
        end_s, tokens, kept (whether these tokens are part of the answer), max_itl_s: stays that failed, in order.
    """

    replicas: tuple[ReplicaFacts, ...]
    router: str
    lives: Mapping[str, Column]
    stays: Mapping[str, Column]

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, in order."""
        return tuple(dict.fromkeys(replica.group for replica in self.replicas))


@dataclass(frozen=True)
class Recording:
    """Columns of one run. Times are seconds from the start; NaN means "never happened" in float columns.

    Attributes
    ----------
    requests : mapping of str to array, each of length n_requests, in order of arrival
        request_id (object), request_class (object, None if not given), arrival_s, prompt_tokens, output_tokens,
        due_tokens (output tokens, or fewer if the policy cuts them), status (object: a `Status` value),
        reject_reason (object, None), replica (int, -1 for none), submitted_s (when a front end handed it on),
        first_scheduled_s, first_token_s, first_token_delay_s (0 without a front end; NaN if its client never saw a
        token), last_token_s, finish_s (of a rejected request: when it was rejected; NaN if unfinished), max_itl_s,
        preemptions, cached_tokens, recomputed_tokens, tokens_emitted, wanted_s (when its client first wanted it: its
        arrival, or earlier if it waited at the client or is a retry), attempt, session and client (object, None).
    steps : Table, n_rows in order of time
        start_s, duration_s, repeat, last_step_s, decode_seqs, context_tokens, prefill_tokens, prefill_seqs,
        blocks_used, running, waiting, preempted.
    gaps : Table
        gap_s, tokens: the gaps between two consecutive tokens of one request, and how many tokens have this gap.
    blocks_total, blocks_peak : int
        The KV pool and the most that was used at one time, in blocks.
    max_concurrent : int
        The most requests that were waiting or running at one time.
    slot_steps, idle_slot_steps : int or None
        Rows times steps of padded batches, and how many of these made no token; None if batches are not padded.
    end_s : float
        When the run ended: the last departure, or the horizon.
    warnings : tuple of str
        One line each.
    unfinished_step_s : float or None
        How long the step in flight at the end of the run had run; it is not part of `steps`. None: there was none.
    prefix : PrefixStatistics or None
        What the prefix cache found; None without a prefix cache.
    front_end : FrontEndTimes or None
        What requests went through before the scheduler; of a fleet the first one there is, see `ReplicaFacts`.
    special : mapping of str to Request
        By id, the requests with more than an arrival and lengths (`Request.is_special`), as they arrived.
    fleet : FleetRecord or None
        The replicas and the router; None without a router. With it `requests` has routed_s (when the router sent it to
        a replica first), reached_s (when it reached its last replica), route_reason (object, None), resent (how often
        it was sent again) and discarded_tokens (made in stays that failed, and made again). `steps` has replica and is
        in order of time for each replica, replica after replica. Blocks are those of all replicas together.
    """

    requests: Mapping[str, Column]
    steps: Table
    gaps: Table
    blocks_total: int
    blocks_peak: int
    max_concurrent: int
    slot_steps: int | None
    idle_slot_steps: int | None
    end_s: float
    warnings: tuple[str, ...] = ()
    unfinished_step_s: float | None = None
    prefix: PrefixStatistics | None = None
    front_end: FrontEndTimes | None = None
    special: Mapping[str, Request] = field(default_factory=dict)
    fleet: FleetRecord | None = None
