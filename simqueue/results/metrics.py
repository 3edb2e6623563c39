"""Definitions of the metrics, one function each, on plain arrays.

Names and formulas of the latencies are those of vLLM's serving benchmark (``vllm/benchmarks/serve.py``):
TTFT, TPOT and E2EL are taken per request, ITL is pooled over tokens. Everything here is in seconds; tables
and summaries show milliseconds. NaN marks a request for which a quantity is undefined; statistics of nothing
are None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.request import Status

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def has_status(requests: Mapping[str, NDArray[Any]], status: Status) -> Mask:
    """Return which requests ended as `status`, shape (n_requests,)."""
    return np.asarray(requests["status"] == status.value, dtype=np.bool_)


class Latencies:
    """The latencies of each request, in seconds, NaN where undefined; arrays of shape (n_requests,).

    They count from when the request was wanted: from its arrival, or earlier if it waited at its client or is a retry.
    Each is made when it is asked for, since those of a long run take much memory.
    """

    def __init__(self, requests: Mapping[str, NDArray[Any]]) -> None:
        self._requests = requests

    @property
    def queue_s(self) -> Floats:
        """From arrival to the start of the first step that works on the request. Undefined if none did."""
        return np.asarray(self._requests["first_scheduled_s"] - self._wanted_s())

    @property
    def ttft_s(self) -> Floats:
        """Time to first token, from arrival to the first token the client saw (a preemption does not take it back).

        Undefined where no token was made.
        """
        return np.asarray(self._requests["first_token_s"] - self._wanted_s())

    @property
    def tpot_s(self) -> Floats:
        """Time per output token after the first: (E2EL - TTFT) / (tokens - 1).

        Undefined for outputs of one token and for requests that did not finish.
        """
        requests = self._requests
        finished = has_status(requests, Status.FINISHED)
        return tpot_s(requests["first_token_s"], requests["finish_s"], requests["tokens_emitted"], finished)

    @property
    def e2el_s(self) -> Floats:
        """End-to-end latency, from arrival to the end. Undefined for requests that did not finish."""
        finished = has_status(self._requests, Status.FINISHED)
        return np.where(finished, self._requests["finish_s"] - self._wanted_s(), np.nan)

    @property
    def max_itl_s(self) -> Floats:
        """The longest gap between two consecutive tokens. Undefined with fewer than two tokens."""
        return np.asarray(self._requests["max_itl_s"], dtype=np.float64)

    def _wanted_s(self) -> Floats:
        return np.asarray(self._requests["wanted_s" if "wanted_s" in self._requests else "arrival_s"])


def latencies(requests: Mapping[str, NDArray[Any]]) -> Latencies:
    """Return the latencies of each request of a recording's `requests` columns."""
    return Latencies(requests)


def client_wait_s(requests: Mapping[str, NDArray[Any]]) -> Floats:
    """Return how long each request waited at its client (for its turn to send, or to try again), in seconds."""
    return np.asarray(requests["arrival_s"] - requests.get("wanted_s", requests["arrival_s"]))


def tpot_s(first_token_s: Floats, finish_s: Floats, tokens: Integers, finished: Mask) -> Floats:
    """Return (finish - first token) / (tokens - 1) in seconds, NaN where undefined."""
    gaps = tokens - 1
    tpot = np.full(len(gaps), np.nan)
    np.divide(finish_s - first_token_s, gaps, out=tpot, where=finished & (gaps > 0))
    return tpot


def mean(values: Floats) -> float | None:
    """Return the arithmetic mean, or None of nothing."""
    return float(np.mean(values)) if len(values) else None


def percentile(values: Floats, q: float) -> float | None:
    """Return the `q`-th percentile (0 to 100) by numpy's linear interpolation, or None of nothing."""
    return float(np.percentile(values, q)) if len(values) else None


def total(parts: Iterable[Floats]) -> float:
    """Return the sum of all numbers, summed exactly and rounded once: how they are cut into parts changes no bit."""
    # a view hands out one number after the other, where a list would hold them all
    return math.fsum(number for part in parts for number in part.data)


def products(values: Floats, counts: Integers) -> Iterator[Floats]:
    """Yield arrays whose exact sum is the exact sum of values * counts, for counts from 0 up to 2^52.

    A product of two numbers of 53 bits rounds; those of their halves do not (Dekker, A floating-point technique for
    extending the available precision, 1971).
    """
    scaled = values * (2.0**27 + 1)
    high = scaled - (scaled - values)
    few, many = counts % 2**26, counts - counts % 2**26
    for half in (high, values - high):
        yield half * few
        if many.any():
            yield half * many


def share(part: float, whole: float) -> float | None:
    """Return part / whole, or None where there is no whole."""
    return part / whole if whole > 0 else None


@dataclass(frozen=True)
class Pooled:
    """A sample given as distinct values in rising order and how often each occurs.

    Two ways of cutting the same sample into (value, count) pairs give the same `Pooled`, and so the same
    statistics to the last bit.
    """

    values: Floats
    counts: Integers

    @classmethod
    def of(cls, values: Floats, counts: Integers) -> Pooled:
        """Pool pairs in any order, with equal values and zero counts allowed."""
        held = counts > 0
        distinct, index = np.unique(values[held], return_inverse=True)
        totals = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(totals, index, counts[held])
        return cls(distinct, totals)

    @property
    def count(self) -> int:
        """Size of the sample."""
        return int(np.sum(self.counts))

    @property
    def maximum(self) -> float | None:
        """Largest value, or None of nothing."""
        return float(self.values[-1]) if len(self.values) else None

    def at(self, places: Sequence[int]) -> list[float]:
        """Return the members at some places of the sample in rising order, counted from 0."""
        found: list[float] = self.values[np.searchsorted(np.cumsum(self.counts), places, side="right")].tolist()
        return found

    def mean(self) -> float | None:
        """Return the exact sum of the sample, rounded, over its size, or None of nothing."""
        return total(products(self.values, self.counts)) / self.count if len(self.values) else None

    def percentile(self, q: float) -> float | None:
        """Return the `q`-th percentile (0 to 100) of the sample, or None of nothing.

        The value is bit-identical to ``np.percentile(np.repeat(values, counts), q)``, whose interpolation
        (method ``linear``) it follows, without expanding the sample.
        """
        if not len(self.values):
            return None
        place = Place.of(q, self.count)
        return place.between(*self.at([place.below, place.above]))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a percentile lies: between two members of a sample in rising order, counted from 0.

    Attributes
    ----------
    below, above : int
    weight : float
        How far it is from the one below towards the one above, from 0 to 1.
    """

    below: int
    above: int
    weight: float

    @classmethod
    def of(cls, q: float, count: int) -> Place:
        """Find the `q`-th percentile (0 to 100) of `count` (>= 1) members."""
        last = count - 1
        position = last * (q / 100)
        below = min(math.floor(position), last)
        return cls(below, min(below + 1, last), position - below)

    def between(self, low: float, high: float) -> float:
        """Return the percentile, given the two members."""
        # numpy works from the nearer neighbour, which decides the last bit.
        if self.weight < 0.5:
            return low + (high - low) * self.weight
        return high - (high - low) * (1 - self.weight)


def meets_slo(found: Latencies, slo: Mapping[str, float]) -> Mask:
    """Return which requests meet every given SLO, shape (n_requests,).

    Parameters
    ----------
    found : Latencies
    slo : mapping
        Upper bounds in milliseconds, any of ttft_ms, tpot_ms, e2el_ms. A bound itself is still met. A
        finished request without a TPOT, its output being one token, meets any TPOT bound, as in vLLM.
    """
    met = ~np.isnan(found.e2el_s)
    for name, bound_ms in slo.items():
        latency_ms = 1000 * getattr(found, name.removesuffix("_ms") + "_s")
        met &= (latency_ms <= bound_ms) | ((name == "tpot_ms") & np.isnan(latency_ms))
    return met
