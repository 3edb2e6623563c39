"""The requests of a run in time: how many there are, what was asked and what was done until when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stays:
    """The requests of a run, as arrays of shape (n_requests,), in any order; times in seconds, infinity for never.

    Attributes
    ----------
    arrival_s, start_s, first_token_s, leave_s : float64 arrays
        When a request arrived, was in a step for the first time, made its first token, and left.
    prompt_tokens, output_tokens : arrays
        The work of each request.
    made_tokens : array
        Output tokens that it made until it left, or until `end_s`.
    lost : bool array
        Whether it left without an answer, because its client gave up or the queue was full.
    refused : bool array
        Whether it left so because the queue was full.
    end_s : float
        When the run ended.
    """

    arrival_s: NDArray[Any]
    start_s: NDArray[Any]
    first_token_s: NDArray[Any]
    leave_s: NDArray[Any]
    prompt_tokens: NDArray[Any]
    output_tokens: NDArray[Any]
    made_tokens: NDArray[Any]
    lost: NDArray[Any]
    refused: NDArray[Any]
    end_s: float

    @property
    def work(self) -> NDArray[Any]:
        """Tokens of each request."""
        return np.asarray(self.prompt_tokens + self.output_tokens)

    @property
    def gone_s(self) -> Floats:
        """When each request left, `end_s` if it never did."""
        return np.asarray(np.minimum(self.leave_s, self.end_s))

    def done(self, until_s: Floats) -> Floats:
        """Return the tokens done until each time: of a prompt evenly until the first token, of an output after it.

        The server worked also for a request that left while it ran: on its prompt, and on a token that it did not get.
        """
        started = np.isfinite(self.start_s)
        start_s, gone_s = self.start_s[started], self.gone_s[started]
        first_s = np.minimum(self.first_token_s[started], gone_s)
        prompts = _evenly(until_s, start_s, first_s, self.prompt_tokens[started])
        return prompts + _evenly(until_s, first_s, gone_s, (self.made_tokens + self.lost)[started])

    def spent(self, until_s: Floats) -> Floats:
        """Return the time that all requests together spent in the system until each time."""
        return _spent(until_s, self.arrival_s, self.gone_s)

    def waited(self, until_s: Floats) -> Floats:
        """Return the time that all requests together waited until each time, beyond a step, for which each can wait."""
        started_s = np.minimum(self.start_s, self.gone_s)
        return _spent(until_s, np.minimum(self.arrival_s + self._token_s, started_s), started_s)

    @property
    def _token_s(self) -> float:
        """How long a token takes on average; 0 if there are none but first ones."""
        more = np.isfinite(self.first_token_s) & (self.made_tokens > 1)
        tokens = float(np.sum(self.made_tokens[more] - 1))
        return float(np.sum((self.gone_s - self.first_token_s)[more])) / tokens if tokens else 0.0

    def unfinished(self, time_s: float) -> NDArray[Any]:
        """Return the work of each request in the system at a time."""
        return np.asarray(self.work[(self.arrival_s <= time_s) & (self.leave_s > time_s)])


def _spent(until_s: Floats, from_s: NDArray[Any], to_s: NDArray[Any]) -> Floats:
    ones = np.ones(len(from_s))
    return _ramps(until_s, from_s, ones) - _ramps(until_s, to_s, ones)


def _evenly(until_s: Floats, from_s: NDArray[Any], to_s: NDArray[Any], amounts: NDArray[Any]) -> Floats:
    """Return the sum, until each time, of amounts that are each spread evenly from one time to another."""
    lasts_s = np.maximum(to_s - from_s, 1e-6 * (until_s[-1] - until_s[0]))
    slopes = amounts / lasts_s
    return _ramps(until_s, from_s, slopes) - _ramps(until_s, from_s + lasts_s, slopes)


def _ramps(until_s: Floats, times_s: NDArray[Any], slopes: NDArray[Any]) -> Floats:
    """Return, for each time t, the sum of slope * (t - time) over the times that have passed."""
    order = np.argsort(times_s)
    before = np.searchsorted(times_s[order], until_s)
    since_s = (times_s - until_s[0])[order]
    slope = np.concatenate([[0.0], np.cumsum(slopes[order])])[before]
    offset = np.concatenate([[0.0], np.cumsum(slopes[order] * since_s)])[before]
    return np.asarray(slope * (until_s - until_s[0]) - offset)
