"""A step-time model as four coefficients: a + b decodes + c prompt tokens + d context tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from simqueue.steptime.base import Batch, StepTime

_EXACT = 1e-9
"""Largest relative error at which a model counts as affine; it allows for rounding only."""
_LONG = 16
"""So many average prompts are as long as a long one."""
_MOST_PROMPTS = 4096
"""In a step with more prompts, each further one costs as much as the last ones did up to this number."""


@dataclass(frozen=True, slots=True)
class Composition:
    """The content of an average step; fractions are allowed.

    Attributes
    ----------
    decodes : float
        Decoding requests.
    context_tokens : float
        Tokens that all decodes attend to.
    prompt_tokens : float
        Prompt tokens computed in the step.
    prompts : float
        Prompts completed in the step.
    past_tokens : float
        Tokens of a prompt that precede an average piece of it; they determine the cost of the piece's attention.
    """

    decodes: float
    context_tokens: float
    prompt_tokens: float
    prompts: float
    past_tokens: float = 0.0


@dataclass(frozen=True, slots=True)
class Affine:
    """Coefficients in seconds of ``t = a + b decodes + c prompt tokens + d context tokens`` near a composition.

    Attributes
    ----------
    overhead_s, per_decode_s, per_prompt_token_s, per_context_token_s : float
        a, b, c, d.
    exact : bool
        Whether the model is affine everywhere, so that this is no approximation.
    """

    overhead_s: float
    per_decode_s: float
    per_prompt_token_s: float
    per_context_token_s: float
    exact: bool

    def seconds(self, at: Composition) -> float:
        """Return the duration of a step in seconds."""
        return (
            self.overhead_s
            + self.per_decode_s * at.decodes
            + self.per_prompt_token_s * at.prompt_tokens
            + self.per_context_token_s * at.context_tokens
        )


def step_seconds(step: StepTime, at: Composition) -> float:
    """Return the duration of an average step in seconds, interpolated between whole numbers of decodes."""
    if at.prompts > _MOST_PROMPTS:
        half, most = (step_seconds(step, _with_prompts(at, n)) for n in (_MOST_PROMPTS / 2, _MOST_PROMPTS))
        return most + (most - half) * (at.prompts - _MOST_PROMPTS) / (_MOST_PROMPTS / 2)
    low = math.floor(at.decodes)
    part = at.decodes - low
    if part < 1e-9:
        return step.seconds(_batch(at, low))
    return (1 - part) * step.seconds(_batch(at, low)) + part * step.seconds(_batch(at, low + 1))


def _with_prompts(at: Composition, prompts: float) -> Composition:
    return replace(at, prompts=prompts, prompt_tokens=at.prompt_tokens * prompts / at.prompts)


def _batch(at: Composition, decodes: int) -> Batch:
    context = round(at.context_tokens * decodes / at.decodes) if at.decodes else 0
    # The pieces have equal lengths, so that their attention, quadratic in the length, costs as much as that of whole
    # prompts.
    whole = max(1, round(at.prompts)) if at.prompt_tokens >= 1 else 0
    tokens = round(at.prompt_tokens)
    pieces = tuple((round(at.past_tokens), tokens // whole + (i < tokens % whole)) for i in range(min(whole, tokens)))
    return Batch(decodes, decodes, context, pieces, decodes + round(at.prompts))


def fit(step: StepTime, at: Composition) -> Affine:
    """Return the coefficients of a step-time model near a composition.

    Each slope is the difference between the composition and one with twice as much of one quantity.
    """
    decodes = max(1, round(at.decodes)) if at.decodes else 0
    context = round(at.context_tokens)
    tokens = max(1, round(at.prompt_tokens))
    past = round(at.past_tokens)

    def seconds(decodes: int, tokens: int, context: int) -> float:
        return step.seconds(Batch(decodes, decodes, context, ((past, tokens),), decodes + 1))

    here = seconds(decodes, tokens, context)
    b = (seconds(2 * decodes, tokens, context) - here) / decodes if decodes else 0.0
    c = (seconds(decodes, 2 * tokens, context) - here) / tokens
    d = (seconds(decodes, tokens, 2 * context) - here) / context if decodes and context else 0.0
    a = here - b * decodes - c * tokens - d * context
    elsewhere = seconds(3 * decodes, 5 * tokens, 7 * context)
    predicted = a + 3 * b * decodes + 5 * c * tokens + 7 * d * context
    # A roofline can be linear within a narrow range. Steps with nearly no prompt tokens, with one whole prompt, or with
    # a long one lie outside that range.
    misfit = abs(predicted - elsewhere) / elsewhere
    whole = max(1, round(at.prompt_tokens / at.prompts)) if at.prompts else 1
    for other in (1, whole, _LONG * whole):
        found = step.seconds(Batch(decodes, decodes, context, ((0, other),), decodes + 1))
        misfit = max(misfit, abs(a + b * decodes + c * other + d * context - found) / found)
    return Affine(a, b, c, d, misfit < _EXACT)
