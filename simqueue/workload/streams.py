"""Named streams of random numbers: adding a stream, or drawing more from one, leaves all others unchanged."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Draws:
    """The random streams of one workload.

    Attributes
    ----------
    seed, replication : int
    prefix : str
        Put before every purpose: the workload's name if there are several.
    """

    seed: int
    replication: int
    prefix: str = ""

    @classmethod
    def of(cls, seed: int, replication: int, workload: str | None) -> Draws:
        """Return the streams of a workload; its name is None if it is the only one."""
        return cls(seed, replication, "" if workload is None else f"{workload}.")

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the random stream of a purpose, at its beginning."""
        return stream(self.seed, self.replication, self.prefix + purpose)

    def uniform(self, request_id: str, attempt: int) -> float:
        """Return the uniform number that decides the jitter of one retry (see `simqueue.traffic.JitterDraw`)."""
        return float(self.rng(f"retry.{request_id}.{attempt}").random())
