"""Probabilities of rare waits, for a queue with one server: `sq.rare.tail`.

Splitting restarts paths from states in which they came far. The state of one server that serves in order of arrival is
one number, the work that is left, so this is possible for G/G/1 with any packaged law of gaps and times. It does not go
through the scheduler: the state of a simulated LLM server cannot be copied, and none of its rules are in here. It
describes a server with one slot, where a request's prefill and decodes are its service, and nothing that batches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from simqueue.errors import InputError, Problem
from simqueue.settings import problems_of
from simqueue.statistics.intervals import CONFIDENCE, mean_interval
from simqueue.statistics.splitting import Draw, choose_levels, sample
from simqueue.workload.arrivals.renewal import RenewalProcess
from simqueue.workload.arrivals.settings import ArrivalSettings
from simqueue.workload.arrivals.simple import ConstantArrivals
from simqueue.workload.build import build_arrivals, build_duration
from simqueue.workload.duration_settings import DurationSettings

_PATHS_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class RareTail:
    """P(wait > beyond_s) of G/G/1.

    Attributes
    ----------
    probability, low, high : float
        The estimate and its interval over the repetitions; `low` is at least 0.
    beyond_s : float
    levels_s : tuple of float
        Levels of work between which paths were split; the last is `beyond_s`.
    repetitions : int
    customers : int
        Customers simulated, those that chose the levels included.
    crude_customers : float or None
        Customers that a plain simulation would need for the same standard error; None if the probability is 0.
    """

    probability: float
    low: float
    high: float
    beyond_s: float
    levels_s: tuple[float, ...]
    repetitions: int
    customers: int
    crude_customers: float | None


def tail(
    arrivals: Mapping[str, Any],
    service: Mapping[str, Any] | float,
    beyond_s: float,
    *,
    paths: int = 1000,
    repetitions: int = 20,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> RareTail:
    """Return the probability that a customer of a queue with one server waits longer than `beyond_s`.

    Parameters
    ----------
    arrivals : mapping
        As the key `workload.arrivals` of a scenario; independent gaps only: poisson, gamma, weibull or constant.
    service : mapping or float
        A distribution of seconds, as the key `think_s`: constant, uniform, exponential or lognormal; or a number.
    beyond_s : float
        Seconds of waiting before service, > 0.
    paths : int
        Paths per level and repetition.
    repetitions : int
        Independent estimates, at least 2; the interval is that over them.
    seed : int
    confidence : float

    Raises
    ------
    InputError
        If a value is invalid, gaps are not independent, or the queue is not stable.

    Examples
    --------
    >>> import simqueue as sq
    >>> arrivals = {"process": "poisson", "rate_rps": 0.8}
    >>> sq.rare.tail(arrivals, {"distribution": "exponential", "mean_s": 1.0}, beyond_s=60)  # doctest: +SKIP
    """
    if not 0 < beyond_s < math.inf:
        raise InputError(f"beyond_s = {beyond_s:g}: must be a finite number > 0")
    for name, value, least in (("paths", paths, 10), ("repetitions", repetitions, 2)):
        if not least <= value <= _PATHS_LIMIT:
            raise InputError(f"{name} = {value:,}: must be from {least} to {_PATHS_LIMIT:,}")
    drawing = _drawing(arrivals, service)
    rng = np.random.default_rng([seed, 0])
    pilot = _Counted(drawing(rng))
    levels = choose_levels(pilot, beyond_s, paths, rng)
    found = []
    for i in range(repetitions):
        rng = np.random.default_rng([seed, i + 1])
        found.append(sample(drawing(rng), levels, paths, rng))
    interval = mean_interval([one.probability for one in found], confidence)
    half = interval.half_width or 0.0
    customers = pilot.drawn + sum(one.customers for one in found)
    error = float(np.std([one.probability for one in found], ddof=1)) / math.sqrt(repetitions)
    per_cycle = float(np.mean([one.cycle_customers for one in found]))
    crude = float(np.mean([one.square for one in found])) / per_cycle / error**2 if error > 0 else None
    return RareTail(
        interval.mean,
        max(0.0, interval.mean - half),
        interval.mean + half,
        beyond_s,
        levels,
        repetitions,
        customers,
        crude,
    )


class _Counted:
    """Draws, and how many there were."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.drawn = 0

    def __call__(self, n: int) -> NDArray[Any]:
        self.drawn += n
        return self._draw(n)


def _drawing(arrivals: Mapping[str, Any], service: Mapping[str, Any] | float) -> Any:
    """Return a function that makes draws of service time minus gap from a generator."""
    process = build_arrivals(_read(TypeAdapter(ArrivalSettings), arrivals, "arrivals", "process"), Path())
    duration = build_duration(_read(TypeAdapter(DurationSettings), service, "service", "distribution"))
    if not isinstance(process, RenewalProcess | ConstantArrivals):
        raise InputError("must have independent gaps: poisson, gamma, weibull or constant", "arrivals")
    if getattr(process, "normalize_to_rate", False):
        raise InputError("has no place here: there is no last arrival", "arrivals", "normalize_to_rate")
    rate = process.rate_rps
    if rate * duration.mean_s() >= 1:
        raise InputError(
            f"arrivals.rate_rps x mean of service = {rate * duration.mean_s():g}: must be below 1, else all waits grow"
        )

    def made(rng: np.random.Generator) -> Draw:
        def draw(n: int) -> NDArray[Any]:
            gaps = process.unit_gaps(rng.random(n)) if isinstance(process, RenewalProcess) else np.ones(n)
            return np.asarray(duration.sample(rng, n) - gaps / rate)

        return draw

    return made


def _read(adapter: TypeAdapter[Any], given: Any, name: str, tag: str) -> Any:
    """Return validated settings; errors have the path of the argument, without the tag that pydantic puts in."""
    try:
        return adapter.validate_python(given)
    except ValidationError as error:
        chosen = given.get(tag) if isinstance(given, Mapping) else None
        raise InputError.of(
            Problem((name, *(step for step in one.path if step != chosen)), one.text, one.value)
            for one in problems_of(error)
        ) from None
