"""How requests that run at the same time slow each other, and so how much they can do together.

With n requests in service, a token of each takes a + b n seconds: a is what a request takes alone, and b what each
other one adds. Together they make n / (a + b n) tokens a second, at most 1 / b however many there are. So a policy that
seats every request has a capacity that its run shows, although nothing ever waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simqueue.statistics.stays import Floats, Stays

_LEAST: Final = 20
"""Requests with more than one token from which on a line through their paces means something."""
_ROUNDS: Final = 4
"""Each round takes the mean number beside a request as the pace of the round before weighs it."""
_ERRORS: Final = 2.0
"""Standard errors of the slope that its bounds are away."""
_ROUNDING: Final = 1e-6
"""Share of the time per token up to which requests do not slow each other: less is rounding, and weighs nothing."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Bounds of what requests make together, in output tokens per second; infinity if they do not slow each other.

    Attributes
    ----------
    low, high : float
    """

    low: float
    high: float


def pace(stays: Stays, *, full: bool = False) -> Pace | None:
    """Return what the requests of a run can make together; None if too few of them made tokens.

    Parameters
    ----------
    stays : Stays
    full : bool
        Whether there can be no more requests in service than at the fullest time of this run.
    """
    made = np.isfinite(stays.first_token_s) & (stays.made_tokens > 1) & (stays.gone_s > stays.first_token_s)
    if np.count_nonzero(made) < _LEAST:
        return None
    first_s, gone_s = stays.first_token_s[made], stays.gone_s[made]
    tokens = stays.made_tokens[made] - 1
    each_s = (gone_s - first_s) / tokens
    beside = _Beside(stays)
    alone = 0.0
    for _ in range(_ROUNDS):
        line = _line(beside.mean(first_s, gone_s, alone), each_s, tokens)
        if line.slope * line.number <= _ROUNDING * line.mean_s:
            break
        alone = max(0.0, line.mean_s - line.slope * line.number) / line.slope
    most = beside.most if full else np.inf
    return Pace(line.together(most, line.high), line.together(most, line.low))


class _Beside:
    """The number of requests in service over time."""

    def __init__(self, stays: Stays) -> None:
        started = np.isfinite(stays.start_s)
        times_s = np.concatenate([stays.start_s[started], stays.gone_s[started]])
        steps = np.repeat([1, -1], np.count_nonzero(started))
        order = np.argsort(times_s, kind="stable")
        self._times_s = times_s[order]
        self._numbers = np.maximum(np.cumsum(steps[order])[:-1], 1)

    @property
    def most(self) -> float:
        """The most at one time."""
        return float(np.max(self._numbers, where=np.diff(self._times_s) > 0, initial=1))

    def mean(self, from_s: NDArray[Any], to_s: NDArray[Any], alone: float) -> Floats:
        """Return the mean number over the time that each request takes for its tokens.

        It is the number at which the tokens would take as long if it did not change, with `alone` = a / b.
        """
        parts = np.diff(self._times_s) / (self._numbers + alone)
        sums = np.concatenate([[0.0], np.cumsum(parts)])
        taken = np.interp(to_s, self._times_s, sums) - np.interp(from_s, self._times_s, sums)
        return np.asarray((to_s - from_s) / np.maximum(taken, np.finfo(np.float64).tiny) - alone)


@dataclass(frozen=True, slots=True)
class _Line:
    """The time per token over the number in service: its means, its slope, and bounds of the slope."""

    number: float
    mean_s: float
    low: float
    slope: float
    high: float

    def together(self, number: float, slope: float) -> float:
        """Return how many tokens a second a number of requests make."""
        if np.isinf(number):
            return 1 / slope if slope > 0 else np.inf
        return number / (self.mean_s + slope * (number - self.number))


def _line(number: Floats, each_s: Floats, weights: Floats) -> _Line:
    """Return the line through the times per token of requests.

    Its slope is neither negative nor more than if a request alone took no time.
    """
    n, mean_s = float(np.average(number, weights=weights)), float(np.average(each_s, weights=weights))
    most = mean_s / n
    spread = float(np.sum(weights * (number - n) ** 2))
    if spread <= 1e-9 * np.sum(weights) * n * n:
        return _Line(n, mean_s, 0.0, most, most)
    b = float(np.sum(weights * (number - n) * (each_s - mean_s))) / spread
    off_s = each_s - mean_s - b * (number - n)
    error = float(np.sqrt(np.sum((weights * (number - n) * off_s) ** 2))) / spread
    low, found, high = (float(np.clip(value, 0.0, most)) for value in (b - _ERRORS * error, b, b + _ERRORS * error))
    return _Line(n, mean_s, low, found, high)
