"""The steps table, run-length coded: equal decode steps in a row become one row, however they were planned.

During the run the numbers of each plan are only written down. They are merged with numpy, a thousand plans at a time.
The last row stays open, since the next steps can still belong to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.schedulers.base import Plan
from simqueue.simulation.columns import Columns
from simqueue.simulation.recording import Table

PLANS_AT_ONCE = 1024
_TIMES = ("start_s", "end_s", "last_start_s")
_COUNTS = (
    "repeat",
    "decode_seqs",
    "context_tokens",
    "prefill_tokens",
    "prefill_seqs",
    "blocks_used",
    "running",
    "waiting",
    "preempted",
)
_WIDTH = len(_TIMES) + len(_COUNTS)
_NUMBERS = Struct(f"{_WIDTH}d")
"""The numbers of one plan. Counts are floats too, which hold every whole number up to 2**53."""
Arrays = dict[str, NDArray[Any]]


class StepRows:
    """Steps of one replica.

    Adjacent steps merge into one row if decode_seqs, running and waiting are the same, nothing is prefilled or
    preempted, and the context grows by one token per decode. So rows do not depend on how steps were folded.
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
        self._noted = bytearray()
        self._open: Arrays | None = None

    def add(
        self, plan: Plan, past: int, start_s: float, ends_s: Sequence[float], waiting: int, blocks_used: int
    ) -> None:
        """Log repeats of `plan` after the `past` ones logged before, from `start_s` to the last of `ends_s`."""
        decode_seqs, _, context_tokens, prefill, _ = plan.work
        n = len(ends_s)
        prefill_tokens = 0
        for _, new in prefill:
            prefill_tokens += new
        noted = self._noted
        noted += _NUMBERS.pack(
            start_s,
            ends_s[-1],
            ends_s[-2] if n > 1 else start_s,
            n,
            decode_seqs,
            context_tokens + past * decode_seqs,
            prefill_tokens,
            len(prefill),
            blocks_used,
            plan.running,
            waiting,
            len(plan.preempted) - plan.unseated,
        )
        if len(noted) == PLANS_AT_ONCE * _NUMBERS.size:
            self._flush()

    def arrays(self) -> Table:
        """Return the finished table as arrays."""
        self._flush()
        if self._open is not None:
            self._write(self._open)
            self._open = None
        return self.columns.arrays()

    def _flush(self) -> None:
        """Merge what was written down; the last row stays open."""
        if not self._noted:
            return
        columns = np.frombuffer(self._noted).reshape(-1, _WIDTH).T
        self._noted = bytearray()
        steps: Arrays = dict(zip(_TIMES, columns, strict=False))
        steps |= zip(_COUNTS, columns[len(_TIMES) :].astype(np.int64), strict=True)
        if self._open is not None:
            steps = {name: np.concatenate((self._open[name], column)) for name, column in steps.items()}
        rows = _merged(steps)
        self._write({name: column[:-1] for name, column in rows.items()})
        self._open = {name: column[-1:] for name, column in rows.items()}

    def _write(self, rows: Arrays) -> None:
        if len(rows["start_s"]):
            made = rows | {
                "duration_s": rows["end_s"] - rows["start_s"],
                "last_step_s": rows["end_s"] - rows["last_start_s"],
            }
            self.columns.extend([made[name] for name in self.columns.names])


def _merged(steps: Arrays) -> Arrays:
    """Return the rows of steps in a row."""
    plain = (steps["prefill_seqs"] == 0) & (steps["preempted"] == 0)
    grown = steps["context_tokens"] + steps["repeat"] * steps["decode_seqs"]
    goes_on = plain[1:] & plain[:-1] & (steps["start_s"][1:] == steps["end_s"][:-1])
    goes_on &= steps["context_tokens"][1:] == grown[:-1]
    for name in ("decode_seqs", "running", "waiting"):
        goes_on &= steps[name][1:] == steps[name][:-1]
    first = np.concatenate(([0], np.flatnonzero(~goes_on) + 1))
    last = np.concatenate((first[1:], [len(plain)])) - 1
    rows = {name: column[first] for name, column in steps.items()}
    rows["repeat"] = np.add.reduceat(steps["repeat"], first)
    rows["end_s"] = steps["end_s"][last]
    rows["last_start_s"] = steps["last_start_s"][last]
    return rows
