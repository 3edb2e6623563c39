"""A step of SGLang that is under way, and what the scheduler looked like when it was decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simqueue.request import Job
from simqueue.schedulers.base import Plan
from simqueue.schedulers.sglang_batch import DecodeBatch
from simqueue.schedulers.sglang_entry import Entry

if TYPE_CHECKING:
    from simqueue.schedulers.sglang_prefill import Piece
    from simqueue.schedulers.sglang_turns import SglangTurns


class Flight:
    """A plan that has not been committed.

    Attributes
    ----------
    plan : Plan
    pieces : list of Piece
        What is computed of contexts.
    batch : DecodeBatch or None
        The requests that decode; None: none. If there are `pieces` too (a mixed step), it holds their requests as well.
    steps : int
        Steps taken and not delivered.
    cut : Entry or None
        The request of `pieces` whose context is not complete.
    parting : list of Entry
        Requests that were left out of the next step, since this one gives them their last token.
    void : dict of Entry to None
        Requests of `pieces` that were retracted since: their tokens are dropped.
    late_tokens : int
        Tokens of requests that had finished before this step; given back when it is delivered.
    """

    def __init__(self, plan: Plan, pieces: list[Piece], batch: DecodeBatch | None, cut: Entry | None) -> None:
        self.plan = plan
        self.pieces = pieces
        self.batch = batch
        self.steps = 1
        self.cut = cut
        self.parting: list[Entry] = []
        self.void: dict[Entry, None] = {}
        self.late_tokens = 0

    @property
    def prefill_tokens(self) -> int:
        """Tokens of the step as the engine counts a prefill: a decode in a mixed step is one."""
        return sum([piece.new for piece in self.pieces]) + self.plan.batch.decode_seqs

    def is_steady(self, batch: DecodeBatch) -> bool:
        """Return whether the step only decodes this batch, and no request leaves with it but by its last token."""
        return self.batch is batch and not (self.pieces or self.parting or self.plan.finishing)

    def computes(self, entry: Entry) -> bool:
        """Return whether a part of the context of a request is computed in the step."""
        return any(piece.entry is entry for piece in self.pieces)

    def drop(self, entry: Entry) -> None:
        """Drop the token of a request that is retracted while the step runs."""
        if self.computes(entry):
            self.void[entry] = None
            if entry.job in self.plan.first:
                self.plan.first.remove(entry.job)
        elif self.batch is not None and entry.batch is self.batch:
            self.plan.dropped.append(entry.job)
            self.plan.ticking -= 1


class TurnLog:
    """What the scheduler decides in a turn.

    Attributes
    ----------
    retracted, preempted : list of Job
        In this turn, in order.
    budget : list or None
        Budgets of the attempt at a prefill, if there was one.
    turns : list of dict
        All turns with a batch, or in which the scheduler was idle; kept only for conformance.
    """

    def __init__(self) -> None:
        self.turns: list[dict[str, Any]] = []
        self.budget: list[float | int | None] | None = None
        self.retracted: list[Job] = []
        self.preempted: list[Job] = []

    def begin(self) -> None:
        """Begin a turn."""
        self.budget = None
        self.retracted, self.preempted = [], []

    def note(self, scheduler: SglangTurns, plan: Plan | None, flight: Flight | None) -> None:
        """Note what was decided."""
        pieces = [] if flight is None else flight.pieces
        batch = None if flight is None else flight.batch
        fed = {_name(piece.entry): piece.new for piece in pieces}
        decoding = [] if batch is None else [_name(entry) for entry in batch if _name(entry) not in fed]
        mixed = bool(pieces) and batch is not None
        cut = scheduler.chunked
        self.turns.append(
            {
                "plan": plan,
                "kind": "mixed" if mixed else "prefill" if pieces else "idle" if batch is None else "decode",
                "scheduled": fed | dict.fromkeys(decoding, 1),
                "prefix": {_name(piece.entry): piece.past for piece in pieces if piece.past},
                "decoding": decoding if mixed else [],
                "running": [] if not pieces and batch is not None else [_name(entry) for entry in scheduler.running],
                "waiting": [_name(entry) for entry in scheduler.waiting],
                "retracted": [job.request.request_id for job in self.retracted],
                "preempted": [job.request.request_id for job in self.preempted],
                "chunked": None if cut is None else _name(cut),
                "full": scheduler.full,
                "ratio": scheduler.ratio.value,
                "available": scheduler.pool.available,
                "evictable": scheduler.pool.tree.evictable,
                "budget": self.budget,
            }
        )


def _name(entry: Entry) -> str:
    return entry.job.request.request_id
