"""Overload: whether a run has no steady state, as seen from the run itself.

The load of a run is the work that arrived over the work that could have been done in the same time. What could have
been done is seen while the system is fullest: a policy that is ever at its capacity is at it then. This *excess* of the
work over what could be done does not depend on how long a request stays, so it is largest where the overload is worst.
It counts only together with a backlog: work that waits when arrivals stop, or, for policies that seat every request,
work that is not finished although the run is many times longer than an undisturbed stay. Filling up from empty,
requests in service at the end, and bursts that were made up for leave no excess.

Work is counted in tokens, so that a policy that lets a few long requests starve is seen; the longest waiting request
does not count, so that one giant is no overload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_REQUESTS: Final = 100
"""Smallest number of requests: with fewer, a queue that fills and drains once looks like one that grows."""
CELLS: Final = 400
"""Equal intervals of time in which the system is looked at; a quarter of them are the fullest."""
BATCHES: Final = 20
"""Intervals over which the arrived work varies, for the error of the excess."""
STRONG_EXCESS: Final = 0.08
STRONG_BACKLOG: Final = 0.05
"""Shares of the arrived work above which excess and waiting work are overload whatever else is known. At a load of 1.5
both are near 1/3. At 0.8, with gaps of a CV of 3, 500 requests reach both in about 2 runs of 100."""
WEAK_SHARE: Final = 0.02
"""Share above which excess and waiting work count if the excess is significant too."""
WEAK_T: Final = 1.73
"""t-value of the excess above which it is significant: 5 %, one-sided, 19 degrees of freedom."""
SLOW_EXCESS: Final = 0.4
SLOW_BACKLOG: Final = 0.2
"""The same for policies that seat every request and slow all of them down, in finished requests. At a load of 1.5 they
are near 0.55; at 0.8 and 500 requests the excess is below 0.4."""
ENOUGH_REQUESTS: Final = 500
"""With fewer requests, the excess has to be larger by the square root of what is missing, as its error is."""
SLOW_STAYS: Final = 10.0
"""Least length of such a run in stays at the fastest pace: in a shorter one, filling up looks like overload."""
GROWTH: Final = 1.25
"""Where a queue may be bounded, it shows overload only if it grew by this factor in the second half of the run."""
CONFIRMED: Final = 0.9
"""Share of the capacity that a run has to reach to confirm the law."""
PILES_UP: Final = 1.5
"""Growth of the unfinished work in the second half of a run from which on it is not said that the run kept up."""
LAW_ERROR: Final = 0.03
"""Relative error of the capacity law where it has no caution; nearer to a load of 1 the law does not outweigh a run."""


class Sign(Enum):
    """What a run shows about overload."""

    STRONG = "overloaded, whatever the capacity law says"
    WEAK = "overloaded, unless the capacity law says otherwise"
    NONE = "work was done as it came"
    UNCLEAR = "either is possible"


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
    end_s: float

    @property
    def work(self) -> NDArray[Any]:
        """Tokens of each request."""
        return np.asarray(self.prompt_tokens + self.output_tokens)

    @property
    def undisturbed_s(self) -> float:
        """How long the mean request decodes at the fastest pace of any; 0 if no request decodes."""
        decoding = (self.made_tokens > 1) & np.isfinite(self.leave_s) & np.isfinite(self.first_token_s)
        if not decoding.any():
            return 0.0 if np.all(self.output_tokens <= 1) else np.inf
        pace_s = (self.leave_s[decoding] - self.first_token_s[decoding]) / (self.made_tokens[decoding] - 1)
        return float(pace_s.min() * np.mean(self.output_tokens))


@dataclass(frozen=True, slots=True)
class Evidence:
    """How a run kept up with its arrivals. Shares are of the work that arrived.

    Attributes
    ----------
    requests : int
        Number of requests.
    done_rps : float
        Requests per second, with the work of the mean one, that could be done.
    excess : float
        Work that arrived beyond what could be done meanwhile; negative if more could have been done.
    excess_t : float
        The excess over its standard error.
    waiting : float
        Work that had not been started at the last arrival, without the longest request.
    finished_excess, unfinished : float
        Excess and backlog in requests that are finished, which in-service requests are not.
    unfinished_before : float
        Work that was not finished in the middle of the run, without the longest request.
    stays : float
        Length of the run, in stays at the fastest pace.
    """

    requests: int
    done_rps: float
    excess: float
    excess_t: float
    waiting: float
    finished_excess: float
    unfinished: float
    unfinished_before: float
    stays: float

    @property
    def sign(self) -> Sign:
        """What this shows about overload."""
        few = max(1.0, ENOUGH_REQUESTS / self.requests) ** 0.5
        if self.excess > few * STRONG_EXCESS and self.waiting > STRONG_BACKLOG:
            return Sign.STRONG
        slowed = self.finished_excess > few * SLOW_EXCESS and self.unfinished > SLOW_BACKLOG
        if slowed and self.stays >= SLOW_STAYS:
            return Sign.STRONG
        if self.waiting > WEAK_SHARE and self.excess > WEAK_SHARE and self.excess_t > WEAK_T:
            return Sign.WEAK
        return Sign.NONE if self._kept_up else Sign.UNCLEAR

    @property
    def growing(self) -> bool:
        """Whether the work in the system grew in the second half of the run."""
        return self.unfinished > GROWTH * self.unfinished_before

    @property
    def _kept_up(self) -> bool:
        """Whether nothing piled up, or significantly more could have been done than arrived."""
        if self.finished_excess > SLOW_EXCESS / 2 and self.unfinished > SLOW_BACKLOG:
            return False
        least = max(STRONG_BACKLOG, PILES_UP * self.unfinished_before)
        if self.finished_excess > STRONG_BACKLOG and self.unfinished > least:
            return False
        nothing_waits = self.waiting <= WEAK_SHARE and self.excess <= STRONG_EXCESS
        return nothing_waits or (self.waiting <= STRONG_BACKLOG and self.excess_t <= -WEAK_T)


def evidence(stays: Stays) -> Evidence | None:
    """Return how a run kept up with its arrivals.

    Returns
    -------
    Evidence or None
        None with fewer than `LEAST_REQUESTS` requests, or if all arrive at one time.
    """
    if len(stays.arrival_s) < LEAST_REQUESTS:
        return None
    start_s, end_s = float(np.min(stays.arrival_s)), float(np.max(stays.arrival_s))
    total = float(np.sum(stays.work))
    if end_s <= start_s or total <= 0:
        return None
    edges = np.linspace(start_s, end_s, CELLS + 1)
    arrived = _passed(edges, stays.arrival_s, stays.work)
    full = _fullest(edges, stays)
    done = np.diff(_done(edges, stays))[full].mean() * CELLS
    finished = np.diff(_passed(edges, stays.leave_s, stays.work))[full].mean() * CELLS
    error = _error(arrived[:: CELLS // BATCHES])
    excess = float(total - done) / total
    undisturbed_s = stays.undisturbed_s
    return Evidence(
        requests=len(stays.arrival_s),
        done_rps=len(stays.arrival_s) * (1 - excess) / (end_s - start_s),
        excess=excess,
        excess_t=excess * total / error if error > 0 else float(np.copysign(np.inf, excess)),
        waiting=_without_longest(stays.work[stays.start_s > end_s]) / total,
        finished_excess=float(total - finished) / total,
        unfinished=_unfinished(stays, end_s) / total,
        unfinished_before=_unfinished(stays, (start_s + end_s) / 2) / total,
        stays=(end_s - start_s) / undisturbed_s if undisturbed_s > 0 else np.inf,
    )


def _fullest(edges: Floats, stays: Stays) -> NDArray[np.intp]:
    """Return the quarter of the cells in which most requests are in the system, in no order."""
    ones = np.ones(len(stays.arrival_s))
    inside = _passed(edges, stays.arrival_s, ones) - _passed(edges, stays.leave_s, ones)
    return np.argsort(-(inside[1:] + inside[:-1]), kind="stable")[: CELLS // 4]


def _done(until_s: Floats, stays: Stays) -> Floats:
    """Return the tokens done until each time: of a prompt evenly until the first token, of an output after it."""
    started = np.isfinite(stays.first_token_s)
    start_s, first_s = stays.start_s[started], stays.first_token_s[started]
    leave_s = np.minimum(stays.leave_s[started], stays.end_s)
    prompts = _evenly(until_s, start_s, first_s, stays.prompt_tokens[started])
    return prompts + _evenly(until_s, first_s, leave_s, stays.made_tokens[started])


def _evenly(until_s: Floats, from_s: NDArray[Any], to_s: NDArray[Any], amounts: NDArray[Any]) -> Floats:
    """Return the sum, until each time, of amounts that are each spread evenly from one time to another."""
    lasts_s = np.maximum(to_s - from_s, 1e-6 * (until_s[-1] - until_s[0]))
    slopes = amounts / lasts_s
    return _ramps(until_s, from_s, slopes) - _ramps(until_s, from_s + lasts_s, slopes)


def _ramps(until_s: Floats, times_s: NDArray[Any], slopes: NDArray[Any]) -> Floats:
    """Return, for each time t, the sum of slope * (t - time) over the times that have passed."""
    order = np.argsort(times_s)
    passed = np.searchsorted(times_s[order], until_s)
    since_s = (times_s - until_s[0])[order]
    slope = np.concatenate([[0.0], np.cumsum(slopes[order])])[passed]
    offset = np.concatenate([[0.0], np.cumsum(slopes[order] * since_s)])[passed]
    return np.asarray(slope * (until_s - until_s[0]) - offset)


def _passed(until_s: Floats, times_s: NDArray[Any], amounts: NDArray[Any]) -> Floats:
    """Return the sum of the amounts whose time is at most each of `until_s`."""
    order = np.argsort(times_s)
    sums = np.concatenate([[0.0], np.cumsum(amounts[order])])
    return np.asarray(sums[np.searchsorted(times_s[order], until_s, side="right")])


def _error(arrived: Floats) -> float:
    """Return the standard error of the work that arrived in all, from what arrived between the given sums."""
    increments = np.diff(arrived)
    increments[0] += arrived[0]
    return float(increments.std(ddof=1) * np.sqrt(len(increments)))


def _unfinished(stays: Stays, time_s: float) -> float:
    return _without_longest(stays.work[(stays.arrival_s <= time_s) & (stays.leave_s > time_s)])


def _without_longest(work: NDArray[Any]) -> float:
    return float(np.sum(work) - np.max(work)) if len(work) else 0.0


@dataclass(frozen=True, slots=True)
class Law:
    """What a capacity law says about a run.

    Attributes
    ----------
    load : float or None
        Arrival rate over capacity; None if it is not known.
    capacity_rps : float or None
        Requests per second that can be served.
    doubtful : bool
        Whether the law has a caution.
    """

    load: float | None = None
    capacity_rps: float | None = None
    doubtful: bool = False

    @property
    def stable(self) -> bool:
        """Whether the load is surely below 1."""
        return self.load is not None and not self.doubtful and self.load <= 1 - LAW_ERROR

    def confirmed_by(self, found: Evidence | None) -> bool:
        """Return whether the fullest part of a run did as much as the capacity: then its requests only came early."""
        return found is not None and self.capacity_rps is not None and found.done_rps >= CONFIRMED * self.capacity_rps


def is_overloaded(law: Law, found: Evidence | None, *, bounded: bool = False) -> bool | None:
    """Return whether a run has no steady state: its load is at least 1, or its work piled up.

    Parameters
    ----------
    law : Law
    found : Evidence or None
    bounded : bool
        Whether something else than the server can bound the queue: requests wait for earlier responses before they
        arrive, or leave without a response. Then work shows overload only while it piles up, and never its absence.

    Returns
    -------
    bool or None
        None if it cannot be told.
    """
    sign = Sign.UNCLEAR if found is None or (bounded and not found.growing) else found.sign
    if law.load is not None and law.load >= 1 and not (law.doubtful and sign is Sign.NONE):
        return True
    if law.stable and (sign is not Sign.STRONG or law.confirmed_by(found)):
        return False
    if sign in (Sign.STRONG, Sign.WEAK):
        return True
    return False if sign is Sign.NONE and not bounded else None


def majority(flags: Sequence[object]) -> bool | None:
    """Return what more than half of several runs say; None if neither answer has as many."""
    for answer in (True, False):
        if 2 * sum(flag is answer for flag in flags) > len(flags):
            return answer
    return None


def overlap_share(arrival_s: NDArray[Any], leave_s: NDArray[Any]) -> float | None:
    """Return the share of requests that found another request in the system at arrival; None with fewer than two.

    Parameters
    ----------
    arrival_s, leave_s : arrays of shape (n_requests,), in order of arrival
    """
    if len(arrival_s) < 2:
        return None
    latest = np.maximum.accumulate(leave_s)[:-1]
    return float(np.mean(latest > arrival_s[1:]))
