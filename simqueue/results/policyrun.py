"""One run of a policy: its recording, and the part of it that is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from simqueue.results.signs import Signs
from simqueue.results.window import Window

if TYPE_CHECKING:
    from simqueue.simulation.recording import Recording


@dataclass(frozen=True)
class PolicyRun:
    """The recording of one replication of a policy."""

    policy: str
    replication: int
    recording: Recording
    window: Window | None = None
    """The steady part after a warm-up; None: the whole run is measured."""

    @cached_property
    def signs(self) -> Signs:
        """What the run shows about overload."""
        return Signs(self.recording)

    def measured(self, window: Window | None) -> PolicyRun:
        """Return the run with a window; what it shows about overload is not found again."""
        made = replace(self, window=window)
        made.__dict__["signs"] = self.signs
        return made

    @property
    def warmup_s(self) -> float:
        """End of the warm-up."""
        return 0.0 if self.window is None else self.window.start_s
