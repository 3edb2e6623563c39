"""An independent reference for `chunked` and `continuous`: a plain loop over requests.

It follows the documented rules alone: every token has a time in a list, every block a number in a list, every step
asks every request. Nothing is counted that can be looked up, nothing is folded, and no part of the package is used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

StepSeconds = Callable[[int, int, int], float]
"""Duration of a step in seconds from decode_seqs, context_tokens, prefill_tokens."""

KEYS: dict[str, Callable[[Asked], float]] = {
    "shortest_prompt": lambda asked: asked.prompt_tokens,
    "shortest_output": lambda asked: asked.output_tokens,
    "priority": lambda asked: asked.priority,
    "deadline": lambda asked: math.inf if asked.deadline_s is None else asked.deadline_s,
}


@dataclass(frozen=True)
class Asked:
    """One request as its client puts it; the list they come in says who is first of one instant."""

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    priority: int = 0
    deadline_s: float | None = None


@dataclass(frozen=True)
class House:
    """The server: rules, seats, budget and pool."""

    kind: Literal["chunked", "mixed", "separate"]
    seats: int
    budget: int
    chunk: int | None
    blocks: int
    block_size: int
    step_seconds: StepSeconds
    order: str = "fcfs"
    watermark_blocks: int = 0
    contiguous: bool = False
    reserve_tokens: int | None = None
    reject: bool = True
    horizon_s: float = math.inf


@dataclass(eq=False)
class Guest:
    """One request inside: its tokens by time, the places of its context that are cached, its blocks."""

    asked: Asked
    index: int
    token_times_s: list[float] = field(default_factory=list)
    cached: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    prefilled: bool = False
    first_scheduled_s: float | None = None
    finish_s: float | None = None
    rejected: bool = False
    preemptions: int = 0
    lost: set[int] = field(default_factory=set)
    """Places of its context whose KV was dropped at some time."""
    recomputed: int = 0

    @property
    def known(self) -> int:
        """Prompt and output tokens that exist."""
        return self.asked.prompt_tokens + len(self.token_times_s)

    @property
    def rest(self) -> int:
        """Known tokens without KV."""
        return self.known - len(self.cached)

    @property
    def peak(self) -> int:
        """Most tokens ever cached: the last output token is not fed."""
        return self.asked.prompt_tokens + self.asked.output_tokens - 1

    @property
    def gaps_s(self) -> list[float]:
        """Times between its tokens."""
        return [later - earlier for earlier, later in zip(self.token_times_s, self.token_times_s[1:], strict=False)]


@dataclass
class Step:
    """One step: who gets how many tokens, and what the house looked like when it was decided."""

    start_s: float
    shares: list[tuple[Guest, int]] = field(default_factory=list)
    preempted: list[Guest] = field(default_factory=list)
    admitted: list[Guest] = field(default_factory=list)
    running: int = 0
    waiting: int = 0
    blocks_used: int = 0
    end_s: float = math.nan
    decode_seqs: int = 0
    context_tokens: int = 0
    prefill_tokens: int = 0
    prefill_seqs: int = 0

    @property
    def spent(self) -> int:
        """Budget that is given away."""
        return sum(new for _, new in self.shares)


class Walk:
    """Plays requests, sorted by arrival, to their end or to the horizon."""

    def __init__(self, asked: list[Asked], house: House) -> None:
        self.house = house
        self.coming = [Guest(one, index) for index, one in enumerate(asked) if one.arrival_s <= house.horizon_s]
        self.guests = list(self.coming)
        self.waiting: list[Guest] = []
        self.running: list[Guest] = []
        self.pool = list(range(house.blocks))
        self.steps: list[Step] = []
        self.circles = 0

    def run(self) -> Walk:
        """Play; `guests` and `steps` hold what happened."""
        now_s = 0.0
        seen: set[object] = set()
        while now_s < self.house.horizon_s:  # the horizon comes before new plans of its instant
            if self._let_in(now_s):
                seen.clear()
            step = self._decide(now_s)
            circle = step is not None and bool(step.preempted) and self._state() in seen
            if step is not None and step.preempted:
                seen.add(self._state())
            if step is not None and step.shares:
                if step.end_s > self.house.horizon_s:
                    break
                self.steps.append(step)
                if self._deliver(step):
                    seen.clear()
                now_s = step.end_s
            if step is None or circle:  # nothing can run until a request arrives
                self.circles += circle
                if not self.coming:
                    return self
                now_s = max(now_s, self.coming[0].asked.arrival_s)
        self._let_in(self.house.horizon_s)
        return self

    # -- arrivals ------------------------------------------------------------------------------------------------

    def _let_in(self, now_s: float) -> bool:
        came = [guest for guest in self.coming if guest.asked.arrival_s <= now_s]
        for guest in came:
            self.coming.remove(guest)
            if self.house.reject and self._blocks_for(self._most(guest)) > self.house.blocks:
                guest.rejected = True
                guest.finish_s = guest.asked.arrival_s
            else:
                self.waiting.append(guest)
        return bool(came)

    def _head(self) -> Guest:
        if self.house.order == "fcfs":
            return self.waiting[0]
        return min(self.waiting, key=lambda guest: (KEYS[self.house.order](guest.asked), guest.index))

    # -- deciding a step -----------------------------------------------------------------------------------------

    def _decide(self, now_s: float) -> Step | None:
        step = Step(now_s)
        if self.house.kind == "separate":
            self._admit(step)
            if not step.admitted:
                self._decodes(step)
        else:
            self._decodes(step)
            self._prefills(step)
            if not step.preempted:
                self._admit(step)
        if not step.shares and not step.preempted:
            return None
        for guest in step.admitted:
            if guest.first_scheduled_s is None:
                guest.first_scheduled_s = now_s
        self._price(step)
        return step

    def _decodes(self, step: Step) -> None:
        for guest in list(self.running):
            if guest in self.running and guest.prefilled and self._make_room(guest, 1, step):
                step.shares.append((guest, 1))

    def _prefills(self, step: Step) -> None:
        for guest in list(self.running):
            if guest not in self.running or guest.prefilled:
                continue
            new = self._share(guest, step)
            if new == 0:
                return
            if self._make_room(guest, new, step):
                step.shares.append((guest, new))

    def _admit(self, step: Step) -> None:
        while self.waiting and len(self.running) < self.house.seats and step.spent < self.house.budget:
            guest = self._head()
            new = self._share(guest, step)
            spare = self.house.watermark_blocks if self.running else 0
            if new == 0 or self._missing(guest, new) + spare > len(self.pool):
                return
            self.waiting.remove(guest)
            self.running.append(guest)
            self._take(guest, new)
            step.admitted.append(guest)
            step.shares.append((guest, new))

    def _share(self, guest: Guest, step: Step) -> int:
        left = self.house.budget - step.spent
        if self.house.kind == "chunked":
            return min(left, guest.rest, self.house.chunk or guest.rest)
        fits = guest.rest <= left or not self.running
        return guest.rest if fits else 0

    # -- blocks --------------------------------------------------------------------------------------------------

    def _blocks_for(self, tokens: int) -> int:
        return math.ceil(tokens / self.house.block_size)

    def _most(self, guest: Guest) -> int:
        return self.house.reserve_tokens or guest.peak

    def _missing(self, guest: Guest, new: int) -> int:
        tokens = self._most(guest) if self.house.contiguous else len(guest.cached) + new
        return max(0, self._blocks_for(tokens) - len(guest.blocks))

    def _take(self, guest: Guest, new: int) -> None:
        for _ in range(self._missing(guest, new)):
            guest.blocks.append(self.pool.pop())

    def _make_room(self, guest: Guest, new: int, step: Step) -> bool:
        """Preempt from the tail of the running until `guest` has its blocks, or has gone itself."""
        while self._missing(guest, new) > len(self.pool):
            victim = self.running.pop()
            step.shares = [(who, n) for who, n in step.shares if who is not victim]
            step.preempted.append(victim)
            self._empty(victim)
            victim.preemptions += 1
            self.waiting.insert(0, victim)
            if victim is guest:
                return False
        self._take(guest, new)
        return True

    def _empty(self, guest: Guest) -> None:
        guest.lost.update(guest.cached)
        self.pool.extend(guest.blocks)
        guest.blocks, guest.cached, guest.prefilled = [], [], False

    # -- running a step ------------------------------------------------------------------------------------------

    def _price(self, step: Step) -> None:
        for who, new in step.shares:
            who.recomputed += len(who.lost.intersection(range(len(who.cached), len(who.cached) + new)))
        decodes = [who for who, new in step.shares if new == 1 and who.token_times_s]
        prompts = [(who, new) for who, new in step.shares if who not in decodes]
        step.decode_seqs = len(decodes)
        step.context_tokens = sum(len(who.cached) + 1 for who in decodes)
        step.prefill_tokens = sum(new for _, new in prompts)
        step.prefill_seqs = len(prompts)
        step.running, step.waiting = len(self.running), len(self.waiting)
        step.blocks_used = self.house.blocks - len(self.pool)
        duration_s = self.house.step_seconds(step.decode_seqs, step.context_tokens, step.prefill_tokens)
        step.end_s = step.start_s + duration_s

    def _deliver(self, step: Step) -> bool:
        made = False
        for guest, new in step.shares:
            guest.cached.extend(range(len(guest.cached), len(guest.cached) + new))
            if guest.rest:
                continue
            made = True
            guest.prefilled = True
            guest.token_times_s.append(step.end_s)
            if len(guest.token_times_s) == guest.asked.output_tokens:
                guest.finish_s = step.end_s
                self.running.remove(guest)
                self.pool.extend(guest.blocks)
                guest.blocks = []
        return made

    def _state(self) -> object:
        running = tuple((guest.index, guest.known, len(guest.cached)) for guest in self.running)
        waiting = [guest.index for guest in self.waiting]
        return running, tuple(waiting if self.house.order == "fcfs" else sorted(waiting))


def rows(steps: list[Step]) -> list[tuple[float, ...]]:
    """Return the steps table: equal decode steps in a row become one row.

    Columns: start_s, duration_s, repeat, last_step_s, decode_seqs, context_tokens, prefill_tokens, prefill_seqs,
    blocks_used, running, waiting, preempted.
    """
    groups: list[list[Step]] = []
    for step in steps:
        if groups and _continues(groups[-1][-1], step):
            groups[-1].append(step)
        else:
            groups.append([step])
    return [
        (
            group[0].start_s,
            group[-1].end_s - group[0].start_s,
            len(group),
            group[-1].end_s - group[-1].start_s,
            group[0].decode_seqs,
            group[0].context_tokens,
            group[0].prefill_tokens,
            group[0].prefill_seqs,
            group[0].blocks_used,
            group[0].running,
            group[0].waiting,
            len(group[0].preempted),
        )
        for group in groups
    ]


def _continues(before: Step, step: Step) -> bool:
    same = (step.decode_seqs, step.running, step.waiting) == (before.decode_seqs, before.running, before.waiting)
    plain = not (before.prefill_tokens or step.prefill_tokens or before.preempted or step.preempted)
    grows = step.context_tokens == before.context_tokens + step.decode_seqs
    return same and plain and grows and step.start_s == before.end_s


def pooled_gaps(guests: list[Guest]) -> Counter[float]:
    """Return every gap between two tokens of one request and how often it occurs."""
    return Counter(gap for guest in guests for gap in guest.gaps_s)
