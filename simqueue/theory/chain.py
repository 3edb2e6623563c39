"""Queues served in steps: a Markov chain of the number in the system at the starts of steps, solved numerically."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from simqueue.errors import InputError

MOST_STATES = 150_000
"""Largest number of states, whatever they cost."""
MOST_SLOTS = 1200
"""Number of slots, or of requests in a batch; up to this number of states a full matrix is solved, in 0.3 seconds."""
_MOST_WORK = 1e8
"""Multiplications of the largest band that is solved, which takes about half a second."""
_TAIL = 1e-11
"""Largest probability that the ignored states may have."""

_NEGLIGIBLE = 1e-20
"""Chance of a change in a step that is left out."""
_FASTEST, _SLOWEST = 64.0, 1e-5

More = Callable[[int], NDArray[Any]]
"""Number in service -> distribution of how many of them stay for the next step."""


@dataclass(frozen=True, slots=True)
class Averages:
    """Time averages by the renewal-reward theorem.

    Attributes
    ----------
    busy_share : float
        Share of time in which a step runs.
    mean_in_service : float
        Average over all time.
    mean_batch : float
        Number in service, averaged over the time in which a step runs.
    mean_wait_s : float
        From arrival to the start of the first step.
    """

    busy_share: float
    mean_in_service: float
    mean_batch: float
    mean_wait_s: float


def renewal_averages(arrival_rate: float, lengths: NDArray[Any], more: More) -> Averages:
    """Return the time averages of a stepped queue with Poisson arrivals.

    A step serves up to c of those in the system. Customers that arrive during a step wait for its end. If the system is
    empty, the next step starts at the next arrival.

    Parameters
    ----------
    arrival_rate : float
        Per second; the queue must be stable.
    lengths : array
        Duration of a step that serves 1, 2, ... c customers, in seconds.
    more : callable

    Raises
    ------
    InputError
        If the chain is too large, because there are too many servers or the load is too close to 1.
    """
    steps = _Steps(arrival_rate, lengths, more)
    states = steps.enough()
    shares, emptied = steps.stationary(states)
    while shares[-max(1, states // 16) :].sum() >= _TAIL:
        states *= 2
        shares, emptied = steps.stationary(states)
    n = np.arange(1, states + 1)
    served = np.minimum(n, len(lengths))
    length = lengths[served - 1]
    busy_s = float(shares @ length)
    cycle_s = busy_s + emptied / arrival_rate
    waiting = float(shares @ (length * (n - served + arrival_rate * length / 2))) / cycle_s
    serving = float(shares @ (length * served)) / cycle_s
    return Averages(busy_s / cycle_s, serving, serving * cycle_s / busy_s, waiting / arrival_rate)


@dataclass(frozen=True)
class _Steps:
    """The chain of the number in the system at the starts of steps; a step serves up to ``len(lengths)`` of them."""

    arrival_rate: float
    lengths: NDArray[Any]
    more: More
    _known: dict[float, NDArray[Any]] = field(default_factory=dict)

    def enough(self) -> int:
        """Return a number of states beyond which there is hardly any probability, from the decay of the tail."""
        most = len(self.lengths)
        if most > MOST_SLOTS:
            raise InputError(f"{most:,} slots, or requests in a batch, are too many: at most {MOST_SLOTS:,}")
        low, after = self._after(most)
        mean_after = _mean(low, after)
        body = min(float(most), mean_after + 8 * math.sqrt(mean_after) + 20)
        tail = -math.log(_TAIL) / _decay(after, np.arange(low, low + len(after)) - most)
        return int(1.1 * (body + tail)) + 16

    def stationary(self, states: int) -> tuple[NDArray[Any], float]:
        """Return the share of steps that start with 1 .. `states` in the system, and the share that leave it empty.

        The balance equations are a band: a step takes away at most c customers and adds hardly more than a few
        deviations of the arrivals. The equation of one likely state, which follows from the others, gives way to
        setting its share to 1 first.
        """
        columns = [self._after(n) for n in range(1, min(states, len(self.lengths)) + 1)]
        down = max(n - low for n, (low, _) in enumerate(columns, 1))
        up = max(1, *(low + len(chances) - 1 - n for n, (low, chances) in enumerate(columns, 1)))
        self._check(states, up * (down + up))
        band = np.zeros((down + up + 1, states + 1))  # the entry (to, from) is at [down + to - from, from]
        for n, (low, chances) in enumerate(columns, 1):
            band[down + low - n : down + low - n + len(chances), n] = -chances
            if low == 0:  # from the empty system, the next step starts with one
                band[down - n + 1, n] -= chances[0]
        low, chances = columns[-1]
        least = down + low - len(columns)
        band[least : least + len(chances), len(columns) + 1 :] = -chances[:, None]
        for n in range(max(1, states - up + 1), states + 1):  # larger numbers than `states` count as `states`
            band[down + states - n, n] += band[down + states - n + 1 :, n].sum()
        band[down] += 1
        likely = max((n for n, (low, chances) in enumerate(columns, 1) if _mean(low, chances) >= n), default=1)
        near = np.arange(max(1, likely - up), min(states, likely + down) + 1)
        band[down + likely - near, near] = near == likely
        right = np.zeros(states)
        right[likely - 1] = 1
        shares = np.clip(_solve(up, down, band[:, 1:], right), 0, None)
        shares /= shares.sum()
        empties = [chances[0] if low == 0 else 0.0 for low, chances in columns]
        return shares, float(shares[: len(empties)] @ empties)

    def _check(self, states: int, work: float) -> None:
        if states > MOST_SLOTS and (states > MOST_STATES or states * work > _MOST_WORK):
            raise InputError(
                f"the load must be lower; it grows with arrival_rate, and is too close to 1 for the chain of "
                f"{len(self.lengths):,} slots, or requests in a batch, to be solved in a second"
            )

    def _after(self, served: int) -> tuple[int, NDArray[Any]]:
        """Return the least number after a step that serves all of those in the system, and the chances from it on."""
        low, staying = _trimmed(self.more(served))
        return low, np.convolve(staying, self._arrivals(float(self.lengths[served - 1])))

    def _arrivals(self, seconds: float) -> NDArray[Any]:
        if seconds not in self._known:
            self._known[seconds] = _trimmed(poisson(self.arrival_rate * seconds, MOST_STATES), least=0)[1]
        return self._known[seconds]


def _mean(low: int, chances: NDArray[Any]) -> float:
    return float(chances @ np.arange(low, low + len(chances)))


def _trimmed(chances: NDArray[Any], least: int | None = None) -> tuple[int, NDArray[Any]]:
    """Return the first value whose chance is not negligible, or `least`, and the chances from it to the last one."""
    kept = np.flatnonzero(chances > _NEGLIGIBLE)
    first = int(kept[0]) if least is None else least
    return first, chances[first : max(kept[-1], first + 1) + 1]


def _solve(up: int, down: int, band: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Solve a system with `up` diagonals below the main one and `down` above it; small ones as full matrices."""
    states = len(right)
    if states > MOST_SLOTS:
        return np.asarray(scipy.linalg.solve_banded((up, down), band, right, overwrite_ab=True, check_finite=False))
    full = np.zeros((states, states))
    to = np.arange(len(band))[:, None] - down + np.arange(states)
    inside = (to >= 0) & (to < states)
    full[to[inside], np.nonzero(inside)[1]] = band[inside]
    return np.asarray(np.linalg.solve(full, right))


def _decay(after: NDArray[Any], grown: NDArray[Any]) -> float:
    """Return the θ > 0 with E[exp(θ growth)] = 1, or a smaller one: for large n, P(n) falls like exp(-θ n)."""

    def excess(theta: float) -> float:
        return float(scipy.special.logsumexp(theta * grown, b=after))

    low = high = _FASTEST
    while excess(low) >= 0:
        low, high = low / 2, low
        if low < _SLOWEST:
            return low
    return low if low == _FASTEST else float(scipy.optimize.brentq(excess, low, high))


def poisson(mean: float, most: int) -> NDArray[Any]:
    """Return P(k) for k = 0 .. `most`, without the negligible end."""
    last = min(most, math.ceil(mean + 12 * math.sqrt(mean) + 40))
    k = np.arange(last + 1)
    return np.asarray(np.exp(-mean + k * math.log(mean) - np.array([math.lgamma(i + 1) for i in k])))
