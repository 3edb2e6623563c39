"""Definitions of the metrics on plain arrays.

The names and formulas of the latencies are those of vLLM's serving benchmark (``vllm/benchmarks/serve.py``): TTFT, TPOT
and E2EL are per request, and ITL is pooled over tokens. Values here are in seconds; tables and summaries show
milliseconds. NaN means that a quantity is undefined for a request. Statistics of an empty sample are None.
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
    """Return a mask of the requests with this status, shape (n_requests,)."""
    return np.asarray(requests["status"] == status.value, dtype=np.bool_)


class Latencies:
    """The latencies of each request, in seconds, NaN if undefined; arrays of shape (n_requests,).

    A latency starts when the request is sent, as in vLLM's benchmark. What the request waited at its client before, for
    a free connection or after a timeout, is `client_wait_s`. Each array is computed on access, because those of a long
    run take much memory.

    Parameters
    ----------
    requests : mapping of str to array
        The `requests` columns of a recording.
    """

    def __init__(self, requests: Mapping[str, NDArray[Any]]) -> None:
        self._requests = requests

    @property
    def queue_s(self) -> Floats:
        """Time from the scheduler's receipt to the start of the first step with it; undefined if there is none."""
        waited_s = self._requests["first_scheduled_s"] - self._requests["arrival_s"]
        return np.asarray(waited_s - front_end_s(self._requests))

    @property
    def ttft_s(self) -> Floats:
        """Time to the first token that the client saw; a later preemption does not change it.

        Undefined if no token was emitted.
        """
        return np.asarray(self._seen_s - self._requests["arrival_s"])

    @property
    def tpot_s(self) -> Floats:
        """Time per output token after the first, as the tokens are made: (last - first) / (tokens - 1).

        That is (E2EL - TTFT) / (tokens - 1) unless a front end holds back the first token. Undefined for outputs of one
        token and for requests that have not finished.
        """
        requests = self._requests
        finished = has_status(requests, Status.FINISHED)
        return tpot_s(requests["first_token_s"], requests["finish_s"], requests["tokens_emitted"], finished)

    @property
    def e2el_s(self) -> Floats:
        """End-to-end latency, to the last token; undefined for requests that have not finished."""
        finished = has_status(self._requests, Status.FINISHED)
        ends_s = np.fmax(self._requests["finish_s"], self._seen_s)
        return np.where(finished, ends_s - self._requests["arrival_s"], np.nan)

    @property
    def _seen_s(self) -> Floats:
        """When the client saw the first token."""
        first_s = np.asarray(self._requests["first_token_s"])
        delay_s = self._requests.get("first_token_delay_s")
        return first_s if delay_s is None else first_s + delay_s

    @property
    def max_itl_s(self) -> Floats:
        """The longest gap between two consecutive tokens; undefined with fewer than two tokens."""
        return np.asarray(self._requests["max_itl_s"], dtype=np.float64)


def client_wait_s(requests: Mapping[str, NDArray[Any]]) -> Floats:
    """Return how long each request waited at its client, for a free connection or for a retry, in seconds."""
    return np.asarray(requests["arrival_s"] - requests.get("wanted_s", requests["arrival_s"]))


def front_end_s(requests: Mapping[str, NDArray[Any]]) -> Floats:
    """Return how long each request was on its way to the scheduler, through a front end, in seconds; 0 without one.

    Behind a router it is that of its last replica, from when the request reached it.
    """
    on_the_way_s = requests.get("submitted_s", np.full(1, np.nan)) - requests.get("reached_s", requests["arrival_s"])
    return np.asarray(np.nan_to_num(on_the_way_s, nan=0.0), dtype=np.float64)


def busy_s(steps: Mapping[str, NDArray[Any]], end_s: float) -> Floats:
    """Return the GPU time of rows of steps up to the end of a run, in seconds.

    A step can end after the horizon, or after the last client has given up.
    """
    inside_s = np.clip(end_s - steps["start_s"], 0, None)
    outlasts = steps["start_s"] + steps["duration_s"] > end_s
    return np.where(outlasts, inside_s, steps["duration_s"])


def tpot_s(first_token_s: Floats, finish_s: Floats, tokens: Integers, finished: Mask) -> Floats:
    """Return (finish - first token) / (tokens - 1) in seconds, NaN if undefined."""
    gaps = tokens - 1
    tpot = np.full(len(gaps), np.nan)
    np.divide(finish_s - first_token_s, gaps, out=tpot, where=finished & (gaps > 0))
    return tpot


def mean(values: Floats) -> float | None:
    """Return the arithmetic mean, or None if there are no values."""
    return float(np.mean(values)) if len(values) else None


def percentile(values: Floats, q: float) -> float | None:
    """Return the `q`-th percentile (0 to 100) by numpy's linear interpolation, or None if there are no values."""
    return float(np.percentile(values, q)) if len(values) else None


def total(parts: Iterable[Floats]) -> float:
    """Return the exact sum of all numbers, rounded once, so that it does not depend on how they are cut into parts."""
    # A memory view yields one number at a time; a list would hold all of them.
    return math.fsum(number for part in parts for number in part.data)


def products(values: Floats, counts: Integers) -> Iterator[Floats]:
    """Yield arrays whose exact sum is the exact sum of values * counts, for counts from 0 up to 2^52.

    The product of two 53-bit numbers is rounded; the products of their halves are exact (Dekker, A floating-point
    technique for extending the available precision, 1971).
    """
    scaled = values * (2.0**27 + 1)
    high = scaled - (scaled - values)
    few, many = counts % 2**26, counts - counts % 2**26
    for half in (high, values - high):
        yield half * few
        if many.any():
            yield half * many


def share(part: float, whole: float) -> float | None:
    """Return part / whole, or None unless whole > 0."""
    return part / whole if whole > 0 else None


@dataclass(frozen=True)
class Pooled:
    """A sample as distinct values in ascending order and their counts.

    Any division of the same sample into (value, count) pairs gives the same `Pooled`, and so bit-identical statistics.
    """

    values: Floats
    counts: Integers

    @classmethod
    def of(cls, values: Floats, counts: Integers) -> Pooled:
        """Pool pairs in any order; equal values and zero counts are allowed."""
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
        """Largest value, or None if the sample is empty."""
        return float(self.values[-1]) if len(self.values) else None

    def at(self, ranks: Sequence[int]) -> list[float]:
        """Return the values with these ranks in ascending order, counted from 0."""
        found: list[float] = self.values[np.searchsorted(np.cumsum(self.counts), ranks, side="right")].tolist()
        return found

    def mean(self) -> float | None:
        """Return the exact sum of the sample, rounded, over its size, or None if the sample is empty."""
        return total(products(self.values, self.counts)) / self.count if len(self.values) else None

    def percentile(self, q: float) -> float | None:
        """Return the `q`-th percentile (0 to 100) of the sample, or None if the sample is empty.

        The value is bit-identical to ``np.percentile(np.repeat(values, counts), q)`` (method ``linear``), but the
        sample is not expanded.
        """
        if not len(self.values):
            return None
        position = Position.of(q, self.count)
        return position.between(*self.at([position.below, position.above]))


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a percentile between two values of a sample in ascending order.

    Attributes
    ----------
    below, above : int
        Ranks of the two values, counted from 0.
    weight : float
        Distance from the value below, as a share (0 to 1) of that between the two.
    """

    below: int
    above: int
    weight: float

    @classmethod
    def of(cls, q: float, count: int) -> Position:
        """Return the position of the `q`-th percentile (0 to 100) of `count` (>= 1) values."""
        last = count - 1
        position = last * (q / 100)
        below = min(math.floor(position), last)
        return cls(below, min(below + 1, last), position - below)

    def between(self, low: float, high: float) -> float:
        """Return the percentile, given the two values."""
        # Like numpy, start from the nearer value: it decides the last bit.
        if self.weight < 0.5:
            return low + (high - low) * self.weight
        return high - (high - low) * (1 - self.weight)


def meets_slo(found: Latencies, slo: Mapping[str, float]) -> Mask:
    """Return a mask of the requests that meet every given SLO, shape (n_requests,).

    Parameters
    ----------
    found : Latencies
    slo : mapping
        Upper bounds in milliseconds, any of ttft_ms, tpot_ms, itl_ms (of the longest gap between two tokens), e2el_ms.
        A latency equal to its bound meets it. As in vLLM, a finished request with one output token, which has no TPOT,
        meets any TPOT bound; so it does any ITL bound.
    """
    met = ~np.isnan(found.e2el_s)
    for name, bound_ms in slo.items():
        between_tokens = name in ("tpot_ms", "itl_ms")
        latency = "max_itl" if name == "itl_ms" else name.removesuffix("_ms")
        latency_ms = 1000 * getattr(found, f"{latency}_s")
        met &= (latency_ms <= bound_ms) | (between_tokens & np.isnan(latency_ms))
    return met
