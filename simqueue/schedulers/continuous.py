"""Continuous batching (Orca): requests enter and leave between steps, prompts are processed whole."""

from __future__ import annotations

from typing import ClassVar

from mypy_extensions import mypyc_attr

from simqueue.kvcache.base import KVCache
from simqueue.request import Job
from simqueue.schedulers.base import Batching
from simqueue.schedulers.iteration import IterationPolicy
from simqueue.schedulers.keys import ContinuousSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.step import Step


@mypyc_attr(allow_interpreted_subclasses=True)
class Continuous(IterationPolicy):
    """Whole prompts within the budget; a prompt longer than the budget runs alone when nothing else runs."""

    Settings: ClassVar[type[ContinuousSettings]] = ContinuousSettings
    summary: ClassVar[str] = "requests join and leave between steps, prompts are not split (Orca)"
    steady_rules: ClassVar[tuple[str, ...]] = ("budget", "chunk", "compose")
    runs_long_prompts_alone: ClassVar[bool] = True

    def __init__(self, settings: ContinuousSettings, kv: KVCache, limits: RequestLimits) -> None:
        super().__init__(settings, kv, limits)
        self.max_num_batched_tokens = settings.max_num_batched_tokens
        self.separate = settings.prefill == "separate"

    def compose(self, step: Step) -> None:
        """Mixed: decodes, then new requests. Separate: new requests alone if one can enter, else decodes."""
        if not self.separate:
            super().compose(step)
            return
        step.admit_waiting()
        if not step.admitted:
            step.decode_all()

    def budget(self) -> int:
        """Return max_num_batched_tokens."""
        return self.max_num_batched_tokens

    def chunk(self, job: Job, step: Step) -> int:
        """Return the whole rest of the prompt, or 0 if it does not fit into the rest of the budget."""
        rest = job.rest_tokens
        return rest if rest <= step.budget or not self.running else 0

    def batching(self) -> Batching:
        """Prompts run whole, together with decodes or in steps of their own."""
        return Batching("separate" if self.separate else "mixed", self.seats.total, self.max_num_batched_tokens)
