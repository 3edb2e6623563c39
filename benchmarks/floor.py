"""What SimPy itself can do on this machine: the yardstick beside every measurement."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import simpy


def one_process_per_s(timeouts: int = 400_000) -> float:
    """Return how many timeouts a second one process waits for."""
    return _timeouts_per_s(1, timeouts)


def thousand_processes_per_s(timeouts: int = 400_000) -> float:
    """Return how many timeouts a second a thousand processes wait for, all together."""
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
