"""Fits the linear step time to measured steps, whatever ran them: it needs no model and no GPU."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import numpy as np

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
    from scipy.optimize import nnls  # noqa: PLC0415 - heavy, and only fits need it

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
    try:
        reader = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {error}") from error
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise InputError(f"{file}: missing column {', '.join(missing)}; needed: {', '.join(COLUMNS)}")
    return [_row(row, f"{file}, line {number}") for number, row in enumerate(reader, start=2)]


def _row(row: dict[str, str], where: str) -> StepMean:
    try:
        decodes, prompts, ms = (float(row[name] or 0) for name in COLUMNS)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from error
    if not (isfinite(ms) and ms > 0 and decodes >= 0 and prompts >= 0 and decodes + prompts > 0):
        raise InputError(f"{where}: a step needs ms > 0, and decode_seqs or prefill_tokens above 0")
    return StepMean(round(decodes), round(prompts), ms / 1e3)
