"""Moments of prompt and output lengths, from a sample or from distributions whose moments are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError

Shared = Callable[[float], float]
"""Number of running requests -> prompt tokens per request that they hold once instead of several times."""
Longest = Callable[[int], tuple[NDArray[Any], NDArray[Any]]]
_PARTS = 64
"""Equally likely parts of the distribution of the longest of n."""


@dataclass(frozen=True, slots=True)
class Cached:
    """The beginnings of prompts that a prefix cache has, so that they are not computed.

    Attributes
    ----------
    tokens : float
        Mean per request.
    square : float
        E[tokens²].
    new_square : float
        E[(prompt - tokens)²].
    shared : callable
        See `Shared`.
    """

    tokens: float
    square: float
    new_square: float
    shared: Shared


@dataclass(frozen=True, slots=True)
class Lengths:
    """Moments of prompt and output lengths, in tokens.

    Attributes
    ----------
    prompt, output : float
        Means, each at least 1.
    prompt_variance, output_variance : float
    product : float
        E[prompt x output].
    shorter_of_two : float
        E[min(O₁, O₂)] / E[O] of two independent outputs: 1 for a constant, 1/2 for an exponential.
    longest : callable
        n -> the longest of n prompts, and the longest of n outputs, in tokens: arrays of equally likely values, each
        the mean of a part of the distribution, so that their mean is exact.
    cached : Cached or None
        None: all prompt tokens are computed.
    """

    prompt: float
    output: float
    prompt_variance: float
    output_variance: float
    product: float
    shorter_of_two: float
    longest: Longest
    cached: Cached | None = None

    @property
    def context(self) -> float:
        """Mean context tokens read by all decodes of a request: E[P (O - 1)] + E[O (O - 1)] / 2."""
        return self.product - self.prompt + (self.output_variance + self.output**2 - self.output) / 2

    @property
    def new(self) -> float:
        """Mean prompt tokens that are computed."""
        return self.prompt if self.cached is None else self.prompt - self.cached.tokens

    @property
    def new_square(self) -> float:
        """E[(computed prompt tokens)²]."""
        return self.prompt_variance + self.prompt**2 if self.cached is None else self.cached.new_square

    @property
    def mean_position(self) -> float:
        """Mean number of tokens that precede the middle of what is computed of a prompt."""
        square = self.prompt_variance + self.prompt**2
        return (square if self.cached is None else square - self.cached.square) / (2 * self.new)


def from_sample(
    prompts: NDArray[Any], outputs: NDArray[Any], cached: NDArray[Any] | None = None, shared: Shared | None = None
) -> Lengths:
    """Return the moments of the empirical distribution of a sample.

    Parameters
    ----------
    prompts, outputs : arrays of int, shape (n_requests,)
        Tokens of each request; at least one request.
    cached : array of int, shape (n_requests,), optional
        Tokens of each prompt that a prefix cache has, fewer than those of the prompt.
    shared : callable, optional
        See `Shared`. By default no request holds tokens of another.
    """
    if not len(prompts):
        raise InputError("lengths: needs at least one request")
    p, o = np.asarray(prompts, dtype=np.float64), np.asarray(outputs, dtype=np.float64)
    return Lengths(
        prompt=float(p.mean()),
        output=float(o.mean()),
        prompt_variance=float(p.var()),
        output_variance=float(o.var()),
        product=float((p * o).mean()),
        shorter_of_two=_shorter_of_two(o),
        longest=_longest(p, o),
        cached=None if cached is None else _cached(p, np.asarray(cached, dtype=np.float64), shared),
    )


def _cached(prompts: NDArray[np.float64], found: NDArray[np.float64], shared: Shared | None) -> Cached | None:
    if not found.any():
        return None
    return Cached(
        tokens=float(found.mean()),
        square=float((found**2).mean()),
        new_square=float(((prompts - found) ** 2).mean()),
        shared=shared or (lambda _: 0.0),
    )


def from_moments(
    prompt: tuple[float, float], output: tuple[float, float], prompts: NDArray[Any], outputs: NDArray[Any]
) -> Lengths:
    """Return the lengths of independent distributions: exact moments, and the other quantities from samples.

    Parameters
    ----------
    prompt, output : (mean, variance)
        Exact, in tokens and tokens squared.
    prompts, outputs : arrays of int
        Samples of the distributions, for the longest of n and the shorter of two.
    """
    o = np.asarray(outputs, dtype=np.float64)
    return Lengths(
        prompt=prompt[0],
        output=output[0],
        prompt_variance=prompt[1],
        output_variance=output[1],
        product=prompt[0] * output[0],
        shorter_of_two=_shorter_of_two(o),
        longest=_longest(np.asarray(prompts, dtype=np.float64), o),
    )


def _shorter_of_two(outputs: NDArray[np.float64]) -> float:
    ranked = np.sort(outputs)
    n = len(ranked)
    left = np.arange(n, 0, -1)
    return float(np.sum(ranked * (left**2 - (left - 1.0) ** 2)) / n**2 / ranked.mean())


def _longest(prompts: NDArray[np.float64], outputs: NDArray[np.float64]) -> Longest:
    edges = np.linspace(0, 1, _PARTS + 1)

    def of(sample: NDArray[np.float64]) -> Callable[[int], NDArray[np.float64]]:
        values, counts = np.unique(sample, return_counts=True)  # lengths are whole numbers: few values, many requests
        shares = np.concatenate(([0.0], np.cumsum(counts))) / len(sample)

        def parts(n: int) -> NDArray[np.float64]:
            if len(values) == 1:
                return values
            reached = shares**n  # the longest of n is at most each value
            below = np.concatenate(([0.0], np.cumsum(values * np.diff(reached))))
            return np.diff(np.interp(edges, reached, below)) * _PARTS

        return parts

    of_prompts, of_outputs = of(prompts), of(outputs)
    return lambda n: (of_prompts(n), of_outputs(n))
