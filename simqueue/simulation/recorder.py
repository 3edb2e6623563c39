"""Takes flat values during the run and hands them over as a `Recording` at its end."""

from __future__ import annotations

from collections.abc import Sequence

from simqueue.kvcache import KVCache, PrefixKVCache
from simqueue.request import Job, Request, Status
from simqueue.schedulers.base import Plan
from simqueue.simulation.columns import Columns, Reordered, Sinks
from simqueue.simulation.recording import PrefixStatistics, Recording
from simqueue.simulation.steprows import StepRows
from simqueue.simulation.tokens import TokenLog

NEVER = float("nan")


class Recorder:
    """What happened to the requests and steps of one replica.

    Parameters
    ----------
    counts_slots : bool
        Whether padded rows and idle slots are worth counting (policies with waves).
    """

    def __init__(self, *, counts_slots: bool) -> None:
        self.tokens = TokenLog()
        self.rows = StepRows()
        self.inside: dict[Job, None] = {}
        self.max_concurrent = 0
        self.inside_area_s = 0.0
        self.ended_count = 0
        self.last_end_s = 0.0
        self._special: dict[str, Request] = {}
        self._changed_s = 0.0
        self._streamed = False
        self._counts_slots = counts_slots
        self._slot_steps = self._idle_slot_steps = 0
        self._requests = Columns(
            index="q",
            request_id="o",
            request_class="o",
            arrival_s="d",
            prompt_tokens="q",
            output_tokens="q",
            due_tokens="q",
            status="o",
            reject_reason="o",
            replica="q",
            first_scheduled_s="d",
            first_token_s="d",
            last_token_s="d",
            finish_s="d",
            max_itl_s="d",
            preemptions="q",
            cached_tokens="q",
            recomputed_tokens="q",
            tokens_emitted="q",
            wanted_s="d",
            attempt="q",
            session="o",
            client="o",
        )

    def stream_to(self, sinks: Sinks) -> None:
        """Let all tables go to sinks named requests, steps and gaps, instead of being kept."""
        self._streamed = True
        self._requests.stream_to(sinks("requests"))
        self.rows.columns.stream_to(sinks("steps"))
        self.tokens.columns.stream_to(sinks("gaps"))

    # -- requests ------------------------------------------------------------------------------------------------

    def arrived(self, job: Job, now_s: float) -> None:
        """Log that `job` has come in and is served or waits."""
        self._inside_changes(now_s)
        self.inside[job] = None
        self.max_concurrent = max(self.max_concurrent, len(self.inside))

    def rejected(self, job: Job, now_s: float, reason: str) -> None:
        """Log that `job` was turned away at the door."""
        self._end(job, Status.REJECTED, now_s, reason=reason, replica=-1)

    def finished(self, job: Job, now_s: float) -> None:
        """Log that `job` leaves with its whole answer; tokens not delivered before are delivered now."""
        self.tokens.left(job)
        missing = job.output_tokens - job.tokens_emitted
        if missing:
            self.tokens.burst(job, missing, now_s)
        self._leave(job, now_s, Status.FINISHED)

    def timed_out(self, job: Job, now_s: float) -> None:
        """Log that the server lets `job` go, whose client has gone."""
        self.tokens.left(job)
        self._leave(job, now_s, Status.TIMED_OUT)

    def never_sent(self, job: Job, now_s: float, status: Status) -> None:
        """Log that `job` ended at its client, without reaching the server."""
        self._end(job, status, now_s, replica=-1)

    def unfinished(self, now_s: float) -> None:
        """Log that the run is over for everybody who is still inside."""
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

    def lost(self, plan: Plan) -> None:
        """Log who got nothing by a plan: preempted or left out."""
        for job in plan.preempted:
            self.tokens.left(job)
        for job in plan.left_out:
            self.tokens.left(job)

    def ran(self, plan: Plan, start_s: float, ends_s: Sequence[float]) -> None:
        """Log the tokens of steps that ended."""
        if plan.preempted or plan.left_out:
            self.lost(plan)
        if plan.ticking:
            self.tokens.ticked(plan.ticking, start_s, ends_s)
        if self._counts_slots:
            slots = plan.batch.decode_seqs + len(plan.batch.prefill)
            used = plan.work.decode_seqs + len(plan.work.prefill)
            self._slot_steps += slots * len(ends_s)
            self._idle_slot_steps += (slots - used) * len(ends_s)
        end_s = ends_s[-1]
        for job in plan.first:
            if job.first_token_s is None:
                job.first_token_s = end_s
            self.tokens.joined(job, end_s)
        for job in plan.ended:
            self.tokens.left(job)
        for job in plan.left_out:
            if job not in plan.finishing:
                self.tokens.resumed(job)

    # -- the end -------------------------------------------------------------------------------------------------

    def recording(
        self, kv: KVCache, end_s: float, warnings: Sequence[str], unfinished_step_s: float = 0.0
    ) -> Recording:
        """Return everything as columns, requests in order of arrival."""
        requests = Reordered(self._requests.arrays(), by="index")
        itl_s, itl_count = self.tokens.gaps()
        return Recording(
            requests=requests if self._streamed else dict(requests),
            steps=self.rows.arrays(),
            itl_s=itl_s,
            itl_count=itl_count,
            blocks_total=kv.total,
            blocks_peak=kv.peak_used,
            max_concurrent=self.max_concurrent,
            slot_steps=self._slot_steps if self._counts_slots else None,
            idle_slot_steps=self._idle_slot_steps if self._counts_slots else None,
            end_s=end_s,
            warnings=tuple(warnings),
            special=self._special,
            unfinished_step_s=unfinished_step_s,
            prefix=_prefix_statistics(kv),
        )

    def _inside_changes(self, now_s: float) -> None:
        self.inside_area_s += len(self.inside) * (now_s - self._changed_s)
        self._changed_s = now_s

    def _leave(self, job: Job, now_s: float, status: Status) -> None:
        self._inside_changes(now_s)
        del self.inside[job]
        self._end(job, status, now_s)

    def _end(self, job: Job, status: Status, now_s: float, reason: str | None = None, replica: int = 0) -> None:
        self.ended_count += 1
        self.last_end_s = now_s
        request = job.request
        if request.is_special:
            self._special[request.request_id] = request
        self._requests.append(
            (
                job.index,
                request.request_id,
                request.request_class,
                request.arrival_s,
                request.prompt_tokens,
                request.output_tokens,
                job.output_tokens,
                status.value,
                reason,
                replica,
                _seconds(job.first_scheduled_s),
                _seconds(job.first_token_s),
                _seconds(job.last_token_s),
                NEVER if status is Status.UNFINISHED else now_s,
                _seconds(job.max_itl_s),
                job.preemptions,
                job.cached_tokens,
                job.recomputed_tokens,
                job.tokens_emitted,
                request.arrival_s if request.wanted_s is None else request.wanted_s,
                request.attempt,
                request.session,
                request.client,
            )
        )


def _prefix_statistics(kv: KVCache) -> PrefixStatistics | None:
    if not isinstance(kv, PrefixKVCache):
        return None
    return PrefixStatistics(kv.queried_tokens, kv.hit_tokens, kv.self_hit_tokens)


def _seconds(time_s: float | None) -> float:
    return NEVER if time_s is None else time_s
