"""How often the interval of a capacity contains the exact one, over independent repetitions of the search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from simqueue.decisions.capacity import capacity
from simqueue.execution import Failed, executor
from studies.decisions.exact import Problem, problems

PAGE: Final = "decisions-coverage.md"
REPETITIONS: Final = 100
PRECISION: Final = 0.1


@dataclass(frozen=True, slots=True)
class Repetition:
    """One search: its answer with the ends of its interval, its runs, and the requests of all of them."""

    rate_rps: float
    low_rps: float
    high_rps: float
    runs: int
    requests: int


def search(problem: Problem, precision: float, seed: int) -> Repetition:
    """Return one search, with random numbers of its own."""
    (found,) = capacity(problem.keys, slo=problem.slo, precision=precision, seed=seed, workers=1).each
    requests = sum(point.size.requests * point.size.replications for point in found.points)
    ends = (found.capacity_rps, found.low_rps, found.high_rps)
    rate, low, high = (math.nan if value is None else value for value in ends)
    return Repetition(rate, low, high, found.runs, requests)


def repeated(problem: Problem, count: int, precision: float, workers: int | None) -> list[Repetition]:
    """Return independent searches, by seed."""
    made: dict[int, Repetition] = {}
    with executor(workers) as running:
        for seed, outcome in running.unordered(partial(search, problem, precision), range(count)):
            if isinstance(outcome, Failed):
                outcome.reraise()
            made[seed] = outcome
    return [made[seed] for seed in range(count)]


def lines(problem: Problem, made: Sequence[Repetition]) -> list[str]:
    """Return the part of the page about one problem."""
    exact = problem.rate_rps
    rates = np.array([one.rate_rps for one in made])
    covered = sum(one.low_rps <= exact <= one.high_rps for one in made)
    errors = rates / exact - 1
    sides = np.array([max(one.high_rps - one.rate_rps, one.rate_rps - one.low_rps) / one.rate_rps for one in made])
    mean, worst = 100 * errors.mean(), 100 * np.abs(errors).max()
    deviation = 100 * errors.std(ddof=1) if len(made) > 1 else math.nan
    return [
        f"## {problem.name}",
        "",
        f"{problem.title}. Exact: {exact:.4f} requests/s ({problem.how}).",
        "",
        "| | |",
        "|---|---:|",
        f"| repetitions | {len(made)} |",
        f"| intervals that contain the exact rate | {covered} |",
        f"| below, above | {sum(one.high_rps < exact for one in made)}, {sum(one.low_rps > exact for one in made)} |",
        f"| mean error of the estimate | {mean:+.2f} % |",
        f"| its standard deviation | {deviation:.2f} % |",
        f"| largest error | {worst:.2f} % |",
        f"| longer side of the interval, mean | {100 * sides.mean():.2f} % |",
        f"| runs, mean | {np.mean([one.runs for one in made]):.0f} |",
        f"| simulated requests, mean | {np.mean([one.requests for one in made]):,.0f} |",
        "",
    ]


def write(folder: Path, *, repetitions: int = REPETITIONS, workers: int | None = None) -> list[Path]:
    """Measure all problems, write the page to a folder, and return its path."""
    made = [
        "<!-- written by: python -m studies.decisions coverage -->",
        "# Capacity under a limit: how often the interval contains the exact rate",
        "",
        f"Searches to a precision of {100 * PRECISION:g} %, each with a seed of its own; nominal coverage: 95 %.",
        "",
    ]
    for problem in problems():
        made += lines(problem, repeated(problem, repetitions, PRECISION, workers))
    path = folder / PAGE
    path.write_text("\n".join(made).rstrip() + "\n", encoding="utf-8", newline="\n")
    return [path]
