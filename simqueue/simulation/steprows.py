"""The steps table, run-length coded: equal decode steps in a row become one row, however they were planned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from simqueue.schedulers.base import Plan
from simqueue.simulation.columns import Columns


class StepRows:
    """Steps of one replica. Rows merge where decode_seqs, running and waiting stay, nothing is prefilled or preempted,
    and the context grows by one token a decode; so rows do not depend on how steps were folded.
    """

    def __init__(self) -> None:
        self.columns = Columns(
            start_s="d",
            duration_s="d",
            repeat="q",
            last_step_s="d",
            decode_seqs="q",
            context_tokens="q",
            prefill_tokens="q",
            prefill_seqs="q",
            blocks_used="q",
            running="q",
            waiting="q",
            preempted="q",
        )
        self._open = False
        self._start_s = self._end_s = self._last_step_s = 0.0
        self._repeat = self._context = self._prefill_tokens = self._prefill_seqs = 0
        self._blocks_used = self._preempted = 0
        self._same: tuple[int, int, int] = (0, 0, 0)

    def add(
        self, plan: Plan, past: int, start_s: float, ends_s: Sequence[float], waiting: int, blocks_used: int
    ) -> None:
        """Log repeats of `plan` after the `past` ones logged before, from `start_s` to the last of `ends_s`."""
        work = plan.work
        context = work.context_tokens + past * work.decode_seqs
        same = (work.decode_seqs, plan.running, waiting)
        last_step_s = ends_s[-1] - (ends_s[-2] if len(ends_s) > 1 else start_s)
        plain = not (work.prefill or plan.preempted)
        if (
            plain
            and self._open
            and same == self._same
            and start_s == self._end_s
            and context == self._context + self._repeat * work.decode_seqs
        ):
            self._repeat += len(ends_s)
        else:
            self.close()
            self._start_s = start_s
            self._repeat = len(ends_s)
            self._context = context
            self._same = same
            self._blocks_used = blocks_used
            self._prefill_tokens = work.prefill_tokens if work.prefill else 0
            self._prefill_seqs = len(work.prefill)
            self._preempted = len(plan.preempted)
        self._end_s = ends_s[-1]
        self._last_step_s = last_step_s
        self._open = True
        if not plain:
            self.close()

    def close(self) -> None:
        """Write the row under construction, if there is one."""
        if not self._open:
            return
        decode_seqs, running, waiting = self._same
        self.columns.append(
            (
                self._start_s,
                self._end_s - self._start_s,
                self._repeat,
                self._last_step_s,
                decode_seqs,
                self._context,
                self._prefill_tokens,
                self._prefill_seqs,
                self._blocks_used,
                running,
                waiting,
                self._preempted,
            )
        )
        self._open = False

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the finished table as arrays."""
        self.close()
        return self.columns.arrays()
