"""Random requests, and a small server for them: continuous batching, first come first served.

It is much faster than the package, because it records nothing but first tokens and departures. A test holds it against
the package, request by request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Draw = Callable[[np.random.Generator, int], Integers]

OVERHEAD_S: Final = 0.02
PER_DECODE_S: Final = 0.001
PER_PREFILL_TOKEN_S: Final = 5e-5


@dataclass(frozen=True, slots=True)
class Traffic:
    """A kind of requests, and the number of slots of the server that gets them.

    Attributes
    ----------
    described : str
    arrivals : callable
        Returns n arrival times in seconds at a rate of 1 per second, given a generator and n.
    prompts, outputs : callable
        Return n lengths in tokens.
    mean_prompt, mean_output : float
    slots : int
    """

    described: str
    arrivals: Callable[[np.random.Generator, int, float], Floats]
    prompts: Draw
    outputs: Draw
    mean_prompt: float
    mean_output: float
    slots: int = 8

    @property
    def capacity_rps(self) -> float:
        """Highest rate: all slots are busy, and each makes a token a step."""
        leaving = self.slots / self.mean_output
        step_s = OVERHEAD_S + PER_DECODE_S * (self.slots - leaving) + PER_PREFILL_TOKEN_S * self.mean_prompt * leaving
        return leaving / step_s

    def served(self, rng: np.random.Generator, requests: int, load: float) -> tuple[Floats, Floats, Floats]:
        """Return arrivals, first tokens and departures of a run, in seconds."""
        arrival_s = self.arrivals(rng, requests, load * self.capacity_rps)
        prompts, outputs = self.prompts(rng, requests), self.outputs(rng, requests)
        first_s, finish_s = serve(arrival_s.tolist(), prompts.tolist(), outputs.tolist(), self.slots)
        return arrival_s, np.array(first_s), np.array(finish_s)


def serve(
    arrival_s: Sequence[float], prompts: Sequence[int], outputs: Sequence[int], slots: int
) -> tuple[list[float], list[float]]:
    """Return when each request gets its first token and when it leaves.

    Whole prompts are computed in the same step as decodes. The step that computes a prompt makes its first token.
    """
    n = len(arrival_s)
    first_s, finish_s = [0.0] * n, [0.0] * n
    leaving: list[tuple[int, int]] = []  # number of the last step, and request
    now_s, step, head, next_s = 0.0, 0, 0, arrival_s[0]
    while head < n or leaving:
        decoding = len(leaving)
        if not decoding:
            now_s = max(now_s, next_s)
        duration_s = OVERHEAD_S + PER_DECODE_S * decoding
        if next_s <= now_s and decoding < slots:
            start = head
            while next_s <= now_s and len(leaving) < slots:
                duration_s += PER_PREFILL_TOKEN_S * prompts[head]
                heappush(leaving, (step + outputs[head] - 1, head))
                head += 1
                next_s = arrival_s[head] if head < n else math.inf
            now_s += duration_s
            first_s[start:head] = [now_s] * (head - start)
        else:  # the same step until a request leaves or can be taken in
            last, full = leaving[0][0], decoding == slots
            now_s += duration_s
            while step < last and (full or now_s < next_s):
                now_s += duration_s
                step += 1
        while leaving and leaving[0][0] == step:
            finish_s[heappop(leaving)[1]] = now_s
        step += 1
    return first_s, finish_s


def _constant(value: int) -> Draw:
    return lambda _rng, n: np.full(n, value)


def _geometric(mean: float, less: int = 0) -> Draw:
    return lambda rng, n: rng.geometric(1 / mean, n) - less


def _lognormal(mean: float, cv: float) -> Draw:
    variance = math.log1p(cv * cv)
    log_mean = math.log(mean) - variance / 2

    def draw(rng: np.random.Generator, n: int) -> Integers:
        return np.maximum(1, np.rint(rng.lognormal(log_mean, math.sqrt(variance), n))).astype(np.int64)

    return draw


def _poisson(rng: np.random.Generator, n: int, rate_rps: float) -> Floats:
    return np.cumsum(rng.exponential(1 / rate_rps, n))


def _gamma(rng: np.random.Generator, n: int, rate_rps: float) -> Floats:
    return np.cumsum(rng.gamma(0.25, 4 / rate_rps, n))


def _on_off(rng: np.random.Generator, n: int, rate_rps: float, peak: float = 2.0, burst_s: float = 2.0) -> Floats:
    """Return Poisson arrivals at `peak` times the rate in bursts, and none between them."""
    in_bursts_s = np.cumsum(rng.exponential(1 / (peak * rate_rps), n))
    number = int(in_bursts_s[-1] / burst_s * 1.5 + 60)
    ends_s = np.cumsum(rng.exponential(burst_s, number))
    pauses_s = np.concatenate([[0.0], np.cumsum(rng.exponential(burst_s * (peak - 1), number))])
    before_s = 0.0 if rng.random() < 1 / peak else rng.exponential(burst_s * (peak - 1))
    return np.asarray(in_bursts_s + pauses_s[np.searchsorted(ends_s, in_bursts_s)] + before_s)


def _mean_of(draw: Draw) -> float:
    """Return the mean of rounded and clipped lengths, from many of them."""
    return float(draw(np.random.default_rng(0), 4_000_000).mean())


_HEAVY: Final = _lognormal(20.5, 3)
_LONG: Final = _lognormal(1000, 2)

TRAFFIC: Final[Mapping[str, Traffic]] = {
    "geometric": Traffic(
        "Poisson, prompts 500, outputs geometric 20", _poisson, _constant(500), _geometric(20), 500, 20
    ),
    "heavy": Traffic(
        "Poisson, prompts 500, outputs lognormal 20.5, cv 3", _poisson, _constant(500), _HEAVY, 500, _mean_of(_HEAVY)
    ),
    "M/M/1": Traffic(
        "Poisson, one slot, exponential service of 1 s",
        _poisson,
        _geometric(20_000, less=400),
        _constant(1),
        19_600,
        1,
        slots=1,
    ),
    "bursty": Traffic("gamma, cv 2, outputs geometric 20", _gamma, _constant(500), _geometric(20), 500, 20),
    "on-off": Traffic(
        "twice the rate in bursts of 2 s, outputs geometric 20", _on_off, _constant(500), _geometric(20), 500, 20
    ),
    "prompts": Traffic("Poisson, prompts lognormal 1000, cv 2", _poisson, _LONG, _constant(20), 1000, 20),
}
"""The workloads of the grid."""
