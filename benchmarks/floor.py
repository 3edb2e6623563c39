"""The speed of SimPy itself on this machine, which each measurement is compared with."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import simpy


def one_process_per_s(timeouts: int = 400_000) -> float:
    """Return the timeouts per second of one process."""
    return _timeouts_per_s(1, timeouts)


def thousand_processes_per_s(timeouts: int = 400_000) -> float:
    """Return the timeouts per second of a thousand processes together."""
    return _timeouts_per_s(1000, timeouts)


def _timeouts_per_s(processes: int, timeouts: int) -> float:
    env = simpy.Environment()

    def wait(number: int, gap: float) -> Generator[simpy.Event, Any, None]:
        for _ in range(number):
            yield env.timeout(gap)

    for index in range(processes):
        env.process(wait(timeouts // processes, 1.0 + index / processes))
    started_s = time.process_time()
    env.run()
    return timeouts / (time.process_time() - started_s)
