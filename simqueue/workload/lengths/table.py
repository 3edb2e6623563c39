"""Length distributions on a table of values and weights: Zipf, histograms, observed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simqueue.datafiles.csvtable import read_table
from simqueue.errors import InputError, naming
from simqueue.workload.lengths.base import Bounds, Floats, LengthDistribution, Tokens
from simqueue.workload.limits import MOST_TOKENS

Table = tuple[Floats, Floats]
"""Values in tokens, in ascending order, and their weights."""


@dataclass(frozen=True, slots=True, eq=False)
class TableLength(LengthDistribution):
    """A distribution on finitely many values.

    Attributes
    ----------
    values, weights : float64 arrays, shape (n,)
        The values that can be drawn before clipping, in ascending order, and their weights, each above 0.
    bounds : Bounds
    """

    values: Floats
    weights: Floats
    bounds: Bounds

    @classmethod
    def of(cls, table: Table, bounds: Bounds) -> TableLength:
        """Return the distribution on those values of a table that can be drawn.

        Raises
        ------
        InputError
            If no value is inside bounds that are to be resampled.
        """
        values, weights = table
        kept = weights > 0
        if bounds.resample:
            kept &= (values >= bounds.low) & (values <= (np.inf if bounds.high is None else bounds.high))
        if not kept.any():
            raise bounds.error()
        return cls(values[kept], weights[kept], bounds)

    @property
    def tokens(self) -> Tokens:
        """The lengths after bounds, in ascending order; clipped ones repeat."""
        return self.bounds.applied(self.values)

    def of_uniforms(self, uniforms: Floats) -> Tokens:
        """Return one length for each uniform number; see `LengthDistribution.of_uniforms`."""
        cumulative = np.cumsum(self.weights)
        chosen = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
        return self.bounds.applied(self.values[np.minimum(chosen, len(self.values) - 1)])

    def mean(self) -> float:
        """Return the weighted mean after bounds."""
        return float(np.average(self.tokens, weights=self.weights))

    def variance(self) -> float:
        """Return the weighted variance (of the distribution, not an estimate from a sample) after bounds."""
        return float(np.average((self.tokens - self.mean()) ** 2, weights=self.weights))


def zipf_table(exponent: float, ranks: int) -> Table:
    """Return lengths from 1 to `ranks` with weights 1 / k^exponent."""
    values = np.arange(1, ranks + 1, dtype=np.float64)
    return values, values**-exponent


def histogram_table(edges: Sequence[int], weights: Sequence[float]) -> Table:
    """Return all lengths inside the bins; the weight of a bin is divided equally among its lengths."""
    widths = np.diff(edges)
    values = np.arange(edges[0], edges[-1], dtype=np.float64)
    return values, np.repeat(np.array(weights) / widths, widths)


def empirical_table(values: Sequence[int], weights: Sequence[float] | None) -> Table:
    """Return given lengths in ascending order, with their weights; without weights all are 1."""
    lengths = np.array(values, dtype=np.float64)
    shares = np.ones(len(lengths)) if weights is None else np.array(weights)
    order = np.argsort(lengths, kind="stable")
    return lengths[order], shares[order]


def read_lengths(path: Path, label: str) -> Table:
    """Return the lengths of a CSV file with a column ``tokens`` and an optional column ``weight``.

    Parameters
    ----------
    path : Path
    label : str
        Name of the file in messages.

    Raises
    ------
    InputError
        If the file cannot be read, has no column ``tokens``, or has a value that is not allowed.
    """
    with naming("path"):
        table = read_table(path, label)
    values = table.integers("tokens", least=1, most=MOST_TOKENS)
    weights = table.floats("weight", least=0) if "weight" in table.names else [1.0] * len(values)
    if not 0 < sum(weights) < np.inf:
        raise InputError(f"{label}: column 'weight' adds up to {sum(weights):g}; it must be positive")
    return empirical_table(values, weights)
