"""The capacity where clients have a limited number of requests in flight, and some of them are not at the server.

With N requests in flight, of which each spends z seconds outside the server, N - λ z are at the server (Little's law).
With as many seats it carries λ: a fixed point. What is not known is how long requests wait for the front end and for
the end of the step in which they arrive, and whether they come together. Bounds of λ: at most, no request waits;
at least, requests wait as long as they can, and stay at the server as long as if all in flight were there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simqueue.frontend import FrontEndTimes
from simqueue.theory.front_end import occupied_s
from simqueue.theory.lengths import Lengths
from simqueue.theory.limits import Capacity, Limit

_ACCURATE = 0.03
"""The error of a closed form, and what makes no difference beside it."""
_SPREAD = 0.4
"""E[max(0, X)] of a normal variable with mean 0, in standard deviations: seats that are free though others wait."""
_DOUBT = "clients limit the requests in flight, and it is not known how long these wait for the front end or a step"

WithSeats = Callable[[int], Capacity]
"""The capacity of the server with so many seats."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """Requests in flight, and what they go through outside the server.

    Attributes
    ----------
    clients : int
        Requests in flight at one time.
    times : FrontEndTimes
    lengths : Lengths
    sample : (prompt tokens, output tokens) or None
        Lengths of requests.
    depth : int
        Most steps that have begun before a request can join one.
    fastest_step_s : float
        Duration of a step with one request.
    """

    clients: int
    times: FrontEndTimes
    lengths: Lengths
    sample: tuple[NDArray[np.int64], NDArray[np.int64]] | None
    depth: int
    fastest_step_s: float

    def outside(self, at: Capacity, waits: float) -> float:
        """Return how many requests are outside the server if it carries `at`; `waits`: share of the longest ones.

        At 1/2 they wait as long as behind Poisson arrivals, and half of a step.
        """
        times, lengths, rate_rps = self.times, self.lengths, at.max_rate_rps
        each_s = occupied_s(times, lengths)
        longest_s = (self.clients - 1) * each_s
        busy = rate_rps * each_s
        usual_s = min(longest_s, each_s * busy / (1 - busy) / 2) if busy < 1 else longest_s
        waited_s = {0.0: 0.0, 0.5: usual_s, 1.0: longest_s}[waits]
        if self.clients > 1:  # a single request never waits for the end of a step
            waited_s += waits * self.depth * at.step_s
        before_s = times.network_s + waited_s + times.before_s(lengths.prompt)
        return rate_rps * (before_s + self._held_s(self.fastest_step_s if waits == 1 else at.step_s))

    def _held_s(self, step_s: float) -> float:
        """Return how long the first token is on its way to the client after the last one was made."""
        prompts, outputs = self.sample or (np.array([self.lengths.prompt]), np.array([self.lengths.output]))
        delays_s = self.times.first_token_s + self.times.first_token_s_per_prompt_token * prompts
        return float(np.maximum(0.0, delays_s - (outputs - 1) * step_s).mean())


def limited_by_clients(limit: Limit, seats: int, with_seats: WithSeats, flight: InFlight) -> Limit:
    """Return the capacity of a server if clients limit what is in flight.

    Parameters
    ----------
    limit : Limit
        Of the server alone, with all that is in flight at the server.
    seats : int
    with_seats : callable
    flight : InFlight
    """
    full, scarce = with_seats(min(seats, flight.clients)), seats < flight.clients
    low_rps = _least(full, min(seats, flight.clients), flight, scarce=scarce)
    alone = limit.capacity
    if low_rps >= (1 - _ACCURATE) * alone.max_rate_rps:
        return limit
    usual, high = (_fixed_point(full, min(seats, flight.clients), with_seats, flight, waits) for waits in (0.5, 0.0))
    found = usual if usual.max_rate_rps < alone.max_rate_rps else alone
    high_rps = max(high.max_rate_rps, found.max_rate_rps)
    if limit.doubt:
        known_rps = None if limit.low_rps is None else min(low_rps, limit.low_rps)
        return Limit(found, known_rps, limit.high_rps and min(high_rps, limit.high_rps), limit.doubt)
    sure = max(high_rps / found.max_rate_rps, found.max_rate_rps / low_rps) <= 1 + _ACCURATE
    # The bounds are those of a server whose own capacity is known; the closed form has an error.
    return Limit(found) if sure else Limit(found, (1 - _ACCURATE) * low_rps, (1 + _ACCURATE) * high_rps, _DOUBT)


def _least(full: Capacity, most: int, flight: InFlight, *, scarce: bool) -> float:
    """Return what the server, with all seats taken `full`, carries at least; `scarce`: seats are fewer than clients."""
    outside = flight.outside(full, 1.0)
    if scarce and outside < flight.clients:
        spread = math.sqrt(outside * (1 - outside / flight.clients))
        if most + outside + _SPREAD * spread <= flight.clients:
            return full.max_rate_rps  # enough requests wait for a seat
    return full.max_rate_rps * flight.clients / (outside + flight.clients)


def _fixed_point(full: Capacity, most: int, with_seats: WithSeats, flight: InFlight, waits: float) -> Capacity:
    """Return what the server carries with the seats that are taken, up to `most`; with all taken it is `full`."""

    def in_flight(at: Capacity, seats: int) -> float:
        return seats + flight.outside(at, waits)

    if in_flight(full, most) <= flight.clients:
        return full
    low, high, at_low, at_high = 0, most, None, full
    while high - low > 1:
        middle = (low + high) // 2
        at = with_seats(middle)
        if in_flight(at, middle) <= flight.clients:
            low, at_low = middle, at
        else:
            high, at_high = middle, at
    below, low_rps = (0.0, 0.0) if at_low is None else (in_flight(at_low, low), at_low.max_rate_rps)
    share = (flight.clients - below) / (in_flight(at_high, high) - below)
    rate_rps = low_rps + share * (at_high.max_rate_rps - low_rps)
    running = low + share
    limits = {name: max(rate, rate_rps) for name, rate in full.limits_rps.items()} | {"slots": rate_rps}
    steps = full.steps_per_request * full.running / running
    return replace(
        at_high, max_rate_rps=rate_rps, binding="slots", limits_rps=limits, steps_per_request=steps, running=running
    )
