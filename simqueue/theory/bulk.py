"""Bulk service: what static batching is to queueing theory.

M/M^[1,b]/1 takes whatever waits, up to b, when the server becomes free (dynamic batching); M/M^[b,b]/1 waits for b
(fixed batching). Nobody joins a batch under way, which tells these models from the partial-batch model of Gross and
Harris. Sources: Neuts 1967, A general class of bulk queues with Poisson input; Chaudhry and Templeton, A First Course
in Bulk Queues (1983).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.theory.chain import renewal_averages
from simqueue.theory.domain import positive


@dataclass(frozen=True, slots=True)
class BulkServer:
    """Steady state of a bulk-service queue.

    Attributes
    ----------
    idle_probability : float
        Share of time in which nothing is served.
    mean_waiting : float
        Time average of the number that waits for its batch to start.
    mean_wait_s, mean_sojourn_s : float
        Until the batch starts; until it ends.
    """

    idle_probability: float
    mean_waiting: float
    mean_wait_s: float
    mean_sojourn_s: float


def bulk_root(arrival_rate: float, service_rate: float, most: int) -> float:
    """Return the root r in (0, 1) of μ (r + ... + r^b) = λ, the ratio of the geometric queue length.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Per second; the latter of whole batches. Stable for arrival_rate < most x service_rate.
    most : int
        Largest batch b, at least 1.
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - scipy is slow to load and not always wanted

    positive("arrival_rate", arrival_rate)
    positive("service_rate", service_rate)
    if most < 1:
        raise InputError(f"most = {most}: must be at least 1")
    ratio = arrival_rate / service_rate
    if ratio >= most:
        raise InputError(f"arrival_rate {arrival_rate:g} is not below most x service_rate = {most * service_rate:g}")
    powers = np.arange(1, most + 1)
    return float(brentq(lambda r: float(np.sum(r**powers)) - ratio, 0, 1, xtol=1e-15, rtol=1e-14))


def dynamic_batching(arrival_rate: float, service_rate: float, most: int) -> BulkServer:
    """Return the steady state of M/M^[1,b]/1: exponential batches whose length does not depend on their size."""
    r = bulk_root(arrival_rate, service_rate, most)
    busy_none_waiting = 1 / (service_rate / arrival_rate + 1 / (1 - r))
    waiting = busy_none_waiting * r / (1 - r) ** 2
    wait_s = waiting / arrival_rate
    return BulkServer(service_rate / arrival_rate * busy_none_waiting, waiting, wait_s, wait_s + 1 / service_rate)


def fixed_batching(arrival_rate: float, service_rate: float, most: int) -> BulkServer:
    """Return the steady state of M/M^[b,b]/1: the server waits until b are there."""
    r = bulk_root(arrival_rate, service_rate, most)
    in_system = (most - 1) / 2 + r / (1 - r)
    sojourn_s = in_system / arrival_rate
    wait_s = sojourn_s - 1 / service_rate
    return BulkServer(1 - arrival_rate / (most * service_rate), arrival_rate * wait_s, wait_s, sojourn_s)


@dataclass(frozen=True, slots=True)
class SteppedServer:
    """Steady state of a server that works in steps or batches of known duration.

    Attributes
    ----------
    busy_share : float
        Share of time in which a step runs.
    mean_wait_s : float
        Until a request's first step starts.
    mean_sojourn_s : float
    mean_batch : float
        Requests in service, averaged over the time in which a step runs.
    """

    busy_share: float
    mean_wait_s: float
    mean_sojourn_s: float
    mean_batch: float


def timed_batching(arrival_rate: float, batch_seconds: Sequence[float]) -> SteppedServer:
    """Return the steady state of M/D^[1,b]/1 with batches whose known duration depends on their size.

    The embedded chain at the starts of batches is solved numerically; time averages follow by renewal-reward.

    Parameters
    ----------
    arrival_rate : float
        Poisson, per second; below b / batch_seconds[b - 1].
    batch_seconds : sequence of float
        Duration of a batch of 1, 2, ... b requests.

    Raises
    ------
    InputError
        Outside the valid range.
    """
    positive("arrival_rate", arrival_rate)
    durations = np.array(batch_seconds, dtype=np.float64)
    if not len(durations) or not (durations > 0).all():
        raise InputError("batch_seconds: needs a duration > 0 for every size of batch, from 1 on")
    most = len(durations)
    if arrival_rate * durations[-1] >= most:
        raise InputError(
            f"arrival_rate {arrival_rate:g} is not below {most / durations[-1]:g}, what batches of {most} serve"
        )
    seconds: Callable[[int], float] = lambda n: float(durations[min(n, most) - 1])  # noqa: E731 - one formula, once
    found = renewal_averages(
        arrival_rate, seconds, lambda n: (max(n - most, 0), np.ones(1)), lambda n: min(n, most), start=4 * most + 64
    )
    # everybody in a batch stays to its end, so the sojourn is the wait and the batch of one's own
    in_service_s = found.mean_in_service / arrival_rate
    return SteppedServer(found.busy_share, found.mean_wait_s, found.mean_wait_s + in_service_s, found.mean_batch)


def slotted_continuous(arrival_rate: float, slots: int, mean_output_tokens: float, step_s: float) -> SteppedServer:
    """Return the exact steady state of continuous batching with constant steps and geometric outputs.

    At every step each of the requests in a slot ends with probability 1 / mean_output_tokens; those who wait take free
    slots; an idle server starts a step at once.

    Parameters
    ----------
    arrival_rate : float
        Poisson, per second; below slots / (mean_output_tokens x step_s).
    slots : int
        Most requests in a step (max_num_seqs).
    mean_output_tokens : float
        Mean of the geometric law on 1, 2, ...
    step_s : float
        Seconds a step takes, prefill included.
    """
    positive("arrival_rate", arrival_rate)
    positive("step_s", step_s)
    if slots < 1 or not mean_output_tokens >= 1:
        raise InputError(f"slots = {slots}, mean_output_tokens = {mean_output_tokens:g}: both must be at least 1")
    if arrival_rate * mean_output_tokens * step_s >= slots:
        limit = slots / (mean_output_tokens * step_s)
        raise InputError(f"arrival_rate {arrival_rate:g} is not below {limit:g}, what {slots} slots serve")
    ends = 1 / mean_output_tokens

    def stay(n: int) -> tuple[int, NDArray[Any]]:
        served = min(n, slots)
        return n - served, _binomial(served, 1 - ends)

    found = renewal_averages(arrival_rate, lambda _: step_s, stay, lambda n: min(n, slots), start=8 * slots + 64)
    return SteppedServer(
        found.busy_share, found.mean_wait_s, found.mean_wait_s + mean_output_tokens * step_s, found.mean_batch
    )


def continuous_over_static(mean_output_tokens: float, batch: int) -> float:
    """Return E[max of `batch` outputs] / E[output] for geometric outputs: the throughput that static batching loses.

    It is exact where a step takes the same time whatever its batch, for then a static wave lasts for its longest
    output and a slot of a continuous batch only for its own.

    Parameters
    ----------
    mean_output_tokens : float
        At least 1.
    batch : int
        At least 1.
    """
    if batch < 1 or not mean_output_tokens >= 1:
        raise InputError(f"batch = {batch}, mean_output_tokens = {mean_output_tokens:g}: both must be at least 1")
    if mean_output_tokens == 1:
        return 1.0
    goes_on = math.log1p(-1 / mean_output_tokens)
    last = math.ceil(-(math.log(batch) + 40) / goes_on)
    k = np.arange(last + 1)
    return float(np.sum(-np.expm1(batch * np.log1p(-np.exp(k[1:] * goes_on))), initial=1.0)) / mean_output_tokens


def _binomial(n: int, p: float) -> NDArray[Any]:
    """Return P(k of n) for k = 0 .. n."""
    from scipy.stats import binom  # noqa: PLC0415 - scipy is slow to load and not always wanted

    return np.asarray(binom.pmf(np.arange(n + 1), n, p))
