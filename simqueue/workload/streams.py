"""Named streams of random numbers: adding one, or drawing more from one, moves no other."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    import numpy as np


def stream(seed: int, replication: int, purpose: str) -> np.random.Generator:
    """Return the generator that serves one purpose in one replication.

    Parameters
    ----------
    seed : int
        The scenario's seed, at least 0.
    replication : int
        Which replication, counted from 0.
    purpose : str
        What the numbers are for, such as ``"arrivals"``. The name alone selects the stream.

    Returns
    -------
    numpy.random.Generator
        A PCG64DXSM generator at the beginning of its stream.
    """
    import numpy as np  # noqa: PLC0415  (settings stay light to import)

    key = (replication, crc32(purpose.encode()))
    return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=key)))
