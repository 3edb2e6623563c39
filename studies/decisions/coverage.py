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
from studies.decisions import lindley
from studies.decisions.exact import Problem, problems

PAGE: Final = "decisions-coverage.md"
REPETITIONS: Final = 100
MORE: Final = 4
"""Times as many repetitions without the engine."""
FIRST_REQUESTS: Final = 1000
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


def by_recursion(problem: Problem, count: int, precision: float) -> list[Repetition]:
    """Return independent searches whose waits are computed without the engine; none if that is not possible."""
    if problem.one_seat is None:
        return []
    made = []
    for seed in range(count):
        found, trials = lindley.search(
            problem, problem.one_seat, seed=seed, precision=precision, requests=FIRST_REQUESTS
        )
        requests = sum(size.requests * size.replications for _, size in trials.points)
        at = found.crossing
        ends = (math.nan,) * 3 if at is None else (at.rate_rps, at.low_rps or math.nan, at.high_rps or math.nan)
        made.append(Repetition(*ends, trials.budget.runs, requests))
    return made


def repeated(problem: Problem, count: int, precision: float, workers: int | None) -> list[Repetition]:
    """Return independent searches, by seed."""
    made: dict[int, Repetition] = {}
    with executor(workers) as running:
        for seed, outcome in running.unordered(partial(search, problem, precision), range(count)):
            if isinstance(outcome, Failed):
                outcome.reraise()
            made[seed] = outcome
    return [made[seed] for seed in range(count)]


def lines(problem: Problem, made: Sequence[Repetition], recursive: Sequence[Repetition]) -> list[str]:
    """Return the part of the page about one problem: with the engine, and with waits by a recursion."""
    exact = problem.rate_rps
    columns = [
        (name, found)
        for name, found in (
            ("engine", made),
            ("recursion, the first 100", recursive[:REPETITIONS]),
            ("recursion", recursive),
        )
        if found
    ]
    rows = [_row(exact, found) for _, found in columns]
    return [
        f"## {problem.name}",
        "",
        f"{problem.title}. Exact: {exact:.4f} requests/s ({problem.how}).",
        "",
        "| | " + " | ".join(name for name, _ in columns) + " |",
        "|---|" + "---:|" * len(columns),
        *(f"| {label} | " + " | ".join(row[label] for row in rows) + " |" for label in rows[0]),
        "",
    ]


def _row(exact: float, made: Sequence[Repetition]) -> dict[str, str]:
    """Return label and value of each line of the table."""
    rates = np.array([one.rate_rps for one in made])
    errors = 100 * (rates / exact - 1)
    low, high = np.array([one.low_rps for one in made]), np.array([one.high_rps for one in made])
    sides = 100 * np.maximum(high - rates, rates - low) / rates
    return {
        "repetitions": f"{len(made):,}",
        "intervals that contain the exact rate": f"{int(np.sum((low <= exact) & (exact <= high))):,}",
        "intervals below it, above it": f"{int(np.sum(high < exact))}, {int(np.sum(low > exact))}",
        "mean error of the estimate": f"{errors.mean():+.2f} %",
        "standard deviation of the error": f"{errors.std(ddof=1) if len(made) > 1 else math.nan:.2f} %",
        "largest error": f"{np.abs(errors).max():.2f} %",
        "longer side of the interval, mean": f"{sides.mean():.2f} %",
        "runs, mean": f"{np.mean([one.runs for one in made]):.0f}",
        "simulated requests, mean": f"{np.mean([one.requests for one in made]):,.0f}",
    }


def head() -> list[str]:
    """Return the beginning of the page."""
    return [
        "<!-- written by: python -m studies.decisions coverage -->",
        "# Capacity under a limit: how often the interval contains the exact rate",
        "",
        f"Searches to a precision of {100 * PRECISION:g} %, each with a seed of its own; nominal coverage: 95 %.",
        "Those with the engine are `sq.capacity` as it is. The others have the same search, statistics and random",
        "numbers, on waits by Lindley's recursion, which are those of the engine, as a test shows. With one seed,",
        "both answer alike, up to the rates that are looked at first. They take a hundredth of the time.",
        "",
    ]


def write(folder: Path, *, repetitions: int = REPETITIONS, workers: int | None = None) -> list[Path]:
    """Measure all problems, write the page to a folder, and return its path."""
    made = head()
    for problem in problems():
        recursive = by_recursion(problem, MORE * repetitions, PRECISION)
        made += lines(problem, repeated(problem, repetitions, PRECISION, workers), recursive)
    path = folder / PAGE
    path.write_text("\n".join(made).rstrip() + "\n", encoding="utf-8", newline="\n")
    return [path]
