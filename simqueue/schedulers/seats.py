"""The requests that hold a seat, by what they do: prefilling, decoding, or leaving."""

from __future__ import annotations

from simqueue.errors import RunError
from simqueue.kvcache.base import KVCache
from simqueue.request import Job
from simqueue.schedulers.decoding import DecodeCounters


class Seats:
    """Every request that runs is in exactly one of three states.

    It is *prefilling* (part of its prompt or recomputed context is to be computed), *decoding* (one token per step;
    `DecodeCounters`), or *leaving* (its last token has been taken; it keeps seat and blocks until that step is
    committed).

    Parameters
    ----------
    kv : KVCache
        Told when a request starts and stops to decode.
    total : int
        Number of seats.

    Attributes
    ----------
    running : dict of Job to None
        All of them, in order of admission.
    prefilling, leaving : dict of Job to None
    cancelled : dict of Job to None
        Those of the leaving requests whose last token will not be delivered.
    decodes : DecodeCounters
    steps : int
        Steps planned so far.
    """

    def __init__(self, kv: KVCache, total: int) -> None:
        self.kv = kv
        self.total = total
        self.running: dict[Job, None] = {}
        self.prefilling: dict[Job, None] = {}
        self.leaving: dict[Job, None] = {}
        self.cancelled: dict[Job, None] = {}
        self.decodes = DecodeCounters(kv.block_size, grows=kv.grows)
        self.steps = 0
        self._admissions = 0

    @property
    def free(self) -> int:
        """Seats that no request holds."""
        return self.total - len(self.running)

    def give(self, job: Job) -> None:
        """Give a seat to `job`, whose context is to be completed. Precondition: a seat is free."""
        job.rank = self._admissions
        self._admissions += 1
        self.running[job] = self.prefilling[job] = None

    def start_decoding(self, job: Job) -> None:
        """Count `job` as decoding from the next step on. Precondition: it holds a seat, its context is complete."""
        self.decodes.start(job)
        self.kv.begin_decoding(job)

    def stop_decoding(self, job: Job, granted: int = 0) -> None:
        """Stop counting `job` as decoding; `granted`: 1 if a block for the next token was already taken."""
        self.decodes.stop(job)
        self.kv.end_decoding(job, job.computed_tokens + granted)

    def step(self, n: int = 1) -> list[Job]:
        """Make `n` tokens for every decoding request; return the requests that made their last one, by admission."""
        ended = self.decodes.step(n)
        for job in ended:
            self.leaving[job] = None
            self.kv.end_decoding(job, job.computed_tokens)
        return ended

    def stop(self, job: Job) -> None:
        """Let `job` get no more tokens; it keeps its seat. Precondition: it is prefilling or decoding."""
        if job.decoding:
            self.stop_decoding(job)
        else:
            del self.prefilling[job]
        self.leaving[job] = None

    def vacate(self, job: Job, granted: int = 0) -> int:
        """Take the seat of `job` away; return its tokens in the cache, without a token `granted` in this step."""
        del self.running[job]
        if job.decoding:
            self.stop_decoding(job, granted)
        elif job in self.prefilling:
            del self.prefilling[job]
        else:
            del self.leaving[job]
            self.cancelled.pop(job, None)
        return job.computed_tokens

    def check(self) -> None:
        """Compare pool and counters with sums over all requests that hold a seat; raise `RunError` if they differ."""
        decoding = [job for job in self.running if job.decoding]
        self.decodes.check(decoding)
        if len(self.running) > self.total:
            raise RunError(f"{len(self.running)} requests run on {self.total} seats")
        parts = len(decoding), len(self.prefilling), len(self.leaving)
        if sum(parts) != len(self.running):
            raise RunError(f"{len(self.running)} requests run; {parts} are decoding, prefilling and leaving")
        tokens = self.decodes.tokens
        self.kv.check((job, tokens(job) - 1 if job.decoding else job.computed_tokens) for job in self.running)
