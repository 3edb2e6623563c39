"""Fits the linear step time to measured steps, whatever ran them: it needs no model and no GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from simqueue.datafiles.csvtable import Row, read_table
from simqueue.errors import InputError
from simqueue.steptime.linear import LinearStepTime

COLUMNS = ("decode_seqs", "prefill_tokens", "ms")


@dataclass(frozen=True, slots=True)
class StepMean:
    """Steps of one shape, and what they took.

    Attributes
    ----------
    decode_seqs, prefill_tokens : int
    mean_s : float
    steps : int
        How many were measured.
    """

    decode_seqs: int
    prefill_tokens: int
    mean_s: float
    steps: int = 1

    def terms(self) -> tuple[float, float, float, float]:
        """Return what the four values of the linear cost are multiplied with."""
        return 1.0, float(self.prefill_tokens), float(self.decode_seqs > 0), float(self.decode_seqs)


def fit_linear(rows: Sequence[StepMean]) -> LinearStepTime:
    """Return the linear cost, no value negative, that is closest to measured steps by relative error.

    Raises
    ------
    InputError
        If there are no decodes or no prompt tokens in any step.
    """
    if not any(row.decode_seqs for row in rows) or not any(row.prefill_tokens for row in rows):
        raise InputError("calibrate: a linear step time needs measured steps with decodes and with prompt tokens")
    measured_s = np.array([row.mean_s for row in rows])
    weight = np.sqrt([row.steps for row in rows]) / measured_s
    values, _ = nnls(np.array([row.terms() for row in rows]) * weight[:, None], weight * measured_s)
    overhead_s, per_prefill_token_s, decode_base_s, per_decode_s = map(float, values)
    return LinearStepTime(overhead_s, per_prefill_token_s, decode_base_s, per_decode_s, 0.0)


def read_step_means(file: Path) -> list[StepMean]:
    """Read a CSV with ``decode_seqs``, ``prefill_tokens`` and ``ms``; further columns are not used.

    Raises
    ------
    InputError
        If the file cannot be read, a column is missing or a value is out of range.
    """
    table = read_table(file, str(file), pad=True)
    table.check_columns(COLUMNS)
    return [_step_mean(row) for row in table.rows()]


def _step_mean(row: Row) -> StepMean:
    decodes, prompts = (row.number(name, least=0, empty=0) for name in COLUMNS[:2])
    ms = row.number("ms", above=0)
    if not decodes + prompts:
        raise row.error("a step needs decode_seqs or prefill_tokens above 0")
    return StepMean(round(decodes), round(prompts), ms / 1e3)
