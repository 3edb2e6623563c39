"""Rare waits of a queue with one server, by multilevel splitting.

P(wait > t) is the share of the customers that find more than t seconds of work. The work that successive customers find
follows Lindley's recursion and starts again with each customer that finds none. So

    P(wait > t) = (mean number of customers of a cycle that wait longer than t) / (mean number of customers of a cycle).

The levels between 0 and t are passed one after the other (fixed splitting; Glasserman, Heidelberger, Shahabuddin and
Zajic 1999, Multilevel splitting for estimating rare event probabilities): from states in which paths passed a level,
many new paths start, until they pass the next level or their cycle ends. The last paths count the customers beyond t.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError

Draw = Callable[[int], NDArray[Any]]
"""Number -> as many draws of a service time minus the gap to the next arrival."""

_PASSED = 0.25
"""Share of the pilot paths that pass a level."""
MOST_LEVELS = 60
"""With so many levels a probability is about 1e-36: no queue is ever watched so long."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one repetition found.

    Attributes
    ----------
    beyond : float
        Mean number of customers of a cycle that wait longer than t; 0 if no path came to the last level.
    cycle_customers : float
        Mean number of customers of a cycle.
    square : float
        Mean squared number of customers of a cycle that wait longer than t.
    customers : int
        Customers that were simulated.
    """

    beyond: float
    cycle_customers: float
    square: float
    customers: int

    @property
    def probability(self) -> float:
        """The estimate of this repetition alone."""
        return self.beyond / self.cycle_customers


def choose_levels(draw: Draw, t: float, paths: int, rng: np.random.Generator) -> tuple[float, ...]:
    """Return levels up to `t` of which a path that passed one passes the next with a chance of about a quarter.

    Pilot paths choose them: the next level is what a quarter of the paths from the one before exceed. If fewer
    customers than that wait at all, the first level is 0.

    Raises
    ------
    InputError
        If `t` cannot be reached with so many paths, or with `MOST_LEVELS` levels.
    """
    levels: list[float] = []
    states = np.zeros(paths)
    while True:
        level = float(np.quantile(_Stage(draw, t).run(states).highest, 1 - _PASSED))
        if level >= t:
            return (*levels, t)
        if len(levels) == MOST_LEVELS:
            raise InputError(
                f"after {MOST_LEVELS} levels, paths have come to {level:g} s; what is rarer than that, about "
                f"{_PASSED**MOST_LEVELS:.0e}, cannot be estimated",
                "beyond_s",
                value=t,
            )
        levels.append(level)
        passed = _Stage(draw, level).run(states).passed
        if not len(passed):
            raise InputError(
                f"too few: none of them passed the level of {level:g} s; increase them, if longer waits are possible",
                "paths",
                value=paths,
            )
        states = np.resize(rng.permutation(passed), paths)


def sample(draw: Draw, levels: Sequence[float], paths: int, rng: np.random.Generator) -> Sample:
    """Return one estimate of P(wait > the last level), with `paths` paths per level."""
    cycles = _Stage(draw, np.inf).run(np.zeros(paths))
    customers = cycles.customers
    chance, states = 1.0, np.zeros(paths)
    for level in levels:
        stage = _Stage(draw, level).run(states)
        customers += stage.customers
        chance *= len(stage.passed) / paths
        if not len(stage.passed):
            return Sample(0.0, cycles.customers / paths, 0.0, customers)
        states = np.resize(rng.permutation(stage.passed), paths)  # each about equally often
    last = _Stage(draw, np.inf, count_above=levels[-1]).run(states)
    per_cycle = cycles.customers / paths
    mean, square = float(last.above.mean()), float(np.mean(last.above**2))
    return Sample(chance * mean, per_cycle, chance * square, customers + last.customers)


class _Stage:
    """Paths that advance together, each until it passes a level or its cycle ends.

    Attributes
    ----------
    passed : array
        The work found by the customer with which a path passed the level.
    highest : array of shape (paths,)
        Most work found on each path, up to the end of the stage.
    above : array of shape (paths,)
        Customers that find more work than `count_above`, the first one included.
    customers : int
        Customers simulated.
    """

    def __init__(self, draw: Draw, level: float, count_above: float = np.inf) -> None:
        self._draw, self._level, self._count_above = draw, level, count_above
        self.passed: NDArray[Any] = np.zeros(0)
        self.highest: NDArray[Any] = np.zeros(0)
        self.above: NDArray[Any] = np.zeros(0)
        self.customers = 0

    def run(self, states: NDArray[Any]) -> _Stage:
        """Run one path from each state."""
        self.highest = states.astype(np.float64)
        self.above = (states > self._count_above).astype(np.float64)
        already = states > self._level
        passed = [states[already]]
        alive = np.flatnonzero(~already)
        work = states[alive]
        while len(alive):
            self.customers += len(alive)  # whose service, and the gap after them, are drawn
            work = work + self._draw(len(alive))
            self.highest[alive] = np.maximum(self.highest[alive], work)
            self.above[alive] += work > self._count_above
            beyond = work > self._level
            passed.append(work[beyond])
            stays = (work > 0) & ~beyond
            alive, work = alive[stays], work[stays]
        self.passed = np.concatenate(passed)
        return self
