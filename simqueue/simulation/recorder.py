"""Collects flat values during the run and returns them as a `Recording` at its end."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from simqueue.errors import RunError
from simqueue.frontend import FrontEndTimes
from simqueue.kvcache import KVCache, PrefixKVCache
from simqueue.request import Job, Status
from simqueue.schedulers.base import Plan
from simqueue.simulation.columns import Reordered, Sinks
from simqueue.simulation.inflight import RowPart
from simqueue.simulation.recording import PrefixStatistics, Recording
from simqueue.simulation.requestrows import ENDED_AT_ONCE, RequestRows
from simqueue.simulation.steprows import StepRows
from simqueue.simulation.tokens import TokenLog

FINISHED = Status.FINISHED  # members of an enumeration take long to look up in Python 3.11


class Recorder:
    """What happened to the requests and steps of one replica.

    Parameters
    ----------
    counts_slots : bool
        Whether padded rows and idle slots are counted (policies with padded batches).
    policy : str
        Name of the policy's class, for errors.
    front_end : FrontEndTimes, optional
        What delays first tokens on their way to the clients.
    """

    def __init__(self, *, counts_slots: bool, policy: str = "policy", front_end: FrontEndTimes | None = None) -> None:
        self.tokens = TokenLog(policy)
        self._policy = policy
        self.rows = StepRows()
        self.inside: dict[Job, None] = {}
        self.max_concurrent = 0
        self.inside_area_s = 0.0
        self.ended_count = 0
        self.last_end_s = 0.0
        self._changed_s = 0.0
        self._streamed = False
        self._counts_slots = counts_slots
        self._slot_steps = self._idle_slot_steps = 0
        self._front_end = front_end
        self._requests = RequestRows(front_end)

    def stream_to(self, sinks: Sinks) -> None:
        """Write all tables to sinks named requests, steps and gaps, instead of keeping them."""
        self._streamed = True
        self._requests.columns.stream_to(sinks("requests"))
        self.rows.columns.stream_to(sinks("steps"))
        self.tokens.columns.stream_to(sinks("gaps"))

    # -- requests ------------------------------------------------------------------------------------------------

    def arrived(self, job: Job, now_s: float) -> None:
        """Log that `job` has arrived and was not rejected."""
        self._inside_changes(now_s)
        self.inside[job] = None
        self.max_concurrent = max(self.max_concurrent, len(self.inside))

    def rejected(self, job: Job, now_s: float, reason: str) -> None:
        """Log that `job` was rejected at its arrival."""
        self._end(job, Status.REJECTED, now_s, reason=reason, replica=-1)

    def finished(self, job: Job, now_s: float) -> None:
        """Log that the server is done with `job`; tokens not delivered before are delivered now.

        It leaves, unless a front end holds its answer back until its client gives up: then it stays `inside` till then.
        """
        self.tokens.left(job)
        if job.tokens_emitted < job.output_tokens:
            self.tokens.burst(job, job.output_tokens - job.tokens_emitted, now_s)
        if job.request.gives_up_s is not None and isnan(self._requests.delay_s(job)):
            return
        self._leave(job, now_s, FINISHED)

    def timed_out(self, job: Job, now_s: float) -> None:
        """Log that `job` leaves because its client timed out."""
        self.tokens.left(job)
        self._leave(job, now_s, Status.TIMED_OUT)

    def failed(self, job: Job, now_s: float, reason: str) -> None:
        """Log that the server ended `job` with an error while it ran."""
        self.tokens.left(job)
        self._leave(job, now_s, Status.REJECTED, reason=reason)

    def left_front_end(self, job: Job, now_s: float, status: Status, reason: str | None = None) -> None:
        """Log that `job` ended in or right behind the front end, before any replica had it."""
        self._leave(job, now_s, status, reason=reason, replica=-1)

    def never_sent(self, job: Job, now_s: float, status: Status) -> None:
        """Log that `job` ended at its client and never reached the server."""
        self._end(job, status, now_s, replica=-1)

    def tokens_inside(self) -> int:
        """Return the prompt and output tokens of all requests that are waiting or running."""
        return sum([job.last_known_tokens for job in self.inside])

    def longest_output(self) -> int:
        """Return the most output tokens of a request that is waiting or running; 0 if there is none."""
        return max([job.output_tokens for job in self.inside], default=0)

    def unfinished(self, now_s: float) -> None:
        """Log the end of the run for all requests that are still waiting or running."""
        for job in list(self.inside):
            self.tokens.left(job)
            self._leave(job, now_s, Status.UNFINISHED)

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
        if plan.ticking and gone is not None:
            self._tick_without(gone, start_s, ends_s)
        elif plan.ticking:
            tokens.ticked(plan.ticking, start_s, ends_s)
        if self._counts_slots:
            self._count_slots(plan, len(ends_s))
        first: Sequence[Job] = plan.first
        if gone is not None:
            first = [job for job in first if job in self.inside and job not in gone]
        for job in first:
            if job.first_token_s is None:
                job.first_token_s = ends_s[-1]
            tokens.joined(job, ends_s[-1])
        for job in plan.ended:
            tokens.left(job)
        if plan.left_out:
            self._resume(plan)

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
            if job not in plan.finishing and job in self.inside:
                self.tokens.resumed(job)

    def _count_slots(self, plan: Plan, steps: int) -> None:
        slots = plan.batch.decode_seqs + len(plan.batch.prefill)
        used = plan.work.decode_seqs + len(plan.work.prefill)
        self._slot_steps += slots * steps
        self._idle_slot_steps += (slots - used) * steps

    # -- the end -------------------------------------------------------------------------------------------------

    def recording(
        self, kv: KVCache, end_s: float, warnings: Sequence[str], unfinished_step_s: float | None = None
    ) -> Recording:
        """Return everything as columns, requests in order of arrival."""
        gaps = self.tokens.gaps()
        requests = Reordered(self._requests.arrays(), by="index")
        return Recording(
            requests=requests if self._streamed else dict(requests),
            steps=self.rows.arrays(),
            gaps=gaps,
            blocks_total=kv.total,
            blocks_peak=kv.peak_used,
            max_concurrent=self.max_concurrent,
            slot_steps=self._slot_steps if self._counts_slots else None,
            idle_slot_steps=self._idle_slot_steps if self._counts_slots else None,
            end_s=end_s,
            warnings=tuple(warnings),
            front_end=self._front_end,
            special=self._requests.special,
            unfinished_step_s=unfinished_step_s,
            prefix=_prefix_statistics(kv),
        )

    def _inside_changes(self, now_s: float) -> None:
        self.inside_area_s += len(self.inside) * (now_s - self._changed_s)
        self._changed_s = now_s

    def _leave(self, job: Job, now_s: float, status: Status, reason: str | None = None, replica: int = 0) -> None:
        if job not in self.inside:
            raise RunError(f"{self._policy}: '{job.request.request_id}' leaves twice")
        self._inside_changes(now_s)
        del self.inside[job]
        self._end(job, status, now_s, reason, replica)

    def _end(self, job: Job, status: Status, now_s: float, reason: str | None = None, replica: int = 0) -> None:
        self.ended_count += 1
        self.last_end_s = now_s
        ended = self._requests.ended
        ended.append((job, status, now_s, reason, replica))
        if len(ended) == ENDED_AT_ONCE:
            self.tokens.flush()
            self._requests.flush()


def _prefix_statistics(kv: KVCache) -> PrefixStatistics | None:
    if not isinstance(kv, PrefixKVCache):
        return None
    return PrefixStatistics(kv.queried_tokens, kv.hit_tokens, kv.self_hit_tokens)
