"""One turn of SGLang's scheduler: the last prefill joins the batch, then a prefill is tried, or the batch decodes."""

from __future__ import annotations

from typing import Any

from mypy_extensions import mypyc_attr

from simqueue.errors import InputError, RunError
from simqueue.kvcache.base import KVCache
from simqueue.kvcache.radix import RadixKVCache
from simqueue.request import Job
from simqueue.schedulers.base import Plan, Policy
from simqueue.schedulers.keys import SglangSettings
from simqueue.schedulers.sglang_batch import DecodeBatch
from simqueue.schedulers.sglang_budget import Budget
from simqueue.schedulers.sglang_decode import DecodeMemory, Ratio
from simqueue.schedulers.sglang_entry import NEVER, Entry
from simqueue.schedulers.sglang_flight import Flight, TurnLog
from simqueue.schedulers.sglang_order import Order
from simqueue.schedulers.sglang_prefill import Attempt, Piece
from simqueue.schedulers.sglang_rules import SglangRules
from simqueue.steptime.base import Batch


@mypyc_attr(allow_interpreted_subclasses=True)
class SglangTurns(Policy):
    """The state of the scheduler, and what it decides in a turn.

    Parameters
    ----------
    flags : SglangSettings
    kv : RadixKVCache
    rules : SglangRules

    Attributes
    ----------
    waiting : list of Entry
    running : DecodeBatch
    most_requests : int
        Requests that can run.
    chunked : Entry or None
        The request whose context is computed in part.
    full : bool
        The engine's batch_is_full: no prefill is tried until a request leaves.
    ratio : Ratio
    flights : list of Flight
        Steps under way.
    inside : dict of Job to Entry
        Requests that hold tokens of the pool, in order of admission.
    log : TurnLog
        Filled in if the policy is observed.
    """

    def __init__(self, flags: SglangSettings, kv: KVCache, rules: SglangRules) -> None:
        if not isinstance(kv, RadixKVCache):
            raise InputError("sglang: needs the KV cache of the engine, a radix tree")
        self.flags = flags
        self.kv = self.pool = kv
        self.rules = rules
        self.depth = 1 if flags.disable_overlap_schedule else 2
        self.order = Order(flags, rules, kv)
        self.memory = DecodeMemory(kv, rules, self.order, overlaps=self.depth > 1)
        self.most_requests = flags.max_running_requests or NEVER
        self.ratio = Ratio(flags.schedule_conservativeness)
        self.waiting: list[Entry] = []
        self.running = DecodeBatch(kv.block_size)
        self.chunked: Entry | None = None
        self.full = False
        self.flights: list[Flight] = []
        self.inside: dict[Job, Entry] = {}
        self.log = TurnLog()
        self._last: Flight | None = None
        """The prefill of the turn before, whose requests have not joined the batch."""
        self._lost: list[tuple[Job, str]] = []
        self._arrived: list[Entry] = []
        """Requests that have been queued since the last turn."""
        self._prefilled = 0
        self._queued = 0
        self._deferred = 0
        """Turns for which no prefill is tried."""

    def queue(self, entry: Entry) -> None:
        """Let a request wait, behind all others."""
        self._queued += 1
        entry.entered = self._queued
        entry.aged = self._prefilled
        self.waiting.append(entry)

    def turn(self) -> Plan | None:
        """Decide one step; None: no batch."""
        self.log.begin()
        for entry in self._arrived:
            entry.aged = self._prefilled
        self._arrived.clear()
        self._join()
        if self.rules.filters_first and self.running.filter():
            self.full = False
        plan = None
        if self._deferred:
            self._deferred -= 1
        else:
            plan = self._prefill()
        if plan is None:
            plan = self._decode()
        if plan is None and (self._lost or self.log.preempted):
            plan = self._plan_of([], None, 0)
        if plan is not None:
            plan.failed.extend(self._lost)
            self._lost = []
        return plan

    # -- the last prefill ----------------------------------------------------------------------------------------

    def _join(self) -> None:
        """Put the last chunk into the tree, and let the requests of the last prefill join the batch."""
        last, self._last = self._last, None
        chunked, old = self.chunked, self.rules.merges_finished
        if chunked is not None and (last is not None or not old):
            if chunked.holding.length > chunked.stored or self.rules.gate != "page":
                self.put(chunked, chunked.holding.length)
            self.full = self.full and not old
        if last is None:
            return
        keeps_finished = old and chunked is None
        if last.batch is not None:
            self._join_mixed(last.batch, last, keeps_finished=keeps_finished)
            return
        joining = [piece.entry for piece in last.pieces if piece.last and (keeps_finished or not piece.entry.finished)]
        if not old and len(joining) < len(last.pieces):
            self.full = False
        if joining and not len(self.running):
            self.running.leftover = last.prefill_tokens
            self.full = self.full and old
        for entry in joining:
            self.running.append(entry)

    def _join_mixed(self, batch: DecodeBatch, last: Flight, *, keeps_finished: bool) -> None:
        """Let a mixed batch become the running one, which is empty."""
        fewer = not keeps_finished and batch.filter()
        if len(batch):
            self.running = batch
        if not self.rules.merges_finished and (fewer or last.cut is not None or len(batch)):
            self.full = False

    def put(self, entry: Entry, length: int) -> None:
        """Put the first tokens of a running request into the tree."""
        entry.stored = length
        self.pool.put(entry.holding, length, entry.job.request.priority)

    # -- prefill -------------------------------------------------------------------------------------------------

    def _prefill(self) -> Plan | None:
        """Try a prefill."""
        preempts = self.flags.enable_priority_scheduling
        if preempts or (self.rules.empty_opens and not len(self.running)):
            self.full = False
        if (self.full or not self.waiting) and self.chunked is None:
            return None
        if self._rows(0) <= 0 and (self.rules.gate == "whole" or not (self.chunked or preempts)):
            self.full = True
            return None
        looked_up = not self.rules.matches_all and self.order.matched(self.waiting)
        self.order.sort(self.waiting, self.running, self._prefilled)
        attempt = self._attempt()
        if self.chunked is not None:
            attempt.go_on_with(self.chunked)
        attempt.scan(self.waiting, looked_up=looked_up)
        self.full = attempt.full
        if self.log.budget is not None:
            self.log.budget += attempt.left()
        if not attempt.pieces:
            self._take_back(attempt.preempted)
            return None
        del self.waiting[: sum([piece.is_new for piece in attempt.pieces])]
        for entry in attempt.preempted:
            self.queue(entry)
        self.chunked = attempt.cut
        return self._launch(attempt.pieces, attempt.cut)

    def _rows(self, held: int = 1) -> int:
        """Return how many requests can run besides those that do; `held`: whether a chunked one counts as new."""
        most = self.most_requests
        room = most - len(self.running)
        if self.rules.rows == "batch":
            return room
        again = self.rules.rows == "held" and self.chunked is not None
        return min(room, most - len(self.inside) + (held if again else 0))

    def _attempt(self) -> Attempt:
        flags, running = self.flags, self.running
        chunk = None if flags.chunked_prefill_size < 0 else flags.chunked_prefill_size
        mixed = len(running) if flags.enable_mixed_chunk else 0
        budget = Budget(self.pool, running, self.ratio.value, self.rules, flags.max_prefill_tokens, chunk, mixed)
        if self.observed:
            budget.make_exact()
            self.log.budget = [budget.total()]
        attempt = Attempt(
            self.pool, running, self.rules, flags, self.order, budget, self.ratio.value, self._rows, self._push_out
        )
        attempt.full = self.full
        return attempt

    def _take_back(self, preempted: list[Entry]) -> None:
        """Queue requests again that were preempted in vain; some versions lose them."""
        for entry in preempted:
            if self.rules.requeues_preempted:
                self.queue(entry)
            else:
                self._lost.append((entry.job, "lost by the engine: preempted for a request that was not admitted then"))

    def _launch(self, pieces: list[Piece], cut: Entry | None) -> Plan:
        """Take the memory of a prefill, and of the decodes that share its step."""
        self._take_contexts(pieces)
        batch = self._mixed() if self.flags.enable_mixed_chunk and len(self.running) else None
        decodes = 0 if batch is None else batch.live
        plan = self._plan_of(pieces, batch, 0 if batch is None else batch.context_tokens)
        flight = Flight(plan, pieces, batch, cut)
        if batch is not None:
            batch.leftover = flight.prefill_tokens
            under_way = sum([other.steps for other in self.flights if other.batch is batch])
            batch.put_first([piece.entry for piece in pieces if piece.last], under_way)
            self.running = DecodeBatch(self.pool.block_size)
        self._prefilled += sum([piece.new for piece in pieces]) + decodes
        self._deferred = self.flags.prefill_decode_interval
        self._last = flight
        self.flights.append(flight)
        if self.observed:
            self.log.note(self, plan, flight)
        return plan

    def _take_contexts(self, pieces: list[Piece]) -> None:
        page = self.pool.block_size
        tokens = sum([piece.new for piece in pieces])
        self.pool.make_room(tokens if page == 1 else tokens + page * len(pieces))
        for piece in pieces:
            entry = piece.entry
            pages = self.pool.blocks_for(entry.holding.length + piece.new) - self.pool.blocks_for(entry.holding.length)
            if pages * page > self.pool.available:
                raise RunError(
                    f"sglang: a prefill finds {self.pool.available} free tokens for {piece.new} of request "
                    f"'{entry.job.request.request_id}'; this version of the engine runs out of memory here, and stops"
                )
            self.inside[entry.job] = entry
            self.pool.lengthen(entry.holding, piece.new)
            lost = entry.job.lost_tokens
            if piece.past < lost:
                entry.job.recomputed_tokens += min(piece.past + piece.new, lost) - piece.past

    def _mixed(self) -> DecodeBatch | None:
        """Let the batch decode in the step of a prefill, if it can; return it."""
        batch = self.running
        batch.filter()
        if self.rules.skips_finishing and self._leave_out(batch):
            self.full = False
        if not len(batch) or (self.rules.mixes_if_fits and not self.memory.fits(batch)):
            return None
        self.memory.take(batch)
        batch.mixed_at = batch.delivered
        return batch

    def _push_out(self, entry: Entry, stay: int) -> None:
        """Let a running request give up its place for a more urgent one."""
        self._release(entry, stay)
        self.log.preempted.append(entry.job)

    # -- decode --------------------------------------------------------------------------------------------------

    def _decode(self) -> Plan | None:
        """Let the batch make one token each."""
        batch = self.running
        before = len(batch)
        if not before:
            return None
        batch.filter()
        left_out = self.rules.skips_finishing and self._leave_out(batch)
        fits = bool(len(batch)) and self.memory.fits(batch)
        if not len(batch) or (left_out and not fits):
            self.full = False
            return None
        if fits:
            self.ratio.decay(1)
        else:
            self._retract(batch)
        if len(batch) < before:
            self.full = False
        self.memory.take(batch)
        self._prefilled += batch.leftover
        plan = self._plan_of([], batch, batch.context_tokens)
        plan.repeat = self._repeats(batch)
        flight = Flight(plan, [], batch, None)
        self.flights.append(flight)
        if self.observed:
            self.log.note(self, plan, flight)
        return plan

    def _leave_out(self, batch: DecodeBatch) -> bool:
        """Take the requests out whose last token, by their limit, is under way; return whether there are any."""
        if not self.flights:
            return False
        flight = self.flights[-1]
        if flight.batch is batch:
            ending = [entry for entry in batch.ending(batch.delivered + flight.steps) if entry.target == entry.max_new]
        elif flight.batch is None:
            ran = [piece.entry for piece in flight.pieces if piece.last and piece.entry.batch is batch]
            ending = [entry for entry in ran if not entry.finished and entry.made + 1 >= entry.max_new]
        else:
            return False
        for entry in ending:
            batch.remove(entry)
            flight.parting.append(entry)
        return bool(ending)

    def _retract(self, batch: DecodeBatch) -> None:
        """Retract requests until the others can decode."""
        victims = self.memory.retract(batch, self._release, by_priority=self.flags.retraction_policy == "priority")
        for entry in victims:
            self.queue(entry)
            self.log.retracted.append(entry.job)
        self.ratio.after_retraction(list(batch), plus_one=self.rules.ratio_plus_one)

    def _release(self, entry: Entry, stay: int) -> None:
        """Take a request out of the batch; its tokens are given back, and computed again when it returns."""
        for flight in self.flights:
            flight.drop(entry)
        batch, job = entry.batch, entry.job
        if batch is not None:
            seen = entry.prompt + entry.base + batch.seen
            batch.remove(entry)
            entry.wanted = max(entry.fill, seen) if self.rules.gate == "page" else 0
        job.lost_tokens = max(job.lost_tokens, entry.holding.length)
        job.preemptions += 1
        self.pool.drop(entry.holding)
        entry.stored = 0
        del self.inside[job]
        self.pool.make_room_of_victim(20 * stay)

    def _repeats(self, batch: DecodeBatch) -> int:
        """Return in how many steps in a row the batch decodes and nothing else can happen, the planned one included."""
        if self.log.retracted or self.log.preempted or self._lost or self.chunked is not None:
            return 1
        if self.waiting and (not self.full or self.flags.enable_priority_scheduling or self._deferred):
            return 1
        if any(not flight.is_steady(batch) for flight in self.flights):
            return 1
        under_way = sum([flight.steps for flight in self.flights])
        next_end = batch.next_end
        limit = (0 if next_end == NEVER else next_end) - batch.delivered - under_way
        return 1 + self.memory.more_steps(batch, limit - 1) if limit > 1 else 1

    # -- plans ---------------------------------------------------------------------------------------------------

    def _plan_of(self, pieces: list[Piece], batch: DecodeBatch | None, context_tokens: int) -> Plan:
        """Return the plan of a step; its memory has been taken."""
        decodes = 0 if batch is None else batch.live
        first = [piece.entry.job for piece in pieces if piece.last]
        work = Batch(decodes, decodes, context_tokens, tuple([(p.past, p.new) for p in pieces]), decodes + len(first))
        plan = Plan(work, 1, decodes, len(self.inside), len(self.waiting), work, self.pool.total - self.pool.free)
        plan.first = first
        plan.preempted = [*self.log.retracted, *self.log.preempted]
        for piece in pieces:
            if piece.is_new:
                plan.admitted.append((piece.entry.job, piece.past))
                self._count_hit(piece)
        return plan

    def _count_hit(self, piece: Piece) -> None:
        if piece.entry.job.preemptions:
            self.pool.self_hit_tokens += piece.past
        else:
            self.pool.queried_tokens += piece.past + piece.new if piece.last else piece.entry.known
            self.pool.hit_tokens += piece.past

    def state_of(self, entry: Entry) -> tuple[Any, ...]:
        """Return what decides about a request from here on."""
        return entry.job.index, entry.made, entry.kv_tokens
