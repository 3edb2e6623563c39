"""An independent reference for vLLM's V1 scheduler: blocks are objects, tokens are lists, every step asks all requests.

It follows the engine's rules in words: a free queue that is a list of blocks, a prefix cache that is a dictionary from
all tokens up to a block's end to the blocks that hold them, a cursor over the list of running requests. Output tokens
exist when their step has ended; until then they are only counted as being under way. Nothing is folded, and no part of
the package is used. Time is a whole number of ticks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Token = tuple[Any, int]
UNCAPPED = 10**9


@dataclass(frozen=True)
class Asked:
    """One request; `prompt` and `answer` are its tokens. The list they come in says who is first of one instant."""

    name: str
    arrival: int
    prompt: tuple[Token, ...]
    answer: tuple[Token, ...]
    priority: int = 0


@dataclass(frozen=True)
class Engine:
    """Flags and rules of the engine, its pool, and what a step costs: f(decodes, context, prompt tokens) -> ticks."""

    seats: int
    budget: int
    blocks: int
    block_size: int
    cost: Callable[[int, int, int], int]
    priority: bool = False
    chunked: bool = True
    threshold: int = 0
    adaptive: bool = False
    lone_uncapped: bool = True
    overflow_stops: bool = True
    reserve: bool = True
    watermark_blocks: int = 0
    prefix_caching: bool = False
    unhashed_first: bool = True
    depth: int = 1
    max_model_len: int = UNCAPPED


@dataclass(eq=False)
class Block:
    """One block of the pool; `key` is all tokens up to its end once it is registered."""

    users: int = 0
    key: tuple[Token, ...] | None = None


class Pool:
    """Free blocks in a row, front first, and the registered ones by what they hold, oldest first."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.free = [Block() for _ in range(engine.blocks)]
        self.found: dict[tuple[Token, ...], list[Block]] = {}

    def need(self, tokens: int) -> int:
        """Return how many blocks hold `tokens`."""
        return -(-tokens // self.engine.block_size)

    def lookup(self, tokens: list[Token]) -> list[Block]:
        """Return the longest run of registered blocks from the first token; the last token is left to compute."""
        size, run = self.engine.block_size, []
        if self.engine.prefix_caching:
            for end in range(size, len(tokens), size):
                copies = self.found.get(tuple(tokens[:end]))
                if not copies:
                    break
                run.append(copies[0])
        return run

    def hand_out(self, number: int) -> list[Block]:
        """Take blocks from the front; what they held is forgotten."""
        taken = [self.free.pop(0) for _ in range(number)]
        for block in taken:
            if block.key is not None:
                self.found[block.key].remove(block)
                block.key = None
            block.users = 1
        return taken

    def touch(self, blocks: list[Block]) -> None:
        """Use registered blocks once more; unused ones leave the free queue wherever they are."""
        for block in blocks:
            if not block.users:
                self.free.remove(block)
            block.users += 1

    def register(self, blocks: list[Block], tokens: list[Token]) -> None:
        """Make full blocks findable whose tokens are all given."""
        if not self.engine.prefix_caching:
            return
        size = self.engine.block_size
        for number in range(len(tokens) // size):
            if blocks[number].key is None:
                key = blocks[number].key = tuple(tokens[: (number + 1) * size])
                self.found.setdefault(key, []).append(blocks[number])

    def release(self, blocks: list[Block]) -> None:
        """Give up blocks from the last to the first."""
        for block in reversed(blocks):
            block.users -= 1
            if block.users:
                continue
            if block.key is None and self.engine.unhashed_first:
                self.free.insert(0, block)
            else:
                self.free.append(block)


@dataclass(eq=False)
class Guest:
    """One request inside."""

    asked: Asked
    index: int
    tokens: list[Token]
    length: int
    computed: int = 0
    coming: int = 0
    blocks: list[Block] = field(default_factory=list)
    preemptions: int = 0
    hit: int | None = None
    self_hits: int = 0
    lost: set[int] = field(default_factory=set)
    """Places of its context whose KV it held when it was preempted."""
    recomputed: int = 0
    token_times: list[int] = field(default_factory=list)

    @property
    def planned(self) -> int:
        """Tokens that exist or are under way."""
        return len(self.tokens) + self.coming


@dataclass(eq=False)
class Step:
    """One step as it was decided, and when it ran."""

    planned_at: int
    shares: dict[Guest, int] = field(default_factory=dict)
    preempted: list[Guest] = field(default_factory=list)
    admitted: list[tuple[Guest, int]] = field(default_factory=list)
    sampling: list[Guest] = field(default_factory=list)
    finished: list[Guest] = field(default_factory=list)
    free: int = 0
    free_after: int = 0
    running: int = 0
    waiting: int = 0
    start: int = 0
    end: int = 0


class Walk:
    """Plays requests, sorted by arrival; `steps` holds the steps that have ended and ran something."""

    def __init__(self, asked: list[Asked], engine: Engine) -> None:
        self.engine = engine
        self.pool = Pool(engine)
        self.coming: list[Guest] = []
        self.rejected: list[str] = []
        for index, one in enumerate(asked):
            length = min(len(one.prompt) + len(one.answer), engine.max_model_len)
            at_once = not engine.chunked and length - 1 > engine.budget  # the engine does not start with such lengths
            if length <= len(one.prompt) or self.pool.need(length - 1) > engine.blocks or at_once:
                self.rejected.append(one.name)
            else:
                self.coming.append(Guest(one, index, list(one.prompt), length))
        self.guests = list(self.coming)
        self.waiting: list[Guest] = []
        self.running: list[Guest] = []
        self.steps: list[Step] = []

    def run(self, most_steps: int) -> Walk:
        """Run until all requests have left, nothing can run, or this many steps have ended."""
        now, flying, tries = 0, [], 0
        while len(self.steps) < most_steps and tries < most_steps:
            while self.coming and self.coming[0].asked.arrival <= now:
                self.waiting.append(self.coming.pop(0))
            step = self.schedule(now)
            if step.shares:
                self.launch(step, now, flying[-1].end if flying else now)
                flying.append(step)
                if len(flying) < self.engine.depth:
                    continue
            if flying:
                now = max(now, flying[0].end)
                self.deliver(flying.pop(0))
            elif step.preempted:
                tries += 1
            elif self.coming:
                now = self.coming[0].asked.arrival
            else:
                break
        return self

    # -- deciding ------------------------------------------------------------------------------------------------

    def schedule(self, now: int) -> Step:
        """Decide one step: running requests in list order, then waiting ones if no request was preempted."""
        step = Step(now)
        self.cap = self.prompt_cap()
        self.budget = self.engine.budget
        self.serve_running(step)
        if not step.preempted:
            self.admit(step)
        for guest, new in step.shares.items():
            guest.recomputed += len(guest.lost.intersection(range(guest.computed, guest.computed + new)))
            guest.computed += new
            if guest.computed == guest.planned:
                guest.coming += 1
                step.sampling.append(guest)
        step.free, step.running, step.waiting = len(self.pool.free), len(self.running), len(self.waiting)
        return step

    def prompt_cap(self) -> int:
        """Return the most tokens that one request gets in this step."""
        engine, inside = self.engine, len(self.running) + len(self.waiting)
        if not engine.threshold or (engine.lone_uncapped and inside <= 1):
            return UNCAPPED
        return max(engine.threshold, engine.budget // inside) if engine.adaptive else engine.threshold

    def serve_running(self, step: Step) -> None:
        """Walk the list with a cursor that moves back when a request before it is preempted."""
        cursor = 0
        while cursor < len(self.running) and self.budget > 0:
            guest = self.running[cursor]
            if guest.planned == guest.length:  # its last token is under way
                cursor += 1
                continue
            new = min(guest.planned - guest.computed, self.cap, self.budget)
            need = self.pool.need(guest.computed + new) - len(guest.blocks)
            served = True
            while served and need > len(self.pool.free):
                victim = self.victim()
                place = self.running.index(victim)
                del self.running[place]
                cursor -= place < cursor
                self.budget += step.shares.pop(victim, 0)
                self.preempt(victim)
                step.preempted.append(victim)
                served = victim is not guest
            if not served:
                if not self.engine.priority:
                    return
                continue
            self.grow(guest, need, guest.computed + new)
            step.shares[guest] = new
            self.budget -= new
            cursor += 1

    def victim(self) -> Guest:
        """Return the latest admitted, or the least urgent: of equals the first in the list."""
        if not self.engine.priority:
            return self.running[-1]
        return max(self.running, key=lambda guest: (guest.asked.priority, guest.asked.arrival))

    def preempt(self, guest: Guest) -> None:
        """Take all blocks; tokens stay. It waits in front of all others (or where its urgency puts it)."""
        self.pool.release(guest.blocks)
        guest.lost.update(range(guest.computed))
        guest.blocks, guest.computed = [], 0
        guest.preemptions += 1
        self.waiting.insert(0, guest)

    def head(self) -> Guest:
        """Return who is next."""
        if not self.engine.priority:
            return self.waiting[0]
        return min(self.waiting, key=lambda guest: (guest.asked.priority, guest.asked.arrival, guest.asked.name))

    def admit(self, step: Step) -> None:
        """Seat waiting requests until one does not fit."""
        engine, passed_over = self.engine, []
        while self.waiting and len(self.running) < engine.seats and self.budget > 0:
            guest = self.head()
            hits = self.pool.lookup(guest.tokens)
            hit = len(hits) * engine.block_size
            new = min(len(guest.tokens) - hit, self.cap)
            if not engine.chunked and new > self.budget:
                if engine.overflow_stops:
                    break
                self.waiting.remove(guest)
                passed_over.append(guest)
                continue
            new = min(new, self.budget)
            if not self.fits(guest, hits, hit + new):
                break
            self.waiting.remove(guest)
            self.running.append(guest)
            self.pool.touch(hits)
            guest.blocks, guest.computed = list(hits), hit
            self.grow(guest, self.pool.need(hit + new) - len(hits), hit + new)
            self.note_hit(guest, hit)
            step.admitted.append((guest, hit))
            step.shares[guest] = new
            self.budget -= new
        for guest in passed_over:
            self.waiting.insert(0, guest)

    def fits(self, guest: Guest, hits: list[Block], tokens: int) -> bool:
        """Return whether the blocks are there; unused hits leave the free queue too."""
        idle = sum(not block.users for block in hits)
        spare = self.engine.watermark_blocks if self.running else 0
        totals = [tokens, len(guest.tokens)] if self.engine.reserve else [tokens]
        return all(self.pool.need(total) - len(hits) + idle + spare <= len(self.pool.free) for total in totals)

    def grow(self, guest: Guest, need: int, tokens: int) -> None:
        """Hand out blocks and register the full ones whose tokens are known."""
        guest.blocks += self.pool.hand_out(need)
        self.pool.register(guest.blocks, guest.tokens[:tokens])

    def note_hit(self, guest: Guest, hit: int) -> None:
        """Keep statistics once a request; what it finds when it comes back counts apart."""
        if guest.hit is None:
            guest.hit = hit
        else:
            guest.self_hits += hit

    # -- running -------------------------------------------------------------------------------------------------

    def launch(self, step: Step, now: int, free_at: int) -> None:
        """Price the step and let it run after those before it."""
        answering = [
            guest for guest in step.shares if guest.planned - (guest in step.sampling) > len(guest.asked.prompt)
        ]
        decodes = [guest for guest in answering if step.shares[guest] == 1]
        context = sum(guest.computed for guest in decodes)
        prompts = sum(new for guest, new in step.shares.items() if guest not in decodes)
        step.start = max(now, free_at)
        step.end = step.start + self.engine.cost(len(decodes), context, prompts)

    def deliver(self, step: Step) -> None:
        """End the step: tokens are made, requests with all of them leave."""
        for guest in step.sampling:
            guest.coming -= 1
            guest.tokens.append(guest.asked.answer[len(guest.tokens) - len(guest.asked.prompt)])
            guest.token_times.append(step.end)
            seated = guest in self.running
            if seated and self.engine.depth > 1:
                self.pool.register(guest.blocks, guest.tokens[: guest.computed - guest.coming])
            if len(guest.tokens) == guest.length:
                step.finished.append(guest)
                (self.running if seated else self.waiting).remove(guest)
                self.pool.release(guest.blocks)
        step.free_after = len(self.pool.free)
        self.steps.append(step)
