"""A step being put together: a plan whose sums are still open."""

from __future__ import annotations

from simqueue.request import Job
from simqueue.schedulers.base import Plan


class Draft(Plan):
    """What has been decided of a step so far. Sealed, it is the plan; so nothing is copied from one to the other.

    Attributes
    ----------
    budget : int
        Tokens that may still be given.
    decodes : bool
        Whether the decoding requests get their token in this step.
    pieces : list of (past, new)
        Prompt pieces, as in `Batch.prefill`.
    tail_decodes, tail_context : int
        Recomputed contexts of which only the last token is left (they count as decodes), and what they attend to.
    fed : list of (Job, tokens) or None
        Who got prompt tokens, if anybody observes.
    head_may_grow : bool
        Whether the head of the queue (or one passed over) stays out, and may find more of its tokens cached at the
        next step.
    head_overflows : bool
        Whether the head stays out because its prompt must not be cut and is more than the rest of the budget.
    """

    __slots__ = (
        "budget",
        "decodes",
        "fed",
        "head_may_grow",
        "head_overflows",
        "pieces",
        "tail_context",
        "tail_decodes",
    )

    def __init__(self, budget: int, observed: bool = False) -> None:  # the sums are set when it is sealed
        self.budget = budget
        self.decodes = False
        self.pieces: list[tuple[int, int]] = []
        self.tail_decodes = 0
        self.tail_context = 0
        self.fed: list[tuple[Job, int]] | None = [] if observed else None
        self.head_may_grow = False
        self.head_overflows = False
        self.repeat = 1
        self.admitted = []
        self.preempted = []
        self.first = []
        self.left_out = []
        self.members = ()

    def feed(self, job: Job, new: int) -> bool:
        """Give `new` prompt tokens to `job`; return whether its context is complete with them."""
        self.budget -= new
        past = job.computed_tokens
        job.computed_tokens = known = past + new
        if new == 1 and job.known_tokens > job.request.prompt_tokens:
            self.tail_decodes += 1
            self.tail_context += known
        else:
            self.pieces.append((past, new))
        if self.fed is not None:
            self.fed.append((job, new))
        if known < job.known_tokens:
            return False
        self.first.append(job)
        return True
