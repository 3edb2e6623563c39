"""The time of SimPy itself."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
import simpy

from .common import Measure

TIMEOUTS = 1000


@pytest.mark.parametrize("processes", [1, 1000])
def test_a_thousand_timeouts(benchmark: Measure, processes: int) -> None:
    """A thousand timeouts of one process, or of a thousand processes that exist already."""
    env = simpy.Environment()

    def wait(gap: float) -> Generator[simpy.Event, Any, None]:
        while True:
            yield env.timeout(gap)

    for _ in range(processes):
        env.process(wait(1.0))
    for _ in range(processes):
        env.step()

    def run() -> None:
        for _ in range(TIMEOUTS):
            env.step()

    benchmark(run)
    assert env.now > 0
