"""Fits linear step times to measured steps; needs no model and no GPU."""

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
    """Mean duration of steps with the same batch.

    Attributes
    ----------
    decode_seqs, prefill_tokens : int
        The batch.
    mean_s : float
        Mean duration.
    steps : int
        Number of measured steps.
    """

    decode_seqs: int
    prefill_tokens: int
    mean_s: float
    steps: int = 1

    def terms(self) -> tuple[float, float, float, float]:
        """Return the factors of the four fitted values."""
        return 1.0, float(self.prefill_tokens), float(self.decode_seqs > 0), float(self.decode_seqs)


def fit_linear(rows: Sequence[StepMean]) -> LinearStepTime:
    """Return the linear model with the least squared relative error; no value is negative.

    Raises
    ------
    InputError
        If no step has decodes, or no step has prompt tokens.
    """
    if not any(row.decode_seqs for row in rows) or not any(row.prefill_tokens for row in rows):
        raise InputError("calibrate: a linear step time needs measured steps with decodes and with prompt tokens")
    measured_s = np.array([row.mean_s for row in rows])
    weight = np.sqrt([row.steps for row in rows]) / measured_s
    values, _ = nnls(np.array([row.terms() for row in rows]) * weight[:, None], weight * measured_s)
    overhead_s, per_prefill_token_s, decode_base_s, per_decode_s = map(float, values)
    return LinearStepTime(overhead_s, per_prefill_token_s, decode_base_s, per_decode_s, 0.0)


def read_step_means(file: Path) -> list[StepMean]:
    """Read a CSV with ``decode_seqs``, ``prefill_tokens`` and ``ms``; other columns are ignored.

    Raises
    ------
    InputError
        If the file cannot be read, a column is missing, or a value is out of range.
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
