"""Distributions of think times in seconds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

Seconds = NDArray[np.float64]


class Duration(ABC):
    """A random time in seconds."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> Seconds:
        """Return `n` durations in seconds, with one uniform number each."""

    @abstractmethod
    def mean_s(self) -> float:
        """Return the mean in seconds."""

    @property
    def is_random(self) -> bool:
        """Whether two durations can differ."""
        return True


@dataclass(frozen=True, slots=True)
class ConstantDuration(Duration):
    """Always `value_s`."""

    value_s: float

    def sample(self, rng: np.random.Generator, n: int) -> Seconds:
        """Return `n` equal durations; see `Duration.sample`."""
        return np.full_like(rng.random(n), self.value_s)

    def mean_s(self) -> float:
        """Return the time itself."""
        return self.value_s

    @property
    def is_random(self) -> bool:
        """See `Duration`."""
        return False


@dataclass(frozen=True, slots=True)
class UniformDuration(Duration):
    """Any time from `low_s` to `high_s`, equally likely."""

    low_s: float
    high_s: float

    def sample(self, rng: np.random.Generator, n: int) -> Seconds:
        """Return `n` durations; see `Duration.sample`."""
        return self.low_s + rng.random(n) * (self.high_s - self.low_s)

    def mean_s(self) -> float:
        """Return the midpoint."""
        return (self.low_s + self.high_s) / 2

    @property
    def is_random(self) -> bool:
        """See `Duration`."""
        return self.low_s < self.high_s


@dataclass(frozen=True, slots=True)
class ExponentialDuration(Duration):
    """Exponential with mean `mean`, in seconds."""

    mean: float

    def sample(self, rng: np.random.Generator, n: int) -> Seconds:
        """Return `n` durations; see `Duration.sample`."""
        return -self.mean * np.log1p(-rng.random(n))

    def mean_s(self) -> float:
        """Return the mean."""
        return self.mean


@dataclass(frozen=True, slots=True)
class LognormalDuration(Duration):
    """The logarithm is normal with standard deviation `sigma`."""

    median_s: float
    sigma: float

    def sample(self, rng: np.random.Generator, n: int) -> Seconds:
        """Return `n` durations; see `Duration.sample`."""
        uniforms = np.maximum(rng.random(n), 2.0**-54)  # a uniform of 0 has no normal score
        return np.asarray(self.median_s * np.exp(self.sigma * scipy.special.ndtri(uniforms)))

    def mean_s(self) -> float:
        """Return the mean."""
        return self.median_s * math.exp(self.sigma**2 / 2)
