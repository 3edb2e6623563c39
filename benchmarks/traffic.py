"""The requests of the benchmarks, generated from a seed: they are the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simqueue.request import Request
from simqueue.workload import WorkloadSettings
from simqueue.workload.generate import generate

SEED = 20231116
CHUNK = 10_000


@dataclass(frozen=True)
class Lengths:
    """A lognormal distribution of tokens, clipped."""

    mean: float
    low: int
    high: int
    cv: float = 0.6

    def draw(self, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        """Draw `n` lengths."""
        sigma = np.sqrt(np.log(1 + self.cv**2))
        drawn = rng.lognormal(np.log(self.mean) - sigma**2 / 2, sigma, n)
        return np.clip(drawn, self.low, self.high).astype(np.int64)


PROMPTS, OUTPUTS = Lengths(1024, 16, 3072), Lengths(192, 8, 896)
LONG_PROMPTS, LONG_OUTPUTS = Lengths(126, 4, 1024), Lengths(967, 16, 4096)


@dataclass(frozen=True)
class Poisson:
    """Poisson arrivals. Requests are generated during iteration, so that a million of them need little memory.

    With `prefixes`, the first half of a prompt is one of so many, in turn, and its tokens are known.
    """

    n: int
    rate_rps: float
    prompts: Lengths = PROMPTS
    outputs: Lengths = OUTPUTS
    prefixes: int = 0

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Request]:
        rng = np.random.default_rng(SEED)
        now_s = 0.0
        for first in range(0, self.n, CHUNK):
            n = min(CHUNK, self.n - first)
            arrivals_s = now_s + np.cumsum(rng.exponential(1 / self.rate_rps, n))
            now_s = float(arrivals_s[-1])
            columns = arrivals_s, self.prompts.draw(rng, n), self.outputs.draw(rng, n)
            for index, row in enumerate(zip(*(column.tolist() for column in columns), strict=True), first):
                request = Request(str(index), *row)
                yield replace(request, prompt=self._prompt(index, request.prompt_tokens)) if self.prefixes else request

    def _prompt(self, index: int, tokens: int) -> tuple[tuple[int, int, int], ...]:
        shared = tokens // 2
        return ((index % self.prefixes, 0, shared), (self.prefixes + index, 0, tokens - shared))


def at_once(n: int, prompts: Lengths = PROMPTS, outputs: Lengths = OUTPUTS) -> list[Request]:
    """Return requests that all arrive at time 0, so that the queue is never empty."""
    return [replace(request, arrival_s=0.0) for request in Poisson(n, 1.0, prompts, outputs)]


def equal_requests(n: int, prompt_tokens: int, output_tokens: int) -> list[Request]:
    """Return equal requests that all arrive at time 0."""
    return [Request(str(index), 0.0, prompt_tokens, output_tokens) for index in range(n)]


def turns(n: int, rate_rps: float, turns_each: int = 4) -> list[Request]:
    """Return conversations: each prompt repeats all earlier turns; a turn arrives a minute after the one before."""
    rng = np.random.default_rng(SEED)
    sessions = n // turns_each
    starts_s = np.cumsum(rng.exponential(turns_each / rate_rps, sessions)).tolist()
    asked = Lengths(300, 8, 1024).draw(rng, n).tolist()
    answered = OUTPUTS.draw(rng, n).tolist()
    made = []
    for session, start_s in enumerate(starts_s):
        said: tuple[tuple[int, int, int], ...] = ()
        for turn in range(turns_each):
            index = session * turns_each + turn
            said = (*said, (2 * index, 0, asked[index]))
            tokens = sum(length for _, _, length in said)
            at_s = start_s + 60.0 * turn
            made.append(Request(str(index), at_s, tokens, answered[index], prompt=said, output_stream=2 * index + 1))
            said = (*said, (2 * index + 1, 0, answered[index]))
    return sorted(made, key=lambda request: request.arrival_s)


def azure(rate_scale: float, limit: int | None = None) -> list[Request]:
    """Return the conversation trace that Azure recorded in November 2023, with its gaps divided by `rate_scale`."""
    trace = {"name": "azure-2023-conversation", "rate_scale": rate_scale} | ({"limit": limit} if limit else {})
    return list(generate(WorkloadSettings.model_validate({"trace": trace}), seed=SEED, base_dir=Path()).requests)
