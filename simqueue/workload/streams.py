"""Named streams of random numbers: adding a stream, or drawing more from one, leaves all others unchanged."""

from __future__ import annotations

from zlib import crc32

import numpy as np


def stream(seed: int, replication: int, purpose: str) -> np.random.Generator:
    """Return the generator for one purpose in one replication.

    Parameters
    ----------
    seed : int
        The scenario's seed, at least 0.
    replication : int
        Number of the replication, counted from 0.
    purpose : str
        What the numbers are for, such as ``"arrivals"``. The name alone selects the stream.

    Returns
    -------
    numpy.random.Generator
        A PCG64DXSM generator at the beginning of its stream.
    """
    key = (replication, crc32(purpose.encode()))
    return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=key)))
