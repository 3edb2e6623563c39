"""What one run of one policy leaves behind: columns, not objects. Tables and metrics are made from this alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from simqueue.request import Request

Column = NDArray[Any]


class Table(Mapping[str, Column]):
    """Columns of equal length, in memory or in a file; each lookup returns one of them whole."""

    @abstractmethod
    def parts(self, *names: str) -> Iterator[Mapping[str, Column]]:
        """Go through the rows in order, some at a time: as many as the table finds easy to have in memory.

        Parameters
        ----------
        *names : str
            The columns that are wanted.

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
        Found by preempted requests that came back, which mostly find their own; counted in neither of the others.
    """

    queried_tokens: int
    hit_tokens: int
    self_hit_tokens: int


@dataclass(frozen=True)
class Recording:
    """Columns of one run. Times are seconds from the start; NaN stands for 'never happened' in float columns.

    Attributes
    ----------
    requests : mapping of str to array, each of length n_requests, in order of arrival
        request_id (object), request_class (object, None where not given), arrival_s, prompt_tokens, output_tokens,
        due_tokens (what the policy lets it make: the output, or less), status (object: a `Status` value),
        reject_reason (object, None), replica (int, -1 where none), first_scheduled_s, first_token_s, last_token_s,
        finish_s (of a rejected request: its arrival; NaN where unfinished), max_itl_s, preemptions,
        cached_tokens, recomputed_tokens, tokens_emitted, wanted_s (when its person first wanted it: its arrival, or
        earlier where it waited at the client or is a retry), attempt, session and client (object, None).
    steps : Table, n_rows in order of time
        start_s, duration_s, repeat, last_step_s, decode_seqs, context_tokens, prefill_tokens, prefill_seqs,
        blocks_used, running, waiting, preempted.
    gaps : Table
        gap_s, tokens: every gap between two consecutive tokens of one request, as a value and how many tokens it holds
        for.
    blocks_total, blocks_peak : int
        The KV pool and the most that was ever used, in blocks.
    max_concurrent : int
        The most requests that were inside (waiting or running) at one time.
    slot_steps, idle_slot_steps : int or None
        Rows times steps of padded waves and how many of these made no token; None for policies without waves.
    end_s : float
        When the run ended: the last departure, or the horizon.
    warnings : tuple of str
        One line each, for people.
    unfinished_step_s : float or None
        How long the step that was under way at the end had run by then; it is not among `steps`. None: none was.
    prefix : PrefixStatistics or None
        What the prefix cache found; None without one.
    special : mapping of str to Request
        By id, the requests that ask for more than lengths at a time (tokens of their own, urgency, patience), as they
        were asked.
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
    special: Mapping[str, Request] = field(default_factory=dict)
