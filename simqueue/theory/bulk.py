"""Bulk service: the queueing model of static batching, and servers that work in steps.

When the server of M/M^[1,b]/1 becomes free, it takes all waiting customers, up to b (dynamic batching). The server of
M/M^[b,b]/1 waits until b customers are there (fixed batching). Customers never join a batch in service, unlike in the
partial-batch model of Gross and Harris. Sources: Neuts 1967, A general class of bulk queues with Poisson input;
Chaudhry and Templeton, A First Course in Bulk Queues (1983).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from simqueue.errors import InputError
from simqueue.theory.binomial import binomial_pmf
from simqueue.theory.chain import MOST_SLOTS, renewal_averages
from simqueue.theory.domain import LEAST, MOST, at_least, positive, product, ratio, unused, whole

MOST_BATCH = 1_000_000_000
_SUMMED_OUTPUTS = 10_000
"""Mean output up to which the longest of a batch is summed term by term."""


@dataclass(frozen=True, slots=True)
class BulkServer:
    """Steady state of a bulk-service queue.

    Attributes
    ----------
    idle_probability : float
        Share of time in which the server is idle.
    mean_waiting : float
        Time average of the number of customers whose batch has not started.
    mean_wait_s, mean_sojourn_s : float
        From arrival to the start of the batch; from arrival to its end.
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
        Customers and batches per second; > 0, and arrival_rate < most x service_rate.
    most : int
        Largest batch b, from 1 to 1,000,000,000.
    """
    return math.exp(-_log_ratio(arrival_rate, service_rate, most))


def dynamic_batching(arrival_rate: float, service_rate: float, most: int) -> BulkServer:
    """Return the steady state of M/M^[1,b]/1: batches of up to `most` customers, with exponential durations.

    The durations do not depend on the size of the batch.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Customers and batches per second; > 0, and arrival_rate < most x service_rate.
    most : int
        Largest batch b, from 1 to 1,000,000,000.
    """
    y = _log_ratio(arrival_rate, service_rate, most)
    not_r = -math.expm1(-y)
    busy_none_waiting = 1 / (service_rate / arrival_rate + 1 / not_r)
    waiting = busy_none_waiting * math.exp(-y) / not_r**2
    wait_s = waiting / arrival_rate
    return BulkServer(service_rate / arrival_rate * busy_none_waiting, waiting, wait_s, wait_s + 1 / service_rate)


def fixed_batching(arrival_rate: float, service_rate: float, most: int) -> BulkServer:
    """Return the steady state of M/M^[b,b]/1: the server waits until `most` customers are there.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Customers and batches per second; > 0, and arrival_rate < most x service_rate.
    most : int
        Largest batch b, from 1 to 1,000,000,000.
    """
    y = _log_ratio(arrival_rate, service_rate, most)
    waiting = (most - 1) / 2 + math.exp(-(most + 1) * y) / -math.expm1(-y)
    wait_s = waiting / arrival_rate
    idle = unused(ratio(arrival_rate, service_rate), most) / most
    return BulkServer(idle, waiting, wait_s, wait_s + 1 / service_rate)


def _log_ratio(arrival_rate: float, service_rate: float, most: int) -> float:
    """Return y = -log r, which keeps its digits where r is close to 1.

    The sum r + ... + r^b is exp(-(b+1) y/2) sinh(b y/2) / sinh(y/2).
    """
    positive("arrival_rate", arrival_rate)
    positive("service_rate", service_rate)
    most = whole("most", most, MOST_BATCH)
    load = ratio(arrival_rate, service_rate)
    left = unused(load, most)
    log_share = math.log1p(-left / most) if left < most / 2 else math.log(float(load) / most)

    def difference(y: float) -> float:
        if most * y > 1:
            return math.log(-math.expm1(-most * y)) - y - math.log(-math.expm1(-y)) - math.log(most) - log_share
        return _log_sinhc(most * y / 2) - _log_sinhc(y / 2) - (most + 1) * y / 2 - log_share

    low, high = -2 * log_share / (most + 1), math.log1p(1 / float(load))
    return float(scipy.optimize.brentq(difference, low * (1 - 1e-9), high * (1 + 1e-9), xtol=low * 1e-15, rtol=1e-14))


def _log_sinhc(z: float) -> float:
    """Return log(sinh(z) / z) for 0 <= z <= 1/2."""
    return math.log1p(math.fsum(z ** (2 * n) / math.factorial(2 * n + 1) for n in range(1, 9)))


@dataclass(frozen=True, slots=True)
class SteppedServer:
    """Steady state of a server that works in steps or batches of known duration.

    Attributes
    ----------
    busy_share : float
        Share of time in which a step runs.
    mean_wait_s : float
        From arrival to the start of the request's first step.
    mean_sojourn_s : float
    mean_batch : float
        Requests in service, averaged over the time in which a step runs.
    """

    busy_share: float
    mean_wait_s: float
    mean_sojourn_s: float
    mean_batch: float


def timed_batching(arrival_rate: float, batch_seconds: Sequence[float]) -> SteppedServer:
    """Return the steady state of M/D^[1,b]/1: batches of known duration, which depends on their size.

    The Markov chain embedded at the starts of batches is solved numerically; time averages follow by renewal-reward.

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
    if not len(durations) or not ((durations >= LEAST) & (durations <= MOST)).all():
        raise InputError("batch_seconds: must be durations > 0, one for each batch size from 1")
    most = len(durations)
    rate_of_full = most / durations[-1]
    if arrival_rate >= rate_of_full:
        raise InputError(
            f"arrival_rate = {arrival_rate:g}: must be below {rate_of_full:g}, the rate of batches of {most}"
        )
    found = renewal_averages(arrival_rate, durations, lambda _: np.ones(1))
    # Every request stays until the end of its batch, so its sojourn is its wait plus the duration of its batch.
    in_service_s = found.mean_in_service / arrival_rate
    return SteppedServer(found.busy_share, found.mean_wait_s, found.mean_wait_s + in_service_s, found.mean_batch)


def slotted_continuous(arrival_rate: float, slots: int, mean_output_tokens: float, step_s: float) -> SteppedServer:
    """Return the exact steady state of continuous batching with constant steps and geometric outputs.

    At the end of every step each request in a slot leaves with probability 1 / mean_output_tokens. Waiting requests
    take the free slots. An idle server starts a step at once.

    Parameters
    ----------
    arrival_rate : float
        Poisson, per second; > 0 and < slots / (mean_output_tokens x step_s).
    slots : int
        Largest number of requests in a step (max_num_seqs), from 1 to 1,200. The chain is solved in at most a second,
        so the load must not be too close to 1: up to about 0.9995 with 8 slots, 0.999 with 32, 0.99 with 256.
    mean_output_tokens : float
        Mean of the geometric distribution on 1, 2, ...; from 1.
    step_s : float
        Duration of a step in seconds, prefill included; > 0.
    """
    positive("arrival_rate", arrival_rate)
    positive("step_s", step_s)
    at_least("mean_output_tokens", mean_output_tokens, 1)
    slots = whole("slots", slots, MOST_SLOTS)
    if product(arrival_rate, mean_output_tokens, step_s) >= slots:
        limit = slots / (mean_output_tokens * step_s)
        raise InputError(f"arrival_rate = {arrival_rate:g}: must be below {limit:g}, the rate of {slots} slots")
    goes_on = 1 - 1 / mean_output_tokens
    found = renewal_averages(arrival_rate, np.full(slots, step_s), lambda served: binomial_pmf(served, goes_on))
    return SteppedServer(
        found.busy_share, found.mean_wait_s, found.mean_wait_s + mean_output_tokens * step_s, found.mean_batch
    )


def continuous_over_static(mean_output_tokens: float, batch: int) -> float:
    """Return E[max of `batch` outputs] / E[output] for geometric outputs: the ratio of continuous to static throughput.

    It is exact if the duration of a step does not depend on its batch: a request then holds its slot for the longest
    output of its wave with static batching, and for its own output with continuous batching.

    Parameters
    ----------
    mean_output_tokens : float
        At least 1.
    batch : int
        From 1 to 1,000,000,000.
    """
    at_least("mean_output_tokens", mean_output_tokens, 1)
    batch = whole("batch", batch, MOST_BATCH)
    if mean_output_tokens == 1 or batch == 1:
        return 1.0
    ends = -math.log1p(-1 / mean_output_tokens)
    if mean_output_tokens > _SUMMED_OUTPUTS:
        # The sum over k below, by Euler and Maclaurin: the integral is a harmonic number over `ends`, and the
        # derivatives at 0 are of the order of its cube.
        harmonic = float(scipy.special.digamma(batch + 1)) + np.euler_gamma
        return float(harmonic / ends + 0.5) / mean_output_tokens
    last = math.ceil((math.log(batch) + 40) / ends)
    survives = np.exp(-ends * np.arange(1, last + 1))
    return float(np.sum(-np.expm1(batch * np.log1p(-survives)), initial=1.0)) / mean_output_tokens
