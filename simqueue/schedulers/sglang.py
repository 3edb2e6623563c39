"""The scheduler of SGLang: prefills first and alone, a reserve for what running requests may make, and retraction.

In every turn the requests of the last prefill join the decode batch. Then a prefill is tried (`sglang_prefill`): if one
request is admitted, the step computes contexts only, and the batch waits, or with mixed chunks decodes in it too.
Otherwise the batch makes one token each (`sglang_decode`). A turn is in `sglang_turns`; here is what happens between
turns. `SglangRules` holds what differs between versions and is no flag; which version has which rules and defaults is
data of `simqueue.engines`.

With overlap a turn is decided while a step runs. What it makes is not known then: a request whose last token is under
way runs once more, and what is generated lags by one. So tokens count when a step is delivered, and pages when it is
planned.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from simqueue.errors import RunError
from simqueue.kvcache.base import KVCache
from simqueue.request import Job, Request
from simqueue.schedulers.base import Later, Plan
from simqueue.schedulers.keys import SglangSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.sglang_entry import Entry
from simqueue.schedulers.sglang_flight import Flight
from simqueue.schedulers.sglang_lengths import SglangLengths
from simqueue.schedulers.sglang_rules import SglangRules
from simqueue.schedulers.sglang_turns import SglangTurns

IDLE_TURNS = 3
"""Turns in a row without a batch after which the scheduler waits for an arrival."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Sglang(SglangTurns):
    """SGLang.

    Parameters
    ----------
    flags : SglangSettings
    kv : RadixKVCache
    limits : RequestLimits
        Its ``max_model_len`` is the engine's context_length.
    rules : SglangRules

    Attributes
    ----------
    idle_s : float or None
        Time between two turns if nothing can run; None: they take no time.
    stop_stream : optional
        Stream of the token that ends an answer before its limit; None: that of the answer.
    """

    Settings: ClassVar[type[SglangSettings]] = SglangSettings
    summary: ClassVar[str] = "SGLang: prefills first and alone, then one token for every request of the batch"
    steady_rules: ClassVar[tuple[str, ...]] = ("*",)

    def __init__(
        self, flags: SglangSettings, kv: KVCache, limits: RequestLimits, rules: SglangRules | None = None
    ) -> None:
        super().__init__(flags, kv, rules or SglangRules())
        self.lengths = SglangLengths(self.pool, limits, self.rules)
        self.most_requests = self.lengths.most_requests(flags.max_running_requests)
        self.idle_s: float | None = None
        self.stop_stream: Any = None
        self._entries: dict[Job, Entry] = {}
        self._idle_turns = 0
        self._next_turn_s = 0.0
        self._cut_prompts = 0

    # -- questions -----------------------------------------------------------------------------------------------

    @property
    def waiting_count(self) -> int:
        """Requests in the queue now."""
        return len(self.waiting)

    @property
    def running_count(self) -> int:
        """Requests that hold tokens of the pool now."""
        return len(self.inside)

    @property
    def free_seats(self) -> int:
        """Requests that could run besides those that do."""
        return max(0, self.most_requests - len(self.inside))

    def rejection(self, request: Request) -> str | None:
        """Return why `request` can never be served, or None."""
        return self.lengths.rejection(request)

    def due_tokens(self, request: Request) -> int:
        """Return how many tokens are made for `request`."""
        return self.lengths.due_tokens(request)

    def remarks(self) -> Sequence[str]:
        """Return how many prompts were cut."""
        if not self._cut_prompts:
            return ()
        return (f"{self._cut_prompts} prompts were too long, and this version of sglang cut them",)

    # -- arrivals and departures ---------------------------------------------------------------------------------

    def add(self, job: Job) -> bool:
        """Queue `job`. It changes nothing while the batch is full: a request has to leave first."""
        request = job.request
        job.output_tokens = self.due_tokens(request)
        prompt = self.lengths.prompt_tokens(request)
        self._cut_prompts += prompt < request.prompt_tokens
        max_new = self.lengths.max_new_tokens(request)
        stops = request.output_tokens < request.most_output_tokens
        holding = self.pool.holding(job, prompt, self.stop_stream if stops else None)
        self._entries[job] = entry = Entry(job, holding, max_new, job.output_tokens, request.ignores_eos)
        self.queue(entry)
        if self.order.name == "hrrn":  # its age begins with the next turn
            self._arrived.append(entry)
            return True
        return not self.full or self.flags.enable_priority_scheduling

    def cancel(self, job: Job, uncommitted: Sequence[Plan]) -> list[Job]:
        """Stop counting `job`; see `Policy.cancel`."""
        entry = self._entries[job]
        if job not in self.inside:
            if len(uncommitted) > 1 and job in uncommitted[-1].preempted:
                if job not in uncommitted[0].finishing:
                    uncommitted[0].finishing.append(job)
                return []
            self.waiting.remove(entry)
        elif uncommitted:
            self._split_off(uncommitted)
            uncommitted[0].finishing.append(job)
            return []
        else:
            self._end(entry)
        del self._entries[job]
        return [job]

    def _split_off(self, uncommitted: Sequence[Plan]) -> None:
        """Make the last step of a repeated plan a flight of its own, if the simulation made it a plan of its own."""
        flight = self.flights[0]
        if len(uncommitted) > 1 and len(self.flights) == 1:
            flight.steps -= 1
            self.flights.append(Flight(uncommitted[1], [], flight.batch, None))

    # -- steps ---------------------------------------------------------------------------------------------------

    def plan(self, now_s: float) -> Plan | Later | None:
        """Decide the next step. A turn without a batch can change what the next turn finds."""
        if self.idle_s is not None and now_s < self._next_turn_s:
            return Later(self._next_turn_s)
        while True:
            before = self.full, self.ratio.value, self._deferred, len(self.running)
            plan = self.turn()
            if plan is not None or self.flights:
                self._idle_turns = 0
                for job, _ in () if plan is None else plan.failed:
                    del self._entries[job]
                return plan
            waits = bool(self.waiting or len(self.running) or self.chunked is not None)
            if waits and self.observed:
                self.log.note(self, None, None)
            if self.rules.ratio_resets == "no_batch" or not waits:
                self.ratio.reset()
            if not waits:
                return None
            if self.idle_s is not None:
                return self._idle(now_s, self.idle_s)
            if before == (self.full, self.ratio.value, self._deferred, len(self.running)):
                return None

    def _idle(self, now_s: float, idle_s: float) -> Later | None:
        """Return when the next one is, or None after several of them."""
        self._next_turn_s = now_s + idle_s
        self._idle_turns += 1
        if self._idle_turns < IDLE_TURNS:
            return Later(self._next_turn_s)
        self._idle_turns = 0
        return None

    def take(self, plan: Plan, n: int) -> None:
        """Take the pages of `n` more repeats, and deliver the steps before the last of them."""
        flight = self.flights[-1]
        batch = flight.batch
        if not n or batch is None:
            return
        self.memory.take_more(batch, n)
        if flight.plan is not plan:  # the last step of a repeated plan, made a plan of its own
            self.flights.append(Flight(plan, [], batch, None))
            n_delivered = n - 1
        else:
            n_delivered = n
        self.ratio.decay(n)
        self._prefilled += n * batch.leftover
        self._deferred = max(0, self._deferred - n)
        if n_delivered and batch.deliver(n_delivered):
            raise RunError(f"{type(self).__name__}: a plan repeats beyond the last token of a request")

    def commit(self, plan: Plan) -> None:
        """Deliver the last step of `plan`: its tokens count, and requests that are complete leave."""
        flight = self.flights.pop(0)
        if flight.plan is not plan:
            raise RunError(f"{type(self).__name__}: plans are committed in another order than they were made")
        if flight.late_tokens:
            self.pool.give_tokens(flight.late_tokens)
        for job in plan.finishing:
            self._let_go(self._entries[job])
        ended = flight.batch.deliver(flight.steps) if flight.batch is not None and flight.steps else []
        for entry in flight.parting:
            entry.generated += 1
        done = self._deliver_contexts(flight, ended)
        others = [entry for entry in [*ended, *flight.parting] if entry not in done and not entry.finished]
        for entry in sorted(others, key=lambda entry: entry.rank) if flight.parting else others:
            self._finish(entry, plan)

    def _deliver_contexts(self, flight: Flight, ended: Sequence[Entry]) -> dict[Entry, None]:
        """Deliver the tokens of complete contexts, which are put into the tree; return their requests."""
        done: dict[Entry, None] = {}
        for piece in flight.pieces:
            entry = piece.entry
            if not piece.last or entry.finished or entry in flight.void:
                continue
            done[entry] = None
            if flight.batch is None and entry not in flight.parting:
                if entry.batch is not None:
                    entry.batch.first_token(entry)
                else:
                    entry.generated += 1
            if entry.made >= entry.target:
                self._finish(entry, flight.plan)
            else:
                self.put(entry, piece.past + piece.new)
        return done

    def _finish(self, entry: Entry, plan: Plan) -> None:
        """Let a request leave with all its tokens."""
        job = entry.job
        self._end(entry)
        del self._entries[job]
        plan.ended.append(job)
        plan.finishing.append(job)

    def _let_go(self, entry: Entry) -> None:
        """Let a request leave whose client has gone."""
        if entry.job in self.inside:
            self._end(entry)
        else:  # preempted by the plan after this one
            self.waiting.remove(entry)
        del self._entries[entry.job]

    def _end(self, entry: Entry) -> None:
        """Take a request out, and keep in the tree what the version keeps of it."""
        batch, holding, later = entry.batch, entry.holding, None
        for flight in self.flights:
            if flight.computes(entry):
                if entry.job in flight.plan.first:
                    flight.plan.first.remove(entry.job)
            elif batch is not None and flight.batch is batch:
                flight.plan.ticking -= 1
                later = flight
        if batch is not None:
            batch.finish(entry)
        entry.finished = True
        if entry is self.chunked:
            self.chunked = None
        known = entry.prompt + entry.generated
        if self.rules.puts == "known":
            late = max(0, holding.length - (known - 1)) if later is not None else 0
            if later is not None:
                later.late_tokens += late
                holding.length -= late
            kept = known - 1
        else:
            kept = entry.fill if self.rules.puts == "prefilled" else known
        self.pool.finish(holding, min(kept, holding.length), entry.job.request.priority)
        del self.inside[entry.job]

    # -- checks --------------------------------------------------------------------------------------------------

    def state(self) -> Hashable:
        """Return what decides all further plans, if no request arrives and no token is made."""
        running = tuple([self.state_of(entry) for entry in self.inside.values()])
        waiting = tuple([entry.job.index for entry in self.waiting])
        return running, waiting, self.full, self.ratio.value, self.pool.available, self.pool.tree.tokens

    def members(self) -> list[Job]:
        """Return the requests that hold tokens of the pool, in order of admission."""
        return list(self.inside)

    def check(self) -> None:
        """Compare the counters with sums over all requests."""
        late = sum([flight.late_tokens for flight in self.flights])
        held = [(entry.holding, entry.kv_tokens) for entry in self.inside.values()]
        self.pool.check_holdings(held, late)
        self.running.check()
        if len(self.running) > self.most_requests:
            raise RunError(f"{len(self.running)} requests run, at most {self.most_requests} can")
