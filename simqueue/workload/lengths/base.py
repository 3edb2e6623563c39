"""The contract of length distributions, and their bounds.

A distribution describes a random number X. Its bounds come first: ``bounds: clip`` moves a value outside [min, max] to
the nearer bound, ``bounds: resample`` draws again until X is inside. Then X is rounded down to whole tokens. `mean` and
`variance` are those of the tokens, after both.

Samples are made by inverting the distribution function, with one uniform number per request for any parameters. So two
distributions with one seed are compared with common random numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError

Tokens = NDArray[np.int64]
Floats = NDArray[np.float64]


class LengthDistribution(ABC):
    """A distribution of token counts."""

    @abstractmethod
    def of_uniforms(self, uniforms: Floats) -> Tokens:
        """Return one length for each uniform number in [0, 1), in tokens, each at least 1."""

    @abstractmethod
    def mean(self) -> float:
        """Return the mean length in tokens, after bounds and rounding down."""

    @abstractmethod
    def variance(self) -> float:
        """Return the variance of the length in tokens squared, after bounds and rounding down."""

    @property
    def is_random(self) -> bool:
        """Whether two lengths can differ."""
        # the least and the largest number that a generator draws; at 0 itself a smooth distribution has its infimum
        shortest, longest = self.of_uniforms(np.array([2.0**-53, 1 - 2.0**-53])).tolist()
        return bool(shortest != longest)

    def sample(self, rng: np.random.Generator, n: int) -> Tokens:
        """Return `n` lengths, with one uniform number each."""
        return self.of_uniforms(rng.random(n))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a distribution.

    Attributes
    ----------
    low : int
        Smallest length in tokens, at least 1.
    high : int or None
        Largest length in tokens; None: no limit.
    resample : bool
        Whether values outside are drawn again; otherwise they are moved to the nearer bound.
    """

    low: int
    high: int | None
    resample: bool

    def applied(self, lengths: Floats) -> Tokens:
        """Return the lengths rounded down and clipped; with `resample` this only corrects rounding at a bound."""
        highest = np.inf if self.high is None else self.high
        return np.clip(np.floor(lengths), self.low, highest).astype(np.int64)

    def error(self) -> InputError:
        """Return the error for a distribution that can never draw a length inside these bounds."""
        inside = f"of at least {self.low}" if self.high is None else f"from {self.low} to {self.high}"
        return InputError(f"this distribution can never draw a length {inside}", "bounds", value="resample")
