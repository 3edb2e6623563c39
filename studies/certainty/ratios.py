"""How often the interval of a ratio of means contains the true ratio, now and before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simqueue.statistics.intervals import mean_interval
from simqueue.statistics.ratio import ratio_of_means

REPLICATIONS: Final = (5, 10, 20)
TRIES: Final = 1000
SEED: Final = 40
_CUSTOMERS: Final = 300
_LOADS: Final = (0.7, 0.6)
_LONG: Final = 40_000
Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Covered:
    """One kind of paired values.

    Attributes
    ----------
    kind : str
    now, before : tuple of float
        Share of the intervals that contain the true ratio, for each of `REPLICATIONS`: the ratio of means, and the
        exponential of the mean logarithm.
    """

    kind: str
    now: tuple[float, ...]
    before: tuple[float, ...]


def measured() -> list[Covered]:
    """Return the coverage for every kind of values."""
    tables = [list(_kinds(np.random.default_rng(SEED + n), n)) for n in REPLICATIONS]
    return [
        Covered(
            kinds[0][0],
            tuple(_share(pair, true, _now) for _, pair, true in kinds),
            tuple(_share(pair, true, _before) for _, pair, true in kinds),
        )
        for kinds in zip(*tables, strict=True)
    ]


def _kinds(rng: np.random.Generator, n: int) -> Iterator[tuple[str, Pair, float]]:
    """Yield names, values (one row per experiment), and true ratios."""

    def normal() -> NDArray[np.float64]:
        return rng.normal(size=(TRIES, n))

    def gamma(shape: float) -> NDArray[np.float64]:
        return rng.gamma(shape, 1, (TRIES, n))

    luck = normal()
    yield "normal, shared luck", (10 + luck + normal() / 2, 8 + luck + normal() / 2), 1.25
    base = gamma(2)
    yield "gamma, shared part", (base + gamma(2), base + gamma(2) / 2), 4 / 3
    yield "exponential, independent", (2 * gamma(1), gamma(1)), 2.0
    base = gamma(1)
    yield "exponential, a delay more", (base + gamma(1), base), 2.0
    for spread in (0.3, 0.6, 1.0):
        shared, own = spread * normal(), spread / 2 * normal()
        yield f"lognormal, spread {spread:g}", (2 * np.exp(shared + own), np.exp(shared - own)), 2.0
    base = gamma(3)
    yield "square against value", (base**2 + 1, base + 1), 13 / 4
    shared = 0.5 * normal()
    true = math.exp((1.6 * 0.5) ** 2 / 2 + 0.005 - 0.5**2 / 2)
    yield "power 1.6 of a lognormal", (np.exp(1.6 * shared + 0.1 * normal()), np.exp(shared)), true
    long = _mm1(np.random.default_rng(SEED), _LONG)
    pair = _mm1(rng, TRIES * n)
    yield (
        f"M/M/1, {_CUSTOMERS} stays, loads {_LOADS[0]:g} and {_LOADS[1]:g}",
        (pair[0].reshape(TRIES, n), pair[1].reshape(TRIES, n)),
        float(long[0].mean() / long[1].mean()),
    )


def _mm1(rng: np.random.Generator, runs: int) -> Pair:
    """Return the mean stays of M/M/1 from empty with two service rates, on the same arrivals and services."""
    gaps, work = rng.exponential(1, (runs, _CUSTOMERS)), rng.exponential(1, (runs, _CUSTOMERS))
    above, below = (_mean_stay(gaps, load * work) for load in _LOADS)
    return above, below


def _mean_stay(gaps: NDArray[np.float64], work: NDArray[np.float64]) -> NDArray[np.float64]:
    wait = np.zeros(len(gaps))
    total = work.sum(axis=1)
    for k in range(1, gaps.shape[1]):
        wait = np.maximum(0, wait + work[:, k - 1] - gaps[:, k])
        total += wait
    return np.asarray(total / gaps.shape[1])


def _share(pair: Pair, true: float, contains: Callable[[list[float], list[float], float], bool]) -> float:
    hits = [contains(a.tolist(), b.tolist(), true) for a, b in zip(*pair, strict=True)]
    return float(np.mean(hits))


def _now(values: list[float], base: list[float], true: float) -> bool:
    found = ratio_of_means(values, base)
    return found is not None and found.low is not None and found.high is not None and found.low <= true <= found.high


def _before(values: list[float], base: list[float], true: float) -> bool:
    found = mean_interval([math.log(a / b) for a, b in zip(values, base, strict=True)])
    return abs(found.value - math.log(true)) <= (found.half_width or 0.0)
