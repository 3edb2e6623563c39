"""Static (request-level) batching: padded waves, each running until its longest request is done."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from mypy_extensions import mypyc_attr

from simqueue.errors import InputError, RunError
from simqueue.kvcache.base import KVCache
from simqueue.request import Job, Request
from simqueue.schedulers.base import Batching, Later, Plan, Policy
from simqueue.schedulers.keys import StaticSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.waiting import waiting_queue
from simqueue.steptime.base import Batch


class Wave:
    """One batch: every row is padded to the longest prompt and runs to the longest output.

    Attributes
    ----------
    jobs : list of Job
        The requests that have not left.
    rows : int
        Rows of the batch; a request that leaves before the end of the wave leaves an idle row.
    blocks : int
        KV blocks that the wave holds.
    made : int
        Tokens made per row.
    open : list of Job
        The requests without their last token, the shortest output last.
    """

    def __init__(self, jobs: list[Job], blocks: int) -> None:
        self.jobs = jobs
        self.rows = len(jobs)
        self.blocks = blocks
        self.prompt_tokens = max(job.request.prompt_tokens for job in jobs)
        self.made = 0
        self.open = sorted(jobs, key=lambda job: (-job.output_tokens, -job.rank))
        self.open_prompt_tokens = sum(job.request.prompt_tokens for job in jobs)

    @property
    def next_end(self) -> int:
        """Output tokens at which the next of the open requests has its last one."""
        return self.open[-1].output_tokens

    def drop(self, job: Job) -> None:
        """Let `job` get no more tokens and leave; its row stays."""
        self.jobs.remove(job)
        if job in self.open:
            self.open.remove(job)
            self.open_prompt_tokens -= job.request.prompt_tokens

    def step(self, n: int) -> list[Job]:
        """Make `n` tokens per row; return the requests that made their last one. Precondition: not past `next_end`."""
        self.made += n
        ended = []
        while self.open and self.next_end == self.made:
            job = self.open.pop()
            self.open_prompt_tokens -= job.request.prompt_tokens
            ended.append(job)
        return ended


@mypyc_attr(allow_interpreted_subclasses=True)
class Static(Policy):
    """The waiting requests are prefilled together, padded, and decoded until the longest of them is done."""

    Settings: ClassVar[type[StaticSettings]] = StaticSettings
    summary: ClassVar[str] = "request-level batching: padded waves; no request joins or leaves a running wave"
    steady_rules: ClassVar[tuple[str, ...]] = ("*",)
    counts_idle_slots: ClassVar[bool] = True
    keeps_finished: ClassVar[bool] = True

    def __init__(self, settings: StaticSettings, kv: KVCache, limits: RequestLimits) -> None:
        if kv.shares:
            raise InputError("padded waves cannot share blocks", "kv_cache", "prefix_caching", value=True)
        self.kv = kv
        self.limits = limits
        self.settings = settings
        self.waiting = waiting_queue(settings.order)
        self.wave: Wave | None = None
        self._by_arrival: dict[Job, None] = {}
        self._admissions = 0

    @property
    def waiting_count(self) -> int:
        """Requests in the queue now."""
        return len(self.waiting)

    @property
    def running_count(self) -> int:
        """Requests of the wave that have not left."""
        return 0 if self.wave is None else len(self.wave.jobs)

    @property
    def free_seats(self) -> int:
        """Seats of the next wave, if none runs."""
        return self.settings.max_num_seqs if self.wave is None else 0

    def rejection(self, request: Request) -> str | None:
        """Return why `request` can never be served, or None."""
        return self.limits.rejection(request, self.kv)

    def due_tokens(self, request: Request) -> int:
        """Return how many tokens are made for `request`."""
        return self.limits.output_tokens(request)

    def batching(self) -> Batching:
        """Requests run in padded waves."""
        settings = self.settings
        return Batching(
            "static",
            settings.max_num_seqs,
            fills_waves=settings.batch == "fixed" and settings.wave_timeout_s is None,
            sorts_waves=settings.order in ("shortest_prompt", "shortest_output"),
        )

    def waits_for(self) -> str | None:
        """Return that a fixed wave without a timeout is not full, if that is so."""
        settings, count = self.settings, len(self.waiting)
        if settings.batch == "dynamic" or settings.wave_timeout_s is not None or count >= settings.max_num_seqs:
            return None
        return f"the last wave has {count} of max_num_seqs = {settings.max_num_seqs}; wave_timeout_s would start it"

    def add(self, job: Job) -> bool:
        """Queue `job`; it changes nothing while a wave runs."""
        job.output_tokens = self.due_tokens(job.request)
        self.waiting.push(job)
        self._by_arrival[job] = None
        return self.wave is None

    def cancel(self, job: Job, uncommitted: Sequence[Plan]) -> list[Job]:
        """Stop counting `job`; see `Policy.cancel`. A row that its request has left stays idle until the wave ends."""
        wave = self.wave
        if wave is None or job not in wave.jobs:
            self.waiting.remove(job)
            del self._by_arrival[job]
            return [job]
        if uncommitted:
            self._leave_with(uncommitted[-1], wave, job)
            return []
        wave.drop(job)
        leaving = [job] if wave.open else [job, *wave.jobs]
        self._end_if_done(wave)
        return leaving

    def plan(self, now_s: float) -> Plan | Later | None:
        """Decide the wave's next step, or gather the next wave."""
        if self.wave is not None:
            return self._decode(self.wave)
        if not self.waiting:
            return None
        settings = self.settings
        if settings.batch == "fixed" and len(self.waiting) < settings.max_num_seqs:
            if settings.wave_timeout_s is None:
                return None
            due_s = next(iter(self._by_arrival)).request.arrival_s + settings.wave_timeout_s
            if now_s < due_s:
                return Later(due_s)
        self.wave = self._gather()
        return None if self.wave is None else self._prefill(self.wave)

    def take(self, plan: Plan, n: int) -> None:
        """Make `n` more tokens per row."""
        if n and self.wave is not None:
            if self.wave.made + n > self.wave.next_end:
                raise RunError(f"{type(self).__name__}: a plan repeats beyond the last token of a request")
            self._step(self.wave, plan, n)

    def commit(self, plan: Plan) -> None:
        """Let the finished requests leave. The wave ends with its longest request and gives its blocks back."""
        wave = self.wave
        if wave is None:
            return
        if plan.finishing:
            wave.jobs = [job for job in wave.jobs if job not in plan.finishing]
        self._end_if_done(wave)

    def _end_if_done(self, wave: Wave) -> None:
        if not wave.open:
            self.kv.give_back(wave.blocks)
            self.wave = None

    def _leave_with(self, plan: Plan, wave: Wave, job: Job) -> None:
        """Let a cancelled `job` leave with `plan`, and the whole wave if no other request is open."""
        if job in plan.finishing:
            return
        wave.drop(job)
        plan.finishing.append(job)
        if self.settings.emit == "as_made" and job not in plan.ended:
            plan.ended.append(job)
        if not wave.open:
            others = [other for other in wave.jobs if other not in plan.finishing]
            plan.finishing.extend(others)
            plan.ended.extend(other for other in others if self.settings.emit == "wave_end")

    def _gather(self) -> Wave | None:
        jobs: list[Job] = []
        blocks, prompt, output = 0, 0, 0
        while self.waiting and len(jobs) < self.settings.max_num_seqs:
            head = self.waiting.head
            prompt, output = max(prompt, head.request.prompt_tokens), max(output, head.output_tokens)
            padded = Request("padded row", 0.0, prompt, output)
            needed = (len(jobs) + 1) * self.kv.held(padded, self.kv.peak_tokens(padded))
            if needed > self.kv.total:
                break
            blocks = needed
            job = self.waiting.pop()
            del self._by_arrival[job]
            job.rank = self._admissions
            self._admissions += 1
            jobs.append(job)
        if not jobs:
            return None
        self.kv.take(blocks)
        return Wave(jobs, blocks)

    def _prefill(self, wave: Wave) -> Plan:
        rows = wave.rows
        plan = Plan(
            batch=Batch(prefill=((0, wave.prompt_tokens),) * rows, sampled_rows=rows),
            repeat=1,
            ticking=0,
            running=rows,
            waiting=len(self.waiting),
            work=Batch(prefill=tuple((0, job.request.prompt_tokens) for job in wave.jobs), sampled_rows=rows),
            blocks_used=self.kv.used,
            admitted=[(job, 0) for job in wave.jobs],
            first=list(wave.jobs),
        )
        self._step(wave, plan, 1)
        return plan

    def _decode(self, wave: Wave) -> Plan:
        rows, alive = wave.rows, len(wave.open)
        plan = Plan(
            batch=Batch(rows, rows, rows * (wave.prompt_tokens + wave.made), sampled_rows=rows),
            repeat=wave.next_end - wave.made,
            ticking=alive if self.settings.emit == "as_made" else 0,
            running=len(wave.jobs) if self.settings.release == "wave_end" else alive,
            waiting=len(self.waiting),
            work=Batch(alive, alive, wave.open_prompt_tokens + alive * wave.made, sampled_rows=alive),
            blocks_used=self.kv.used,
        )
        self._step(wave, plan, 1)
        return plan

    def _step(self, wave: Wave, plan: Plan, n: int) -> None:
        ended = wave.step(n)
        leaving = ended if self.settings.release == "own_end" else ([] if wave.open else wave.jobs)
        plan.finishing.extend(leaving)
        plan.ended.extend(ended if self.settings.emit == "as_made" else leaving)

    def state(self) -> Hashable:
        """Return the wave's progress and the queue."""
        return self.wave and self.wave.made, self.waiting.snapshot()

    def members(self) -> list[Job]:
        """Return the requests that hold a seat, in order of admission."""
        if self.wave is None:
            return []
        if self.settings.release == "wave_end":
            return list(self.wave.jobs)
        return sorted(self.wave.open, key=lambda job: job.rank)

    def check(self) -> None:
        """Compare pool and sums with a walk over the wave."""
        wave = self.wave
        self.kv.check_total(wave.blocks if wave else 0)
        if wave is None:
            return
        still_open = [job for job in wave.jobs if job.output_tokens > wave.made]
        if sorted(job.index for job in still_open) != sorted(job.index for job in wave.open):
            raise RunError(f"the wave has {len(wave.open)} open requests, a walk finds {len(still_open)}")
        if sum(job.request.prompt_tokens for job in still_open) != wave.open_prompt_tokens:
            raise RunError("the wave's summed prompts differ from a walk over its open requests")
