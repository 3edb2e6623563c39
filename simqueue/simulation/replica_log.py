"""What happened at one replica: its steps, its tokens and its admissions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simqueue.errors import RunError
from simqueue.request import Job, Status
from simqueue.schedulers.base import Plan
from simqueue.simulation.columns import Sink
from simqueue.simulation.inflight import RowPart
from simqueue.simulation.request_log import RequestLog
from simqueue.simulation.steprows import StepRows
from simqueue.simulation.tokens import TokenLog

FINISHED = Status.FINISHED  # members of an enumeration take long to look up in Python 3.11


class ReplicaLog:
    """What happened to the steps of one replica, and to requests while they were there.

    Parameters
    ----------
    requests : RequestLog
        Of the whole run.
    counts_slots : bool
        Whether padded rows and idle slots are counted (policies with padded batches).
    policy : str
        Name of the policy's class, for errors.
    number : int
        Number of the replica.

    Attributes
    ----------
    tokens : TokenLog
    rows : StepRows
    slot_steps, idle_slot_steps : int or None
        Rows times steps of padded batches, and how many of these made no token; None if batches are not padded.
    on_first_token : callable or None
        Called with each request that gets its first token here.
    """

    def __init__(self, requests: RequestLog, *, counts_slots: bool, policy: str = "policy", number: int = 0) -> None:
        self.tokens = TokenLog(policy)
        self.rows = StepRows()
        self.number = number
        self.on_first_token: Callable[[Job], None] | None = None
        self._requests = requests
        self._inside = requests.inside
        self._policy = policy
        self._counts_slots = counts_slots
        self._slot_steps = self._idle_slot_steps = 0
        requests.before_rows.append(self.tokens.flush)

    @property
    def slot_steps(self) -> int | None:
        """Rows times steps of padded batches."""
        return self._slot_steps if self._counts_slots else None

    @property
    def idle_slot_steps(self) -> int | None:
        """How many of these made no token."""
        return self._idle_slot_steps if self._counts_slots else None

    def stream_to(self, steps: Sink, gaps: Sink, rows_at_once: int | None = None) -> None:
        """Write steps and gaps to sinks in chunks of rows, instead of keeping them."""
        self.rows.columns.stream_to(steps, rows_at_once)
        self.tokens.columns.stream_to(gaps, rows_at_once)

    # -- requests ------------------------------------------------------------------------------------------------

    def finished(self, job: Job, now_s: float) -> None:
        """Log that the server is done with `job`; tokens not delivered before are delivered now.

        It leaves, unless a front end holds its answer back until its client gives up: then it stays inside till then.
        """
        self.tokens.left(job)
        if job.tokens_emitted < job.output_tokens:
            self.tokens.burst(job, job.output_tokens - job.tokens_emitted, now_s)
        if not self._requests.unseen(job):
            self._leave(job, now_s, FINISHED)

    def timed_out(self, job: Job, now_s: float) -> None:
        """Log that `job` leaves because its client timed out."""
        self.tokens.left(job)
        self._leave(job, now_s, Status.TIMED_OUT)

    def failed(self, job: Job, now_s: float, reason: str) -> None:
        """Log that the server ended `job` with an error while it ran."""
        self.tokens.left(job)
        self._leave(job, now_s, Status.REJECTED, reason)

    def unfinished(self, job: Job, now_s: float) -> None:
        """Log that `job` is still here at the end of the run."""
        self.tokens.left(job)
        self._leave(job, now_s, Status.UNFINISHED)

    def _leave(self, job: Job, now_s: float, status: Status, reason: str | None = None) -> None:
        if job not in self._inside:
            raise RunError(f"{self._policy}: '{job.request.request_id}' leaves twice")
        self._requests.left(job, now_s, status, reason, self.number)

    def tokens_inside(self) -> int:
        """Return the prompt and output tokens of all requests that are waiting or running."""
        return sum([job.last_known_tokens for job in self._inside])

    def longest_output(self) -> int:
        """Return the most output tokens of a request that is waiting or running; 0 if there is none."""
        return max([job.output_tokens for job in self._inside], default=0)

    # -- steps ---------------------------------------------------------------------------------------------------

    def planned(self, plan: Plan, now_s: float) -> None:
        """Log the admissions of a plan."""
        for job, cached in plan.admitted:
            if job.first_scheduled_s is None:
                job.first_scheduled_s = now_s
                job.cached_tokens = cached

    def without_steps(self, plan: Plan) -> None:
        """Log a plan that only preempts: no request got a token."""
        self.lost(plan)
        self._resume(plan)

    def lost(self, plan: Plan) -> None:
        """Log the requests that got no token in a plan: preempted or left out."""
        for job in plan.preempted:
            self.tokens.left(job)
        for job in plan.left_out:
            self.tokens.left(job)

    def ran(
        self,
        plan: Plan,
        start_s: float,
        ends_s: Sequence[float],
        parts: Sequence[RowPart] = (),
        gone: Sequence[Job] | None = None,
    ) -> None:
        """Log steps that ended, and their tokens.

        Parameters
        ----------
        plan, start_s, ends_s : Plan, float, sequence of float
            What ran, from when on, and the end of each step.
        parts : sequence of RowPart
            How they look in the steps table, if they are not all alike.
        gone : sequence of Job or None
            Requests whose clients have gone during the last step, so that its token is not delivered. None: there are
            none, and no request of the plan has left before.
        """
        tokens = self.tokens
        if parts:
            for part in parts:
                self.rows.add(plan, *part)
        else:
            self.rows.add(plan, 0, start_s, ends_s, plan.waiting, plan.blocks_used)
        if plan.preempted or plan.left_out:
            self.lost(plan)
        if plan.dropped:
            self._tick_without([*plan.dropped, *(gone or ())], start_s, ends_s)
        elif plan.ticking and gone is not None:
            self._tick_without(gone, start_s, ends_s)
        elif plan.ticking:
            tokens.ticked(plan.ticking, start_s, ends_s)
        if self._counts_slots:
            self._count_slots(plan, len(ends_s))
        first: Sequence[Job] = plan.first
        if gone is not None:
            first = [job for job in first if job in self._inside and job not in gone]
        if first:
            self._first_tokens(first, ends_s[-1])
        for job in plan.ended:
            tokens.left(job)
        if plan.left_out:
            self._resume(plan)

    def _first_tokens(self, jobs: Sequence[Job], end_s: float) -> None:
        """Log the tokens of requests whose prompts (or recomputed contexts) are complete."""
        for job in jobs:
            is_first = job.first_token_s is None
            if is_first:
                job.first_token_s = end_s
            self.tokens.joined(job, end_s)
            if is_first and self.on_first_token is not None:
                self.on_first_token(job)

    def _tick_without(self, gone: Sequence[Job], start_s: float, ends_s: Sequence[float]) -> None:
        """Log decode steps in the last of which the requests in `gone` get no token."""
        tokens = self.tokens
        if len(ends_s) > 1:
            tokens.ticked(tokens.decoding, start_s, ends_s[:-1])
            start_s = ends_s[-2]
        for job in gone:
            tokens.left(job)
        if tokens.decoding:
            tokens.ticked(tokens.decoding, start_s, ends_s[-1:])

    def _resume(self, plan: Plan) -> None:
        """Log that the requests that got no token in `plan` decode on, but for those that leave or have left."""
        for job in plan.left_out:
            if job not in plan.finishing and job in self._inside:
                self.tokens.resumed(job)

    def _count_slots(self, plan: Plan, steps: int) -> None:
        slots = plan.batch.decode_seqs + len(plan.batch.prefill)
        used = plan.work.decode_seqs + len(plan.work.prefill)
        self._slot_steps += slots * steps
        self._idle_slot_steps += (slots - used) * steps
