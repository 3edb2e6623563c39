"""One attempt of SGLang at a prefill: which requests are admitted, and how much of each is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from simqueue.errors import RunError
from simqueue.kvcache.radix import RadixKVCache
from simqueue.schedulers.keys import SglangSettings
from simqueue.schedulers.sglang_batch import DecodeBatch
from simqueue.schedulers.sglang_budget import Budget
from simqueue.schedulers.sglang_entry import CLIP_TOKENS, Entry, left_of
from simqueue.schedulers.sglang_order import Order
from simqueue.schedulers.sglang_rules import SglangRules

Verdict = Literal["go on", "no token", "other"]
MARGIN_TOKENS = 1
"""Tokens for each request that the forecast without a tree keeps free (IGNORE_EOS_RESERVE_TOKENS)."""


@dataclass(slots=True)
class Piece:
    """What one request computes in a prefill.

    Attributes
    ----------
    entry : Entry
    past, new : int
        Tokens in the cache before, and computed.
    last : bool
        Whether its context is complete then.
    is_new : bool
        Whether it was admitted in this step.
    """

    entry: Entry
    past: int
    new: int
    last: bool
    is_new: bool


class Attempt:
    """One attempt at a prefill.

    Parameters
    ----------
    kv, running, rules, flags, order
        Parts of the scheduler.
    budget : Budget
    ratio : float
    rows : callable
        Returns how many requests can run besides those that do.
    release : callable
        Takes a running request out and gives its tokens back; called with the number of requests that stay.

    Attributes
    ----------
    pieces : list of Piece
    preempted : list of Entry
    cut : Entry or None
        The request of `pieces` that is not complete.
    full : bool
        The engine's batch_is_full.
    """

    def __init__(
        self,
        kv: RadixKVCache,
        running: DecodeBatch,
        rules: SglangRules,
        flags: SglangSettings,
        order: Order,
        budget: Budget,
        ratio: float,
        rows: Callable[[], int],
        release: Callable[[Entry, int], None],
    ) -> None:
        self._kv = kv
        self._page = kv.block_size
        self._running = running
        self._rules = rules
        self._flags = flags
        self._order = order
        self._budget = budget
        self._ratio = ratio
        self._rows = rows
        self._release = release
        self._forecast: list[tuple[float, int]] | None = None
        self.pieces: list[Piece] = []
        self.preempted: list[Entry] = []
        self.cut: Entry | None = None
        self.full = False

    @property
    def preempts(self) -> bool:
        """Whether running requests can be pushed out."""
        return self._flags.enable_priority_scheduling

    # -- the pass ------------------------------------------------------------------------------------------------

    def go_on_with(self, entry: Entry) -> None:
        """Compute the next chunk of the request that is computed in part."""
        chunk = self._budget.chunk
        if chunk is None:
            raise RunError("sglang: a context is computed in part without chunks")
        if self._rules.gate != "whole":
            left = min(chunk, self._budget.whole_tokens())
            chunk = chunk if left <= 0 and self._rules.gate == "page" else left
        past = entry.holding.length
        rest = entry.known - past
        new = min(rest, chunk)
        if new <= 0:
            raise RunError(
                f"sglang: request '{entry.job.request.request_id}' can compute no token of its chunk; this version of "
                "the engine would stop here"
            )
        self._admit(entry, past, new, later=_clipped(entry.max_new), is_new=False)

    def scan(self, waiting: list[Entry], *, looked_up: bool) -> None:
        """Admit requests from the head of the queue until one is refused.

        Parameters
        ----------
        waiting : list of Entry
        looked_up : bool
            Whether what the tree has of them is known already.
        """
        for entry in waiting:
            if self._rules.spent_stops and not self._budget.is_full() and self._budget.is_spent():
                break
            if len(self.pieces) >= self._rows():
                self.full = True
                if self._rules.gate == "whole":
                    break
            if self.full and self._rules.gate != "whole" and not (self.preempts and self._push_out_for(entry)):
                break
            if not looked_up:
                self._order.look_up(entry, entry.known - 1)
            entry.wanted = entry.known - entry.matched
            verdict = self._try(entry)
            if verdict == "no token":
                served = bool(self.pieces or len(self._running))
                self.full = served or not self._rules.full_only_if_served
            if verdict != "go on":
                break

    def left(self) -> list[float | int | None]:
        """Return what is reserved at the end (old versions: left), and the tokens left of the step and of the chunk."""
        return [self._budget.offset, self._budget.step, self._budget.chunk]

    def _try(self, entry: Entry) -> Verdict:
        """Admit a request if everything fits, and say whether the next one is looked at."""
        most = self._flags.prefill_max_requests
        if most is not None and len(self.pieces) >= most:
            return "other"
        if not self._kv.caches:
            entry.matched = 0
            if entry.ignores_eos:
                return self._try_by_forecast(entry)
        context = entry.known - entry.matched
        if self._rules.gate == "whole":
            return self._try_whole(entry, context, context + _clipped(entry.max_new))
        tokens = context + _clipped(max(entry.max_new - entry.made, 0))
        return (
            self._try_page(entry, context, tokens)
            if self._rules.gate == "page"
            else self._try_rest(entry, context, tokens)
        )

    def _try_whole(self, entry: Entry, context: int, tokens: int) -> Verdict:
        budget = self._budget
        if tokens >= budget.total(tokens):
            return "no token"
        if context > budget.step and self.pieces:
            return "other"
        with_lock = self._lock(entry)
        if tokens > budget.total(tokens):
            self._unlock(entry, with_lock)
            return "no token"
        new = context
        if budget.chunk is not None and context > budget.chunk:
            new = budget.chunk
        return self._admit_held(entry, new, with_lock)

    def _try_rest(self, entry: Entry, context: int, tokens: int) -> Verdict:
        budget = self._budget
        paged = self._ceil(context)
        if tokens >= budget.total(tokens):
            return "no token"
        if paged >= budget.step and self.pieces:
            return "other"
        with_lock = self._lock(entry)
        if tokens >= budget.total(tokens):
            self._unlock(entry, with_lock)
            return "no token"
        new = context
        if budget.chunk is not None and paged > budget.chunk:
            new = budget.chunk // self._page * self._page
        return self._admit_held(entry, new, with_lock)

    def _try_page(self, entry: Entry, context: int, tokens: int) -> Verdict:
        budget = self._budget
        paged = self._ceil(context)
        tokens += self._page
        with_lock = self._lock(entry)
        if tokens >= budget.total(tokens):
            self._unlock(entry, with_lock)
            return "no token"
        if budget.chunk is None and self.pieces and paged >= budget.step:
            self._unlock(entry, with_lock)
            return "other"
        new = context
        if budget.chunk is not None and paged > budget.chunk:
            past, cut = entry.matched, budget.chunk // self._page * self._page
            new = (past + cut) // self._page * self._page - past
        return self._admit_held(entry, new, with_lock)

    def _lock(self, entry: Entry) -> int:
        """Hold what the tree has of a request; return how many tokens no request held before."""
        before = self._kv.tree.evictable
        if entry.node is not None:
            self._kv.hold(entry.holding, entry.node)
        taken = before - self._kv.tree.evictable
        self._budget.locked(taken)
        return taken

    def _unlock(self, entry: Entry, taken: int) -> None:
        self._kv.drop(entry.holding)
        self._budget.locked(-taken)

    def _admit_held(self, entry: Entry, new: int, taken: int) -> Verdict:
        """Admit a request whose prefix is held, unless nothing of it can be computed."""
        if new <= 0:
            self._unlock(entry, taken)
            return "other"
        self._admit(entry, entry.matched, new, later=_clipped(entry.max_new), is_new=True)
        return self._state()

    def _admit(self, entry: Entry, past: int, new: int, *, later: int, is_new: bool) -> None:
        last = past + new == entry.known
        self.pieces.append(Piece(entry, past, new, last, is_new))
        entry.fill = past + new
        if not last:
            self._cut_at(entry)
        paged = new if self._rules.gate == "whole" else self._ceil(new)
        self._budget.take(paged, later if last else 0)

    def _cut_at(self, entry: Entry) -> None:
        """Note the request that goes on in the next step.

        The engine keeps only the last one: an earlier one of the same step decodes from there on, as if complete.
        """
        for piece in self.pieces[:-1]:
            piece.last = True
        self.cut = entry

    def _state(self) -> Verdict:
        if self._budget.is_full():
            return "no token"
        return "other" if self._budget.is_spent() else "go on"

    def _ceil(self, tokens: int) -> int:
        return -(-tokens // self._page) * self._page

    # -- without a tree: a forecast of when running requests end -------------------------------------------------

    def _try_by_forecast(self, entry: Entry) -> Verdict:
        budget, old = self._budget, self._rules.gate == "whole"
        context = entry.known
        need = entry.prompt if old else self._ceil(context) + (self._page if self._rules.gate == "page" else 0)
        if not old and need > min(budget.now(), budget.total(need)):
            return "no token"
        self._add_to_forecast(entry)
        if not self._fits_forecast(budget.now() - need, old=old):
            return "no token"
        new = context
        if budget.chunk is not None and context > budget.chunk:
            new = budget.chunk
        if new <= 0:
            return "other"
        self._admit(entry, 0, new, later=_clipped(entry.max_new), is_new=True)
        return self._state()

    def _add_to_forecast(self, entry: Entry) -> None:
        """Add a candidate; the list is sorted by tokens left, but for how the engine inserts later candidates."""
        if self._forecast is None:
            entries = [entry, *self._running, *[piece.entry for piece in self.pieces]]
            states = [self._state_of(one) for one in entries]
            self._forecast = sorted([state for state in states if state[0] > 0], key=lambda state: state[0])
            return
        state = self._state_of(entry)
        if state[0] > 0:
            at = next((at for at, other in enumerate(self._forecast) if state[0] <= other[0]), None)
            self._forecast.insert(max(0, len(self._forecast) - 1) if at is None else at, state)

    def _state_of(self, entry: Entry) -> tuple[float, int]:
        """Return the tokens that a request will still make, and those that it holds."""
        ratio = 1.0 if entry.ignores_eos else self._ratio
        return entry.max_new * ratio - entry.made, entry.known

    def _fits_forecast(self, free: int, *, old: bool) -> bool:
        states = self._forecast or []
        freed = 0
        for at, (left, held) in enumerate(states):
            others = len(states) - at
            steps = left
            if old and at + 1 < len(states):
                steps = states[at + 1][0]
            if free + freed - steps * others <= (0 if old else MARGIN_TOKENS * others):
                return False
            freed += held
        return True

    # -- priorities ----------------------------------------------------------------------------------------------

    def _push_out_for(self, entry: Entry) -> bool:
        """Preempt running requests that are less urgent, if that makes enough room; return whether it did."""
        urgency = self._order.urgency
        want = entry.wanted + _clipped(entry.max_new) - self._budget.total()
        runs = [one for one in self._running if not (one.finished and self._rules.requeues_preempted)]
        victims = []
        for one in sorted(runs, key=lambda one: (-urgency(one), -one.entered)):
            gap = urgency(one) - urgency(entry)
            if gap <= self._flags.priority_scheduling_preemption_threshold:
                break
            victims.append(one)
            want -= self._reserve_of(one)
            if want <= 0:
                break
        if not victims or want > 0:
            return False
        self._push_out(victims)
        return True

    def _push_out(self, victims: list[Entry]) -> None:
        self._budget.make_exact()
        stay = len(self._running)
        for one in [one for one in self._running if one in victims]:
            if one.finished:
                raise RunError(
                    f"sglang: request '{one.job.request.request_id}' is preempted in the turn in which it has finished;"
                    " this version of the engine stops with a failed assertion here"
                )
            self._budget.give_back(self._reserve_of(one))
            stay -= 1
            self._release(one, stay)
        self.preempted.extend(victims)

    def _reserve_of(self, entry: Entry) -> float:
        return left_of(entry) * (1.0 if self._rules.fixed_reserve and entry.ignores_eos else self._ratio)


def _clipped(tokens: int) -> int:
    return min(tokens, CLIP_TOKENS)
