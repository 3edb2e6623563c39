"""Moments of prompt and output lengths, from a sample or from distributions whose moments are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.theory.capacity import Lengths


def from_sample(prompts: NDArray[Any], outputs: NDArray[Any]) -> Lengths:
    """Return the moments of the empirical distribution of a sample.

    Parameters
    ----------
    prompts, outputs : arrays of int, shape (n_requests,)
        Tokens of each request; at least one request.
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
        longest=_longest(np.sort(p), np.sort(o)),
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
        longest=_longest(np.sort(np.asarray(prompts, dtype=np.float64)), np.sort(o)),
    )


def _shorter_of_two(outputs: NDArray[np.float64]) -> float:
    ranked = np.sort(outputs)
    n = len(ranked)
    left = np.arange(n, 0, -1)
    return float(np.sum(ranked * (left**2 - (left - 1.0) ** 2)) / n**2 / ranked.mean())


def _longest(prompts: NDArray[np.float64], outputs: NDArray[np.float64]) -> Callable[[int], tuple[float, float]]:
    def expected(ranked: NDArray[np.float64], batch: int) -> float:
        reached = (np.arange(len(ranked) + 1) / len(ranked)) ** batch
        return float(np.sum(ranked * np.diff(reached)))

    return lambda batch: (expected(prompts, batch), expected(outputs, batch))
