"""The mean duration of steps that hold a random number of prompts.

If the step time is convex in the number of prompt tokens, it is larger than the duration of the mean step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.steptime.base import StepTime
from simqueue.theory.affine import Composition, step_seconds
from simqueue.theory.chain import poisson

_NEGLIGIBLE = 1e-7
_GROUPS = 48
_MANY_PROMPTS = 300
"""If a step has more prompts on average, their number hardly varies."""


@dataclass(frozen=True, slots=True)
class StepSizes:
    """The mean sizes, in tokens, of what a step is made of.

    Attributes
    ----------
    context_per_decode : float
        Tokens that a decode attends to.
    tokens_per_prompt : float
        Tokens of a prompt, or of a piece of one.
    past_tokens : float
        Tokens that precede an average piece of a prompt.
    budget : int or None
        Largest number of tokens in a step; prompt tokens above it are computed in steps that have room.
    lengths : array or None
        Equally likely values of `tokens_per_prompt`; None if all are equal.
    whole : bool
        Whether these are whole prompts, so that `past_tokens` follows from them.
    """

    context_per_decode: float
    tokens_per_prompt: float
    past_tokens: float
    budget: int | None
    lengths: NDArray[Any] | None = None
    whole: bool = False


def steps_seconds(step: StepTime, sizes: StepSizes, decodes: NDArray[Any], prompts: NDArray[Any]) -> float:
    """Return the mean duration, in seconds, of successive steps in which prompts of random lengths begin.

    What is above the budget waits for the next step. Similar steps have the duration of their average.

    Parameters
    ----------
    step : StepTime
    sizes : StepSizes
    decodes : array of shape (n,)
        Decodes of each step.
    prompts : array of int, shape (n,)
        Prompts that begin in each step, or pieces of prompts.
    """
    lengths = np.array([sizes.tokens_per_prompt]) if sizes.lengths is None else sizes.lengths
    drawn = np.random.default_rng(1).permutation(np.resize(lengths, int(prompts.sum())))
    drawn = drawn * (sizes.tokens_per_prompt / drawn.mean()) if len(drawn) else drawn
    which = np.repeat(np.arange(len(prompts)), prompts)
    begun, squares = (np.bincount(which, one, len(prompts)) for one in (drawn, drawn**2))
    tokens = begun if sizes.budget is None else _in_turn(begun, np.maximum(sizes.budget - decodes, 1))
    ranked = np.argsort(tokens, kind="stable")
    none = int(np.searchsorted(tokens[ranked], 0.5))
    groups = [ranked[:none], *np.array_split(ranked[none:], min(_GROUPS, len(ranked) - none) or 1)]

    def seconds(group: NDArray[Any]) -> float:
        n, m, new, old, square = (float(one[group].mean()) for one in (decodes, prompts, tokens, begun, squares))
        position = sizes.past_tokens + sizes.tokens_per_prompt / 2
        if sizes.whole and old:
            position = square / (2 * old)  # tokens before the middle of a prompt, as its tokens meet it
        past = max(0.0, position - new / max(1.0, m) / 2)
        return len(group) * step_seconds(step, Composition(n, sizes.context_per_decode * n, new, m, past))

    return math.fsum(seconds(group) for group in groups if len(group)) / len(prompts)


def _in_turn(begun: NDArray[Any], room: NDArray[Any]) -> NDArray[Any]:
    """Return the prompt tokens computed in each step: those that begin or have waited, as far as there is room."""
    missing = np.cumsum(begun - room)
    waiting = missing - np.minimum(0, np.minimum.accumulate(missing))
    return np.asarray(begun - np.diff(waiting, prepend=0.0))


def pieces_of(prompts: NDArray[Any], most_tokens: int) -> NDArray[Any]:
    """Return equally likely pieces of equally likely prompts, which are cut into pieces of up to `most_tokens`."""
    rest = prompts % most_tokens
    whole = np.full(int((prompts // most_tokens).sum()), float(most_tokens))
    pieces = np.sort(np.concatenate((rest[rest > 0], whole)))
    return np.asarray(pieces[((np.arange(len(prompts)) + 0.5) * len(pieces) / len(prompts)).astype(int)])


def _average_seconds(
    step: StepTime, sizes: StepSizes, decodes: NDArray[Any], prompts: NDArray[Any], weights: NDArray[Any]
) -> float:
    """Return the mean duration of a step, in seconds, over a distribution of its composition.

    Parameters
    ----------
    step : StepTime
    sizes : StepSizes
    decodes, prompts, weights : arrays of shape (n,)
        Decodes and prompts of each kind of step, and its probability; the weights add up to 1.
    """
    kept = weights > _NEGLIGIBLE
    decodes, prompts, weights = decodes[kept], prompts[kept], weights[kept] / weights[kept].sum()
    tokens = _within_budget(prompts * sizes.tokens_per_prompt, decodes, weights, sizes.budget)
    return math.fsum(
        weight * step_seconds(step, Composition(n, sizes.context_per_decode * n, prompt_tokens, m, sizes.past_tokens))
        for n, m, prompt_tokens, weight in zip(
            decodes.tolist(), prompts.tolist(), tokens.tolist(), weights.tolist(), strict=True
        )
    )


def poisson_seconds(
    step: StepTime, sizes: StepSizes, decodes: float, prompts: float, *, more_tokens: float = 0.0
) -> float:
    """Return the mean duration, in seconds, of a step with a fixed number of decodes and a Poisson number of prompts.

    Parameters
    ----------
    step : StepTime
    sizes : StepSizes
    decodes : float
    prompts : float
        Mean of the Poisson distribution.
    more_tokens : float
        Tokens of one more prompt, which is always there.
    """
    varies = 0 < prompts <= _MANY_PROMPTS
    weights = poisson(prompts, 400) if varies else np.ones(1)
    counts = (np.arange(len(weights)) if varies else np.array([prompts])) + more_tokens / sizes.tokens_per_prompt
    return _average_seconds(step, sizes, np.full(len(weights), decodes), counts, weights)


def _within_budget(
    tokens: NDArray[Any], decodes: NDArray[Any], weights: NDArray[Any], budget: int | None
) -> NDArray[Any]:
    """Return the prompt tokens per step, with those above the budget moved to steps that have room."""
    if budget is None:
        return tokens
    room = np.maximum(budget - decodes, 0)
    cut = np.minimum(tokens, room)
    spare = room - cut
    mean_spare = float(spare @ weights)
    missing = float((tokens - cut) @ weights)
    return np.asarray(cut + spare * min(1.0, missing / mean_spare)) if mean_spare > 0 else cut
