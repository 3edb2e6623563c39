"""A backlog played in steps: what a batching server does with its pool, its seats and its token budget.

The closed form of the capacity law knows means. It does not know that the head of the queue waits for blocks, that a
full pool evicts requests whose tokens are computed again, or that equal outputs start and end together. These follow
from the rules of admission and eviction, and need no step times: time is counted in steps, and a request gets one token
per step. So a sample of requests is played through these rules, from event to event: an admission, the end of a
request, a full pool. What comes out is the content of the steps; their durations are added afterwards.

Simplified are the blocks (a request holds half a block more than its tokens) and the order within a step (decodes come
first, then prompts in order of admission).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from simqueue.theory.limits import Resource, Server

_NO_LIMIT = 1 << 60
_MORE = 4


class Content(NamedTuple):
    """Equal steps in a row: their number, and the content of an average one of them.

    Attributes
    ----------
    steps : int
    decodes : int
    context_tokens : float
        Tokens that all decodes attend to.
    pieces, prompt_tokens : int
        Prompts, or pieces of prompts, and their tokens.
    past_tokens : float
        Tokens that precede a piece, such that equal pieces after so many tokens have the same attention.
    running : int
        Requests that hold a seat.
    new_tokens, new_prompts : int
        Prompt tokens that were never computed before, and prompts of which these are the last ones.
    """

    steps: int
    decodes: int
    context_tokens: float
    pieces: int
    prompt_tokens: int
    past_tokens: float
    running: int
    new_tokens: int
    new_prompts: int


@dataclass(slots=True, eq=False)
class Row:
    """A request on its way.

    Attributes
    ----------
    prompt, output : int
    context : int
        Tokens that are to be computed before it decodes: prompt, and after an eviction what was made too.
    left : int
        Tokens that are to be made.
    computed : int
        Tokens in the pool.
    reached : int
        Prompt tokens that were ever computed.
    since, started : int
        The tick that completed its context, and the number of this start; -1 if it does not decode.
    kept : int
        Tokens that it had in the pool when it was evicted.
    lost_at : float
        How many tokens had been taken from the pool when the first of the kept ones is overwritten.
    """

    prompt: int
    output: int
    context: int
    left: int
    computed: int = 0
    reached: int = 0
    since: int = -1
    started: int = -1
    kept: int = 0
    lost_at: float = 0.0


class Backlog:
    """Plays an endless queue through the rules of a server.

    Parameters
    ----------
    pairs : iterator of (prompt tokens, output tokens)
        The queue; each request alone fits into the pool.
    server : Server
        Of any batching but static.

    Attributes
    ----------
    contents : list of Content
        In order of time.
    done : list of int
        How many contents there were when each request left.
    evictions : int
    limited : dict of Resource to int
        Steps in which the head of the queue waited for this resource.
    """

    def __init__(self, pairs: Iterator[tuple[int, int]], server: Server) -> None:
        self.contents: list[Content] = []
        self.done: list[int] = []
        self.evictions = 0
        self.limited: dict[Resource, int] = {"slots": 0, "tokens": 0, "kv": 0}
        self._pairs = pairs
        self._server = server
        self._whole = server.batching != "chunked"
        self._separate = server.batching == "separate"
        self._budget = _NO_LIMIT if server.max_num_batched_tokens is None else server.max_num_batched_tokens
        self._chunk = _NO_LIMIT if server.chunk_tokens is None else server.chunk_tokens
        self._growth = int(server.reserve_tokens is None)
        """Tokens of the pool that a computed token takes: none if all are reserved at admission."""
        self._slack = (server.block_size - 1) / 2 * self._growth
        self._spare = server.spare_blocks * server.block_size
        blocks = math.inf if server.kv_blocks is None else server.kv_blocks
        self._free = float(blocks * server.block_size + self._spare)
        self._taken = 0.0
        self._new_tokens = self._new_prompts = 0
        self._ticks = 0
        """Steps in which decodes took part: all but separate steps of prompts."""
        self._decodes = 0
        self._context = 0
        """Tokens to which the decodes of the last step attended."""
        self._running: dict[Row, None] = {}
        self._prefilling: dict[Row, None] = {}
        self._leaving: list[Row] = []
        self._ends: list[tuple[int, int, Row]] = []
        self._returned: deque[Row] = deque()
        self._started = 0
        self._waits_for: Resource = "slots"

    def play(self, requests: int, contents: tuple[int, int]) -> None:
        """Go on until so many requests have left, but at most so many contents are there.

        Up to the least number of contents it goes on even then, for up to `_MORE` times as many requests.
        """
        least, most = contents
        while len(self.contents) < (most if len(self.done) < requests else least):
            if len(self.done) >= _MORE * requests:
                return
            self._play_step()

    @property
    def limit(self) -> Resource:
        """The resource for which the head of the queue waited in most steps."""
        return max(self.limited, key=self.limited.__getitem__)

    def _play_step(self) -> None:
        self._release()
        evicted_before = self.evictions
        pieces: list[tuple[int, int]] = []
        if self._separate:
            self._admit(self._budget, pieces)
        if not (self._separate and pieces):
            self._decode()
            if not self._separate:
                self._serve_prompts(pieces, evicted_before)
        decodes = 0 if self._separate and pieces else self._decodes
        quiet = decodes and not (pieces or self._prefilling or self._leaving or self.evictions > evicted_before)
        self._note(decodes, pieces, self._repeat() if quiet else 0)
        self._start_decoding()

    def _serve_prompts(self, pieces: list[tuple[int, int]], evicted_before: int) -> None:
        budget = self._go_on(self._budget - self._decodes, pieces)
        if self.evictions == evicted_before:
            self._admit(budget, pieces)

    def _note(self, decodes: int, pieces: list[tuple[int, int]], repeats: int) -> None:
        tokens = sum([new for _, new in pieces])
        weighted = sum([new * (past + new / 2) for past, new in pieces])
        past_tokens = weighted / tokens - tokens / len(pieces) / 2 if tokens else 0.0
        context = self._context - decodes * repeats / 2 if decodes else 0.0  # `_repeat` has moved the sum to the end
        new, self._new_tokens, self._new_prompts = (self._new_tokens, self._new_prompts), 0, 0
        self.contents.append(
            Content(1 + repeats, decodes, context, len(pieces), tokens, past_tokens, len(self._running), *new)
        )
        self.limited[self._waits_for] += 1 + repeats

    def _repeat(self) -> int:
        """Repeat a step of decodes until a request ends or the pool is full; return how often."""
        ends = self._ends
        while ends[0][1] != ends[0][2].started:
            heappop(ends)  # evicted in the meantime
        repeats = ends[0][0] - self._ticks
        if self._growth:
            repeats = min(repeats, max(0, int(min(self._free, _NO_LIMIT) // self._decodes)))
        self._ticks += repeats
        self._take(repeats * self._decodes)
        self._context += repeats * self._decodes
        return repeats

    # -- the pool ------------------------------------------------------------------------------------------------

    def _take(self, tokens: float) -> None:
        self._free -= tokens * self._growth
        self._taken += tokens * self._growth

    def _reserved(self, row: Row) -> int:
        """Return the tokens reserved for a request: whole blocks."""
        reserve, size = self._server.reserve_tokens, self._server.block_size
        tokens = reserve if isinstance(reserve, int) else row.prompt + row.output - 1
        return -(-tokens // size) * size

    def _give_back(self, row: Row) -> None:
        self._free += row.computed + self._slack if self._growth else self._reserved(row)

    def _release(self) -> None:
        """Let requests go whose last token was made: with two steps in flight, one step later."""
        for row in self._leaving:
            self._give_back(row)
        self._leaving.clear()
        while self._ends and self._ends[0][0] <= self._ticks:
            at, started, row = heappop(self._ends)
            if started != row.started:
                continue  # evicted in the meantime
            del self._running[row]
            row.computed = row.context + at - row.since
            if at > row.since:
                self._decodes -= 1
                self._context -= row.computed
            self.done.append(len(self.contents))
            if self._server.depth > 1:
                self._leaving.append(row)
            else:
                self._give_back(row)

    def _evict(self, given: int) -> Row:
        """Take seat and blocks of the request admitted last, which was given so many tokens in this step."""
        row, _ = self._running.popitem()
        self.evictions += 1
        if row.since < 0:
            del self._prefilling[row]
        else:
            made = self._ticks - row.since
            row.computed = row.context + made - 1 + given
            self._decodes -= 1
            self._context -= row.computed
            row.context += made
            row.left -= made
            row.since = row.started = -1
        row.kept, row.lost_at = row.computed, self._taken + max(0.0, self._free)
        self._give_back(row)
        row.computed = 0
        self._returned.appendleft(row)
        return row

    def _found(self, row: Row) -> int:
        """Return what a prefix cache still has of an evicted request: its last tokens are overwritten first."""
        if not (row.kept and self._server.keeps_evicted):
            return 0
        found = row.kept - max(0.0, self._taken - row.lost_at)
        size = self._server.block_size
        return max(0, min(int(found // size), (row.context - 1) // size) * size)

    # -- one step ------------------------------------------------------------------------------------------------

    def _decode(self) -> None:
        """Give each decode a token; evict while the pool is short, but never the last request."""
        self._ticks += 1
        while self._decodes * self._growth > self._free and len(self._running) > 1:
            self._evict(0)
        self._take(self._decodes)
        self._context += self._decodes

    def _go_on(self, budget: int, pieces: list[tuple[int, int]]) -> int:
        """Go on with unfinished prompts; return what is left of the budget."""
        for row in list(self._prefilling):
            if budget <= 0:
                break
            new = min(row.context - row.computed, self._chunk, budget)
            while row in self._prefilling and new * self._growth > self._free and len(self._running) > 1:
                self._evict(1)
            if row in self._prefilling:
                budget -= self._compute(row, new, pieces)
        return budget

    def _compute(self, row: Row, new: int, pieces: list[tuple[int, int]]) -> int:
        pieces.append((row.computed, new))
        row.computed += new
        fresh = min(row.computed, row.prompt) - row.reached
        if fresh > 0:
            row.reached += fresh
            self._new_tokens += fresh
            self._new_prompts += row.reached == row.prompt
        self._take(new)
        return new

    def _admit(self, budget: int, pieces: list[tuple[int, int]]) -> None:
        """Admit from the head of the queue until it lacks a seat, budget or blocks."""
        while True:
            if len(self._running) + len(self._leaving) >= self._server.max_num_seqs:
                self._waits_for = "slots"
                return
            row = self._head()
            found = self._found(row)
            new = row.context - found if self._whole else min(row.context - found, self._chunk, budget)
            if (new > budget and self._running) or budget <= 0:
                self._waits_for = "tokens"
                return
            if not self._fits(row, found + new):
                self._waits_for = "kv"
                return
            self._returned.popleft()
            self._running[row] = self._prefilling[row] = None
            self._free -= self._slack + found if self._growth else self._reserved(row)
            row.computed = found
            budget -= self._compute(row, new, pieces)

    def _head(self) -> Row:
        if not self._returned:
            prompt, output = next(self._pairs)
            self._returned.append(Row(prompt, output, prompt, output))
        return self._returned[0]

    def _fits(self, row: Row, tokens: int) -> bool:
        """Whether the pool has room for `tokens` of the head of the queue, or for all that it is to get at once."""
        if not (self._running or self._leaving):
            return True
        known = row.context if self._server.whole_context else tokens
        need = known + self._slack if self._growth else self._reserved(row)
        return need + self._spare <= self._free

    def _start_decoding(self) -> None:
        for row in [row for row in self._prefilling if row.computed == row.context]:
            del self._prefilling[row]
            row.since = self._ticks
            if row.left > 1:
                self._decodes += 1
                self._context += row.context
            row.started = self._started = self._started + 1
            heappush(self._ends, (self._ticks + row.left - 1, row.started, row))
