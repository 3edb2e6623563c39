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
    """

    context_per_decode: float
    tokens_per_prompt: float
    past_tokens: float
    budget: int | None


def average_seconds(
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
    return average_seconds(step, sizes, np.full(len(weights), decodes), counts, weights)


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
