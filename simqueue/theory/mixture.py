"""The mean time of steps whose number of prompts varies: for convex step times more than that of the mean step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.steptime.base import StepTime
from simqueue.theory.affine import Composition, step_seconds
from simqueue.theory.chain import poisson

_NEGLIGIBLE = 1e-7


def average_seconds(
    step: StepTime,
    decodes: NDArray[Any],
    prompts: NDArray[Any],
    weights: NDArray[Any],
    *,
    context_per_decode: float,
    tokens_per_prompt: float,
    past_tokens: float,
    budget: int | None,
) -> float:
    """Return the mean time of a step over a law of its composition.

    Parameters
    ----------
    step : StepTime
    decodes, prompts, weights : arrays of shape (n,)
        Decodes and prompts of each kind of step, and how likely it is; weights add up to 1.
    context_per_decode, tokens_per_prompt, past_tokens : float
        Tokens that a decode attends to, that a prompt has, and before an average piece of a prompt.
    budget : int or None
        Most tokens of a step: prompt tokens beyond it are computed in the steps that have room.
    """
    kept = weights > _NEGLIGIBLE
    decodes, prompts, weights = decodes[kept], prompts[kept], weights[kept] / weights[kept].sum()
    tokens = _within_budget(prompts * tokens_per_prompt, decodes, weights, budget)
    return math.fsum(
        weight * step_seconds(step, Composition(n, context_per_decode * n, prompt_tokens, m, past_tokens))
        for n, m, prompt_tokens, weight in zip(
            decodes.tolist(), prompts.tolist(), tokens.tolist(), weights.tolist(), strict=True
        )
    )


def poisson_seconds(
    step: StepTime,
    decodes: float,
    prompts: float,
    *,
    more_tokens: float = 0.0,
    context_per_decode: float,
    tokens_per_prompt: float,
    past_tokens: float,
    budget: int | None,
) -> float:
    """Return the mean time of a step with so many decodes and a Poisson number of prompts of the given mean.

    Parameters
    ----------
    more_tokens : float
        Tokens of one more prompt that is there in any case.

    See Also
    --------
    average_seconds : The other parameters.
    """
    weights = poisson(prompts, 400) if prompts > 0 else np.ones(1)
    surely = more_tokens / tokens_per_prompt
    return average_seconds(
        step,
        np.full(len(weights), decodes),
        np.arange(len(weights)) + surely,
        weights,
        context_per_decode=context_per_decode,
        tokens_per_prompt=tokens_per_prompt,
        past_tokens=past_tokens,
        budget=budget,
    )


def _within_budget(
    tokens: NDArray[Any], decodes: NDArray[Any], weights: NDArray[Any], budget: int | None
) -> NDArray[Any]:
    if budget is None:
        return tokens
    room = np.maximum(budget - decodes, 0)
    cut = np.minimum(tokens, room)
    spare = room - cut
    mean_spare = float(spare @ weights)
    missing = float((tokens - cut) @ weights)
    return np.asarray(cut + spare * min(1.0, missing / mean_spare)) if mean_spare > 0 else cut
