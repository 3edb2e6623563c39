"""What models share when they price many steps in a row: how contexts grow, and when arrays pay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simqueue.steptime.base import Batch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ARRAYS_PAY_ABOVE = 64
"""Steps in a row from which numpy's fixed cost is less than what it saves over plain Python."""


def contexts(batch: Batch, n: int) -> range:
    """Return the summed decode context of `n` steps in a row; the batch must decode something."""
    first, growth = batch.context_tokens, batch.decode_seqs
    return range(first, first + n * growth, growth)


def context_array(batch: Batch, n: int) -> NDArray[np.int64]:
    """Return the same as an array.

    Integers, so that each becomes a float in the same single rounding as a Python int does.
    """
    return integers(batch.context_tokens, n, batch.decode_seqs)


def integers(first: int, n: int, growth: int) -> NDArray[np.int64]:
    """Return `n` integers from `first`, each `growth` larger than the one before (at least 1)."""
    import numpy as np  # noqa: PLC0415 - numpy loads slowly, and commands that check a scenario build step times too

    return np.arange(first, first + n * growth, growth, dtype=np.int64)
