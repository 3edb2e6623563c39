"""Continuous batching (Orca): requests enter and leave between steps, prompts are processed whole."""

from __future__ import annotations

from typing import ClassVar

from mypy_extensions import mypyc_attr

from simqueue.kvcache.base import KVCache
from simqueue.request import Job
from simqueue.schedulers.base import Plan
from simqueue.schedulers.door import Door
from simqueue.schedulers.draft import Draft
from simqueue.schedulers.iteration import IterationPolicy
from simqueue.schedulers.keys import ContinuousSettings


@mypyc_attr(allow_interpreted_subclasses=True)
class Continuous(IterationPolicy):
    """Whole prompts within the budget; one that is longer than the budget runs alone when nothing runs."""

    Settings: ClassVar[type[ContinuousSettings]] = ContinuousSettings
    summary: ClassVar[str] = "whole prompts enter between steps (Orca); prefill mixed with decodes or separate"

    def __init__(self, settings: ContinuousSettings, kv: KVCache, door: Door) -> None:
        super().__init__(settings, kv, door)
        self.step_tokens = settings.max_num_batched_tokens
        self._separate = settings.prefill == "separate"

    def plan(self, now_s: float) -> Plan | None:
        """Mixed: decodes, then newcomers. Separate: newcomers alone if there are any, else decodes."""
        if not self._separate:
            return super().plan(now_s)
        draft = self.new_draft()
        self.admit(draft)
        if not draft.admitted:
            self.run_decodes(draft)
        return self.seal(draft)

    def chunk(self, job: Job, draft: Draft) -> int:
        """Return the whole rest, or 0 where it does not fit beside what already runs."""
        rest = job.rest_tokens
        return rest if rest <= draft.budget or not self.running else 0
