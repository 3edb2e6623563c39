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
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.theory.binomial import binomial_pmf
from simqueue.theory.chain import renewal_averages
from simqueue.theory.domain import at_most, positive


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
        Customers and batches per second; arrival_rate < most x service_rate.
    most : int
        Largest batch b, at least 1.
    """
    positive("arrival_rate", arrival_rate)
    positive("service_rate", service_rate)
    if most < 1:
        raise InputError(f"most = {most}: must be at least 1")
    ratio = arrival_rate / service_rate
    if ratio >= most:
        limit = most * service_rate
        raise InputError(f"arrival_rate = {arrival_rate:g}: must be below most x service_rate = {limit:g}")
    powers = np.arange(1, most + 1)
    return float(scipy.optimize.brentq(lambda r: float(np.sum(r**powers)) - ratio, 0, 1, xtol=1e-15, rtol=1e-14))


def dynamic_batching(arrival_rate: float, service_rate: float, most: int) -> BulkServer:
    """Return the steady state of M/M^[1,b]/1: batches of up to `most` customers, with exponential durations.

    The durations do not depend on the size of the batch.
    """
    r = bulk_root(arrival_rate, service_rate, most)
    busy_none_waiting = 1 / (service_rate / arrival_rate + 1 / (1 - r))
    waiting = busy_none_waiting * r / (1 - r) ** 2
    wait_s = waiting / arrival_rate
    return BulkServer(service_rate / arrival_rate * busy_none_waiting, waiting, wait_s, wait_s + 1 / service_rate)


def fixed_batching(arrival_rate: float, service_rate: float, most: int) -> BulkServer:
    """Return the steady state of M/M^[b,b]/1: the server waits until `most` customers are there."""
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
    if not len(durations) or not (durations > 0).all():
        raise InputError("batch_seconds: must be durations > 0, one for each batch size from 1")
    most = len(durations)
    if arrival_rate * durations[-1] >= most:
        raise InputError(
            f"arrival_rate = {arrival_rate:g}: must be below {most / durations[-1]:g}, the rate of batches of {most}"
        )

    def seconds(n: int) -> float:
        return float(durations[min(n, most) - 1])

    found = renewal_averages(
        arrival_rate, seconds, lambda n: (max(n - most, 0), np.ones(1)), lambda n: min(n, most), start=4 * most + 64
    )
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
        Poisson, per second; below slots / (mean_output_tokens x step_s).
    slots : int
        Largest number of requests in a step (max_num_seqs).
    mean_output_tokens : float
        Mean of the geometric distribution on 1, 2, ...
    step_s : float
        Duration of a step in seconds, prefill included.
    """
    positive("arrival_rate", arrival_rate)
    positive("step_s", step_s)
    if slots < 1 or not mean_output_tokens >= 1:
        raise InputError(f"slots = {slots}, mean_output_tokens = {mean_output_tokens:g}: both must be at least 1")
    if arrival_rate * mean_output_tokens * step_s >= slots:
        limit = slots / (mean_output_tokens * step_s)
        raise InputError(f"arrival_rate = {arrival_rate:g}: must be below {limit:g}, the rate of {slots} slots")
    ends = 1 / mean_output_tokens

    def stay(n: int) -> tuple[int, NDArray[Any]]:
        served = min(n, slots)
        return n - served, binomial_pmf(served, 1 - ends)

    found = renewal_averages(arrival_rate, lambda _: step_s, stay, lambda n: min(n, slots), start=8 * slots + 64)
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
        From 1 to 100,000.
    batch : int
        At least 1.
    """
    if batch < 1 or not mean_output_tokens >= 1:
        raise InputError(f"batch = {batch}, mean_output_tokens = {mean_output_tokens:g}: both must be at least 1")
    at_most("mean_output_tokens", mean_output_tokens, 100_000)
    if mean_output_tokens == 1:
        return 1.0
    goes_on = math.log1p(-1 / mean_output_tokens)
    last = math.ceil(-(math.log(batch) + 40) / goes_on)
    k = np.arange(last + 1)
    return float(np.sum(-np.expm1(batch * np.log1p(-np.exp(k[1:] * goes_on))), initial=1.0)) / mean_output_tokens
