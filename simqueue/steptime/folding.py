"""Contexts of consecutive steps, as a range or as an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simqueue.steptime.base import Batch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ARRAYS_PAY_ABOVE = 64
"""Number of consecutive steps above which numpy, with its fixed cost per call, is faster than plain Python."""


def contexts(batch: Batch, n: int) -> range:
    """Return the summed decode context of `n` consecutive steps. Precondition: the batch has decodes."""
    first, growth = batch.context_tokens, batch.decode_seqs
    return range(first, first + n * growth, growth)


def context_array(batch: Batch, n: int) -> NDArray[np.int64]:
    """Return the same as an array.

    The values are integers, so that each is rounded once when it becomes a float, as a Python int is.
    """
    return integers(batch.context_tokens, n, batch.decode_seqs)


def integers(first: int, n: int, growth: int) -> NDArray[np.int64]:
    """Return `n` integers from `first`, each `growth` larger than the one before (at least 1)."""
    import numpy as np  # noqa: PLC0415 - numpy loads slowly, and commands that check a scenario build step times too

    return np.arange(first, first + n * growth, growth, dtype=np.int64)
