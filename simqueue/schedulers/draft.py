"""A step being put together."""

from __future__ import annotations

from simqueue.request import Job


class Draft:
    """What has been decided of a step so far.

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
    fed : list of (Job, tokens)
        Who got prompt tokens.
    first : list of Job
        Whose context is complete with this step.
    admitted : list of (Job, cached tokens)
    preempted, left_out : list of Job
    head_may_grow : bool
        Whether the head of the queue (or one passed over) stays out, and may find more of its tokens cached at the
        next step.
    head_overflows : bool
        Whether the head stays out because its prompt must not be cut and is more than the rest of the budget.
    """

    __slots__ = (
        "admitted",
        "budget",
        "decodes",
        "fed",
        "first",
        "head_may_grow",
        "head_overflows",
        "left_out",
        "pieces",
        "preempted",
        "tail_context",
        "tail_decodes",
    )

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.decodes = False
        self.pieces: list[tuple[int, int]] = []
        self.tail_decodes = 0
        self.tail_context = 0
        self.fed: list[tuple[Job, int]] = []
        self.first: list[Job] = []
        self.admitted: list[tuple[Job, int]] = []
        self.preempted: list[Job] = []
        self.left_out: list[Job] = []
        self.head_may_grow = False
        self.head_overflows = False

    def feed(self, job: Job, new: int) -> bool:
        """Give `new` prompt tokens to `job`; return whether its context is complete with them."""
        self.budget -= new
        self.fed.append((job, new))
        if new == 1 and job.known_tokens > job.request.prompt_tokens:
            self.tail_decodes += 1
            self.tail_context += job.computed_tokens + 1
        else:
            self.pieces.append((job.computed_tokens, new))
        job.computed_tokens += new
        if job.computed_tokens < job.known_tokens:
            return False
        self.first.append(job)
        return True
