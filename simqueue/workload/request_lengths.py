"""The joint distribution of prompt and output lengths of a workload."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy

from simqueue.errors import InputError, inside
from simqueue.workload.build import build_lengths
from simqueue.workload.lengths.base import Floats, LengthDistribution, Tokens
from simqueue.workload.settings import WorkloadSettings


@dataclass(frozen=True, slots=True)
class Lengths:
    """The joint distribution of prompt and output lengths.

    Attributes
    ----------
    prompt, output : LengthDistribution
    correlation : float
        Correlation of the normal scores of both lengths (Gaussian copula).
    """

    prompt: LengthDistribution
    output: LengthDistribution
    correlation: float

    @classmethod
    def of(cls, settings: WorkloadSettings, base_dir: Path) -> Lengths:
        """Return the lengths of a workload.

        Raises
        ------
        InputError
            If the workload has no length distributions, or they cannot be built (see `build_lengths`).
        """
        if settings.prompt_tokens is None or settings.output_tokens is None:
            raise InputError("workload: prompt_tokens and output_tokens are needed")
        with inside("prompt_tokens"):
            prompt = build_lengths(settings.prompt_tokens, base_dir)
        with inside("output_tokens"):
            output = build_lengths(settings.output_tokens, base_dir)
        return cls(prompt, output, settings.prompt_output_correlation or 0.0)

    def sample(self, prompts: np.random.Generator, outputs: np.random.Generator, n: int) -> tuple[Tokens, Tokens]:
        """Return `n` prompt and output lengths, with one uniform number each from its own stream."""
        first, second = prompts.random(n), outputs.random(n)
        if self.correlation:
            second = _correlated(first, second, self.correlation)
        return self.prompt.of_uniforms(first), self.output.of_uniforms(second)


def _correlated(first: Floats, second: Floats, correlation: float) -> Floats:
    """Return uniforms whose normal scores have the given correlation with those of `first`."""
    ndtr, ndtri = scipy.special.ndtr, scipy.special.ndtri
    tiny = 2.0**-54  # a uniform of 0 has no normal score
    scores = correlation * ndtri(np.maximum(first, tiny))
    scores += np.sqrt(1 - correlation**2) * ndtri(np.maximum(second, tiny))
    return np.asarray(np.minimum(ndtr(scores), np.nextafter(1.0, 0.0)))
