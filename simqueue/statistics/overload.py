"""Overload: whether more work comes to a run than its policy can do, as seen from the run itself.

The load of a run is the work that arrived over the work that could have been done in the same time. What could have
been done is seen in two ways. Where requests wait, it is what was done while the system was fullest: a policy that is
ever at its capacity is at it then. Where they do not wait but slow each other, it follows from how much they do
(`pace`). The *excess* of the work over what could be done does not depend on how long a request stays, so it is largest
where the overload is worst. It counts only together with a backlog: work that waits when arrivals stop, that left
without being done, or, for policies that seat every request, that is not finished. Filling up from empty, requests in
service at the end, and bursts that were made up for leave no excess.

Work is counted in tokens, so that a policy that lets a few long requests starve is seen; the longest waiting request
does not count, so that one giant is no overload.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simqueue.statistics.pace import pace
from simqueue.statistics.stays import Floats, Stays

LEAST_REQUESTS: Final = 100
"""Smallest number of requests: with fewer, a queue that fills and drains once looks like one that grows."""
CELLS: Final = 400
"""Most equal intervals of time in which the system is looked at; a quarter of them are the fullest. They are as long as
a mean stay, or longer, so that regular arrivals and steps do not decide which these are."""
BATCHES: Final = 20
"""Intervals over which the arrived work varies, for the error of the excess."""
STRONG_EXCESS: Final = 0.08
STRONG_BACKLOG: Final = 0.05
"""Shares of the arrived work above which excess and backlog are overload whatever else is known. At a load of 1.5
both are near 1/3. At 0.8, with gaps of a CV of 3, 500 requests reach both in about 2 runs of 100."""
WEAK_SHARE: Final = 0.02
"""Share above which excess and backlog count if the excess is significant too."""
SIGNIFICANT: Final = 1.73
"""t-value of the excess above which it is significant: 5 %, one-sided, 19 degrees of freedom."""
ENOUGH_REQUESTS: Final = 500
"""With fewer requests, the excess has to be larger by the square root of what is missing, as its error is."""
HARDLY_WAITED: Final = 0.1
"""Share of the requests that wait while the system is fullest, up to which they slow each other and do not wait."""
SETTLED_STAYS: Final = 5.0
"""Least length of a run, in mean stays of requests that left, in which it can be said that no request waits: before,
the system is still filling up."""
PILES_UP: Final = 1.5
"""Growth of the unfinished work in the second half of a run from which on it is not said that the run kept up."""
MUCH: Final = 0.2
"""Share of the arrived work that is too much to be unfinished in a run that kept up."""
GROWTH: Final = 1.25
"""Where a queue may be bounded, it shows overload only if it grew by this factor in the second half of the run."""


class Sign(Enum):
    """What a run shows about overload."""

    STRONG = "overloaded, whatever the capacity law says"
    WEAK = "overloaded, unless the capacity law says otherwise"
    NONE = "more could have been done than came"
    UNCLEAR = "either is possible"


@dataclass(frozen=True, slots=True)
class Excess:
    """Work that arrived beyond what could be done meanwhile; negative if more could have been done.

    Attributes
    ----------
    share : float
        Of the work that arrived.
    t : float
        The share over its standard error.
    """

    share: float
    t: float

    @property
    def significant(self) -> bool:
        """Whether it is more than chance."""
        return self.t > SIGNIFICANT

    @property
    def absent(self) -> bool:
        """Whether more could have been done, by more than chance."""
        return self.t < -SIGNIFICANT


@dataclass(frozen=True, slots=True)
class Evidence:
    """How a run kept up with its arrivals. Shares are of the work that arrived.

    Attributes
    ----------
    requests : int
        Number of requests.
    done_rps : float
        Requests per second, with the work of the mean one, that could be done.
    least, most : Excess
        Bounds of the excess: against what was done while the system was fullest, where requests waited then, which is
        one number; else against what requests that slow each other can do together.
    queued : bool
        Whether a considerable part of the requests waited while the system was fullest.
    waiting : float
        Work that had not been started at the last arrival, without the longest request.
    lost : float
        Work of the requests that left without an answer.
    unfinished, unfinished_before : float
        Work that was not finished at the last arrival, and in the middle of the run, without the longest request.
    stays : float
        Length of the run, in mean stays.
    """

    requests: int
    done_rps: float
    least: Excess
    most: Excess
    queued: bool
    waiting: float
    lost: float
    unfinished: float
    unfinished_before: float
    stays: float

    @property
    def sign(self) -> Sign:
        """What this shows about overload."""
        found, backlog = self.least, self.lost + (self.waiting if self.queued else self.unfinished)
        few = max(1.0, ENOUGH_REQUESTS / self.requests) ** 0.5
        if found.share > few * STRONG_EXCESS and backlog > STRONG_BACKLOG:
            return Sign.STRONG
        if found.share > WEAK_SHARE and backlog > WEAK_SHARE and found.significant:
            return Sign.WEAK
        return Sign.NONE if self._kept_up else Sign.UNCLEAR

    @property
    def growing(self) -> bool:
        """Whether the work in the system grew in the second half of the run."""
        return self.unfinished > GROWTH * self.unfinished_before

    @property
    def _kept_up(self) -> bool:
        """Whether clearly more could have been done than arrived, and nothing piled up."""
        if self.waiting > STRONG_BACKLOG or not self.most.absent:
            return False
        if self.queued:
            return self.unfinished <= max(MUCH, PILES_UP * self.unfinished_before)
        return self.stays >= SETTLED_STAYS


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
    total, span_s = float(np.sum(stays.work)), end_s - start_s
    if span_s <= 0 or total <= 0:
        return None
    lasts = _stays_long(stays, span_s)
    done, queued = _fullest(stays, np.linspace(start_s, end_s, 1 + int(np.clip(lasts, BATCHES, CELLS))))
    least, most = _excesses(stays, span_s, done / total, queued=queued)
    waiting = (stays.start_s > end_s) & (stays.leave_s > end_s)
    return Evidence(
        requests=len(stays.arrival_s),
        done_rps=len(stays.arrival_s) * done / total / span_s,
        least=least,
        most=most,
        queued=queued,
        waiting=_without_longest(stays.work[waiting]) / total,
        lost=float(np.sum(stays.work[stays.lost])) / total,
        unfinished=_without_longest(stays.unfinished(end_s)) / total,
        unfinished_before=_without_longest(stays.unfinished((start_s + end_s) / 2)) / total,
        stays=lasts,
    )


def _stays_long(stays: Stays, span_s: float) -> float:
    """Return how many mean stays of requests that left a run is long."""
    left_s = (stays.gone_s - stays.arrival_s)[np.isfinite(stays.leave_s)]
    return span_s / float(np.mean(left_s)) if np.sum(left_s) > 0 else np.inf


def _fullest(stays: Stays, edges: Floats) -> tuple[float, bool]:
    """Return the work that could be done if all cells were as the fullest quarter, and whether requests wait in it."""
    spent, cells = np.diff(stays.spent(edges)), len(edges) - 1
    fullest = np.argsort(-_rounded(spent), kind="stable")[: cells // 4]
    waited = float(np.diff(stays.waited(edges))[fullest].sum())
    done = float(np.diff(stays.done(edges))[fullest].mean()) * cells
    return done, waited > HARDLY_WAITED * float(spent[fullest].sum())


def _excesses(stays: Stays, span_s: float, done: float, *, queued: bool) -> tuple[Excess, Excess]:
    """Return the least and the most excess that are possible.

    If requests wait in the fullest cells, what was `done` there, as a share of what arrived, is what can be done. Else
    it is what requests make together: if a full queue refused some of them, with as many in service as there ever were.
    """
    error = _error(stays) / float(np.sum(stays.work))
    outputs = float(np.sum(stays.output_tokens)) / span_s
    full = float(np.sum(stays.work[stays.refused])) > WEAK_SHARE * float(np.sum(stays.work))
    found = None if queued or not outputs else pace(stays, full=full)
    if found is None:
        return _excess(done, error), _excess(done, error)
    return _excess(found.high / outputs, error), _excess(found.low / outputs, error)


def _rounded(spent: Floats) -> Floats:
    """Return values that differ by rounding only as equal, so that the unit of time does not decide their order."""
    return np.round(spent / (np.max(spent) or 1.0), 9)


def _excess(done: float, error: float) -> Excess:
    """Return the excess over what could be done, as a share of what arrived, whose relative error is given."""
    share = 1 - done
    return Excess(share, share / error if error > 0 else float(np.copysign(np.inf, share)))


def _error(stays: Stays) -> float:
    """Return the standard error of the work that arrived in all, from what arrived in equal intervals."""
    edges = np.linspace(np.min(stays.arrival_s), np.max(stays.arrival_s), BATCHES + 1)
    arrived = np.histogram(stays.arrival_s, edges, weights=stays.work)[0]
    return float(arrived.std(ddof=1) * np.sqrt(BATCHES))


def _without_longest(work: NDArray[Any]) -> float:
    return float(np.sum(work) - np.max(work)) if len(work) else 0.0


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
