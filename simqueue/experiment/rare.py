"""Probabilities of rare waits, for a queue with one server: `sq.rare.tail`.

Splitting restarts paths from states in which they came far. The state of one server that serves in order of arrival is
one number, the work that is left, so this is possible for G/G/1 with any packaged law of gaps and times. It does not go
through the scheduler: the state of a simulated LLM server cannot be copied, and none of its rules are in here. It
describes a server with one slot, where a request's prefill and decodes are its service, and nothing that batches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field

from simqueue.datafiles.yamlfile import Document
from simqueue.errors import InputError
from simqueue.scenario.plaindata import plain
from simqueue.scenario.problems import reject_other_keys, validated
from simqueue.scenario.written import Written
from simqueue.settings import Count, Settings
from simqueue.statistics.intervals import CONFIDENCE
from simqueue.statistics.moments import standard_error
from simqueue.statistics.ratio import ratio_of_means
from simqueue.statistics.splitting import Draw, Sample, choose_levels, sample
from simqueue.workload.arrivals.base import ArrivalProcess
from simqueue.workload.arrivals.renewal import RenewalProcess
from simqueue.workload.arrivals.settings import ArrivalSettings
from simqueue.workload.arrivals.simple import ConstantArrivals
from simqueue.workload.build import build_arrivals, build_duration
from simqueue.workload.duration_settings import DurationSettings
from simqueue.workload.durations import ConstantDuration, Duration, LognormalDuration, UniformDuration

_MOST = 1_000_000
MOST_SPREAD = 0.75
"""Standard deviation of the logarithms of the repetitions from which on their mean has no interval."""
_SMALL_SHARE = 0.05
"""Share of a probability that can be missed: what single services contribute to it."""
_ENOUGH_JUMPS = 200
"""So many services beyond the wait are enough, as in a plain simulation."""


@dataclass(frozen=True, slots=True)
class RareTail:
    """P(wait > beyond_s) of G/G/1.

    Attributes
    ----------
    probability : float
        Without an interval it can be far off. 0 with an interval means that no customer can ever wait so long.
    low, high : float or None
        Its interval over the repetitions, which allows for skewness, as far as probabilities go. None if they do not
        tell how sure the probability is.
    reason : str
        Why there is no interval; empty if there is one.
    beyond_s : float
    levels_s : tuple of float
        Levels of work between which paths were split; the last is `beyond_s`.
    repetitions : int
    customers : int
        Customers simulated, those that chose the levels included.
    crude_customers : float or None
        Customers that a plain simulation would need for the same standard error; None without an interval, and if the
        probability is exact.
    """

    probability: float
    low: float | None
    high: float | None
    reason: str
    beyond_s: float
    levels_s: tuple[float, ...]
    repetitions: int
    customers: int
    crude_customers: float | None


class _Asked(Settings):
    """The arguments of `tail`."""

    arrivals: ArrivalSettings
    service: DurationSettings
    beyond_s: float = Field(gt=0)
    paths: Count = Field(ge=50, le=_MOST)
    repetitions: Count = Field(ge=10, le=_MOST)
    seed: Count = Field(ge=0)
    confidence: float = Field(gt=0, lt=1)


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
        Paths per level and repetition, at least 50.
    repetitions : int
        Independent estimates, at least 10; the interval is that over them.
    seed : int
    confidence : float

    Raises
    ------
    InputError
        If a value is invalid, gaps are not independent, the queue is not stable, or the wait is so rare that no path
        comes there.

    Examples
    --------
    >>> import simqueue as sq
    >>> arrivals = {"process": "poisson", "rate_rps": 0.8}
    >>> sq.rare.tail(arrivals, {"distribution": "exponential", "mean_s": 1.0}, beyond_s=60)  # doctest: +SKIP
    """
    given = {"arrivals": arrivals, "service": service, "beyond_s": beyond_s, "paths": paths}
    given |= {"repetitions": repetitions, "seed": seed, "confidence": confidence}
    written = plain(given)
    reject_other_keys(written)
    asked = validated(_Asked, Written(Document("", written)))
    queue = _queue(asked)
    if queue.never_waits:
        return RareTail(0.0, 0.0, 0.0, "", asked.beyond_s, (asked.beyond_s,), asked.repetitions, 0, None)
    rng = np.random.default_rng([asked.seed, 0])
    pilot = _Counted(queue.drawing(rng))
    levels = choose_levels(pilot, asked.beyond_s, asked.paths, rng)
    found = []
    for i in range(asked.repetitions):
        rng = np.random.default_rng([asked.seed, i + 1])
        found.append(sample(queue.drawing(rng), levels, asked.paths, rng))
    return _estimated(asked, queue, levels, found, pilot.drawn)


def _estimated(
    asked: _Asked, queue: _Queue, levels: tuple[float, ...], found: Sequence[Sample], pilot_customers: int
) -> RareTail:
    beyond, cycles = np.array([(one.beyond, one.cycle_customers) for one in found]).T
    probability = float(beyond.sum() / cycles.sum())
    customers = pilot_customers + sum(one.customers for one in found)
    reason = (
        ("the estimate is above 1: cycles are too long for so few of them; increase paths" if probability > 1 else "")
        or _why_jumps(queue, asked.beyond_s, probability, customers)
        or _why_spread(beyond, asked.paths)
        or _why_spread(cycles, asked.paths)
    )
    low = high = crude = None
    mean = None if reason else ratio_of_means(beyond.tolist(), cycles.tolist(), asked.confidence)
    if mean is not None and mean.low is not None and mean.high is not None:
        low, high = mean.low, min(1.0, mean.high)
        # The ratio is smooth in both means, so its error is that of what each repetition has beyond it.
        error = standard_error(((beyond - probability * cycles) / cycles.mean()).tolist(), 0.0)
        crude = float(np.mean([one.square for one in found])) / float(cycles.mean()) / error / error
    return RareTail(probability, low, high, reason, asked.beyond_s, levels, asked.repetitions, customers, crude)


def _why_spread(values: NDArray[Any], paths: int) -> str:
    """Return why the repetitions are too different for an interval of their mean; empty if they are not.

    Each is a product of shares of paths, so that it is about lognormal. A few large ones decide the mean of widely
    spread values, and as long as none of these has come, an interval is too low and too narrow.
    """
    lost = int(np.sum(values == 0))
    if lost:
        return f"in {lost} of {len(values)} repetitions no path came to the end; increase paths"
    spread = float(np.std(np.log(values), ddof=1))
    if spread <= MOST_SPREAD:
        return ""
    return (
        f"the repetitions differ by a factor of about {math.exp(spread):.1f}, and a few of them decide; increase paths "
        f"to about {math.ceil(paths * (1.5 * spread / MOST_SPREAD) ** 2 / 100) * 100:,}"
    )


def _why_jumps(queue: _Queue, beyond_s: float, probability: float, customers: int) -> str:
    """Return why single services are decisive and were not seen; empty if they are not.

    Splitting finds waits that build up over many customers. After one very long service, customers wait long at once;
    of such services there are only as many as in a plain simulation.
    """
    single = queue.by_one_service(beyond_s)
    jumps = customers * queue.longer_than(beyond_s)
    if single <= _SMALL_SHARE * probability or jumps >= _ENOUGH_JUMPS:
        return ""
    return (
        f"single services of more than {beyond_s:g} s alone give such waits a probability of about {single:.1e}, and "
        f"splitting comes upon {jumps:.1g} of them; increase paths, or use theory for such a tail"
    )


@dataclass(frozen=True, slots=True)
class _Queue:
    """Independent gaps and services, of a stable queue."""

    arrivals: RenewalProcess | ConstantArrivals
    service: Duration

    @property
    def never_waits(self) -> bool:
        """Whether no service can be longer than the gap after it."""
        if isinstance(self.service, ConstantDuration):
            longest_s = self.service.mean_s()
        elif isinstance(self.service, UniformDuration):
            longest_s = self.service.high_s
        else:
            return False
        shortest_gap_s = 0.0 if isinstance(self.arrivals, RenewalProcess) else 1 / self.arrivals.rate_rps
        return longest_s <= shortest_gap_s

    def drawing(self, rng: np.random.Generator) -> Draw:
        """Return a function that draws services minus gaps."""

        def draw(n: int) -> NDArray[Any]:
            gaps = self.arrivals.unit_gaps(rng.random(n)) if isinstance(self.arrivals, RenewalProcess) else np.ones(n)
            return np.asarray(self.service.sample(rng, n) - gaps / self.arrivals.rate_rps)

        return draw

    def longer_than(self, t: float) -> float:
        """Return the probability that a service takes longer, if its tail is heavy; else 0."""
        if not isinstance(self.service, LognormalDuration):
            return 0.0
        return float(scipy.special.ndtr(-math.log(t / self.service.median_s) / self.service.sigma))

    def by_one_service(self, t: float) -> float:
        """Return the probability of waits beyond t from single services, for large t and a heavy tail; else 0.

        It is load / (1 - load) times the share of the time of all services that is beyond t (Pakes 1975;
        Veraverbeke 1977).
        """
        if not isinstance(self.service, LognormalDuration):
            return 0.0
        mean_s, sigma = self.service.mean_s(), self.service.sigma
        score = math.log(t / self.service.median_s) / sigma
        beyond_s = mean_s * scipy.special.ndtr(sigma - score) - t * scipy.special.ndtr(-score)
        load = self.arrivals.rate_rps * mean_s
        return float(max(0.0, load / (1 - load) * beyond_s / mean_s))


class _Counted:
    """Draws, and how many there were."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.drawn = 0

    def __call__(self, n: int) -> NDArray[Any]:
        self.drawn += n
        return self._draw(n)


def _queue(asked: _Asked) -> _Queue:
    process: ArrivalProcess = build_arrivals(asked.arrivals, Path())
    service = build_duration(asked.service)
    if not isinstance(process, RenewalProcess | ConstantArrivals):
        raise InputError("must have independent gaps: poisson, gamma, weibull or constant", "arrivals")
    if getattr(process, "normalize_to_rate", False):
        raise InputError("has no place here: there is no last arrival", "arrivals", "normalize_to_rate")
    load = process.rate_rps * service.mean_s()
    if load >= 1:
        raise InputError(f"arrivals.rate_rps x mean of service = {load:g}: must be below 1, else all waits grow")
    return _Queue(process, service)
