"""The steps table, run-length coded: equal decode steps in a row become one row, however they were planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        self._repeat = self._context = self._blocks_used = 0
        self._same: tuple[int, int, int] = (0, 0, 0)

    def add(
        self, plan: Plan, past: int, start_s: float, ends_s: Sequence[float], waiting: int, blocks_used: int
    ) -> None:
        """Log repeats of `plan` after the `past` ones logged before, from `start_s` to the last of `ends_s`."""
        work, n, end_s = plan.work, len(ends_s), ends_s[-1]
        decode_seqs = work.decode_seqs
        context = work.context_tokens + past * decode_seqs
        last_step_s = end_s - (ends_s[-2] if n > 1 else start_s)
        if work.prefill or plan.preempted:
            if self._open:
                self.close()
            self.columns.append(
                (
                    start_s,
                    end_s - start_s,
                    n,
                    last_step_s,
                    decode_seqs,
                    context,
                    work.prefill_tokens,
                    len(work.prefill),
                    blocks_used,
                    plan.running,
                    waiting,
                    len(plan.preempted),
                )
            )
            return
        same = (decode_seqs, plan.running, waiting)
        if (
            self._open
            and same == self._same
            and start_s == self._end_s
            and context == self._context + self._repeat * decode_seqs
        ):
            self._repeat += n
        else:
            if self._open:
                self.close()
            self._open = True
            self._start_s = start_s
            self._repeat = n
            self._context = context
            self._same = same
            self._blocks_used = blocks_used
        self._end_s = end_s
        self._last_step_s = last_step_s

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
                0,
                0,
                self._blocks_used,
                running,
                waiting,
                0,
            )
        )
        self._open = False

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the finished table as arrays."""
        self.close()
        return self.columns.arrays()
