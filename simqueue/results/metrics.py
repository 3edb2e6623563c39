"""Definitions of the metrics, one function each, on plain arrays.

Names and formulas of the latencies are those of vLLM's serving benchmark (``vllm/benchmarks/serve.py``):
TTFT, TPOT and E2EL are taken per request, ITL is pooled over tokens. Everything here is in seconds; tables
and summaries show milliseconds. NaN marks a request for which a quantity is undefined; statistics of nothing
are None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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


@dataclass(frozen=True)
class Latencies:
    """The latencies of each request, in seconds, NaN where undefined; arrays of shape (n_requests,).

    Attributes
    ----------
    queue_s : array
        From arrival to the start of the first step that works on the request. Undefined if none did.
    ttft_s : array
        Time to first token, from arrival to the first token the client saw (a preemption does not take it
        back). Undefined where no token was made.
    tpot_s : array
        Time per output token after the first: (E2EL - TTFT) / (tokens - 1). Undefined for outputs of
        one token and for requests that did not finish.
    e2el_s : array
        End-to-end latency, from arrival to the end. Undefined for requests that did not finish.
    max_itl_s : array
        The longest gap between two consecutive tokens. Undefined with fewer than two tokens.
    """

    queue_s: Floats
    ttft_s: Floats
    tpot_s: Floats
    e2el_s: Floats
    max_itl_s: Floats


def latencies(requests: Mapping[str, NDArray[Any]]) -> Latencies:
    """Return the latencies of each request of a recording's `requests` columns.

    They count from when the request was wanted: from its arrival, or earlier if it waited at its client or is a retry.
    """
    arrival_s = requests.get("wanted_s", requests["arrival_s"])
    finished = has_status(requests, Status.FINISHED)
    return Latencies(
        queue_s=requests["first_scheduled_s"] - arrival_s,
        ttft_s=requests["first_token_s"] - arrival_s,
        tpot_s=tpot_s(requests["first_token_s"], requests["finish_s"], requests["tokens_emitted"], finished),
        e2el_s=np.where(finished, requests["finish_s"] - arrival_s, np.nan),
        max_itl_s=np.asarray(requests["max_itl_s"], dtype=np.float64),
    )


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


def time_average(values: NDArray[Any], durations_s: Floats) -> float | None:
    """Return the area under a piecewise constant function over its time, or None where no time passes.

    Parameters
    ----------
    values, durations_s : arrays of equal length
        The height of each piece, and how long it lasts in seconds.
    """
    time_s = float(np.sum(durations_s))
    return float(np.sum(values * durations_s)) / time_s if time_s > 0 else None


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

    def mean(self) -> float | None:
        """Return the arithmetic mean of the sample, or None of nothing."""
        return math.fsum(self.values * self.counts) / self.count if len(self.values) else None

    def percentile(self, q: float) -> float | None:
        """Return the `q`-th percentile (0 to 100) of the sample, or None of nothing.

        The value is bit-identical to ``np.percentile(np.repeat(values, counts), q)``, whose interpolation
        (method ``linear``) it follows, without expanding the sample.
        """
        if not len(self.values):
            return None
        last = self.count - 1
        position = last * (q / 100)
        below = min(math.floor(position), last)
        ends = np.cumsum(self.counts)
        low, high = self.values[np.searchsorted(ends, [below, min(below + 1, last)], side="right")].tolist()
        weight = position - below
        # numpy works from the nearer neighbour, which decides the last bit.
        return float(low + (high - low) * weight if weight < 0.5 else high - (high - low) * (1 - weight))


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
