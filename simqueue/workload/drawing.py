"""Drawing the lengths of requests, and numbering the token streams that generators make."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simqueue.errors import InputError, inside
from simqueue.workload.lengths import LengthLaw
from simqueue.workload.settings import WorkloadSettings
from simqueue.workload.streams import stream

if TYPE_CHECKING:
    import numpy as np

    from simqueue.workload.lengths.base import Floats, Tokens

FIRST_STREAM = 2**32
"""Token streams that are made up are numbered from here; those that people write are below."""


@dataclass(frozen=True, slots=True)
class Draws:
    """What the generators of one workload draw with.

    Attributes
    ----------
    seed, replication : int
    prefix : str
        Stands before every purpose: the workload's name where there are several.
    """

    seed: int
    replication: int
    prefix: str = ""

    @classmethod
    def of(cls, seed: int, replication: int, workload: str | None) -> Draws:
        """Return what a workload draws with; its name is None where it is the only one."""
        return cls(seed, replication, "" if workload is None else f"{workload}.")

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the random stream of a purpose, at its beginning."""
        return stream(self.seed, self.replication, self.prefix + purpose)

    def uniform(self, request_id: str, attempt: int) -> float:
        """Return the uniform number that decides the jitter of one retry (see `simqueue.traffic.JitterDraw`)."""
        return float(self.rng(f"retry.{request_id}.{attempt}").random())


@dataclass(frozen=True, slots=True)
class Lengths:
    """The laws of prompts and outputs, with their files read in."""

    prompt: LengthLaw
    output: LengthLaw
    correlation: float

    @classmethod
    def of(cls, settings: WorkloadSettings, base_dir: Path) -> Lengths:
        """Return the laws of a workload.

        Raises
        ------
        InputError
            If it has none, or a file is missing or wrong.
        """
        if settings.prompt_tokens is None or settings.output_tokens is None:
            raise InputError("workload: prompt_tokens and output_tokens are needed")
        with inside("prompt_tokens"):
            prompt = settings.prompt_tokens.resolved(base_dir)
        with inside("output_tokens"):
            output = settings.output_tokens.resolved(base_dir)
        return cls(prompt, output, settings.prompt_output_correlation)

    def sample(self, prompts: np.random.Generator, outputs: np.random.Generator, n: int) -> tuple[Tokens, Tokens]:
        """Return `n` prompt and output lengths, one uniform number each from its own stream."""
        first, second = prompts.random(n), outputs.random(n)
        if self.correlation:
            second = _correlated(first, second, self.correlation)
        return self.prompt.of_uniforms(first), self.output.of_uniforms(second)


def _correlated(first: Floats, second: Floats, correlation: float) -> Floats:
    """Return uniforms whose normal scores have the given correlation with those of `first`."""
    import numpy as np  # noqa: PLC0415  (settings stay light to import)
    from scipy.special import ndtr, ndtri  # noqa: PLC0415  (settings stay light to import)

    tiny = 2.0**-54  # a uniform of 0 has no normal score
    scores = correlation * ndtri(np.maximum(first, tiny))
    scores += np.sqrt(1 - correlation**2) * ndtri(np.maximum(second, tiny))
    return np.asarray(np.minimum(ndtr(scores), np.nextafter(1.0, 0.0)))
