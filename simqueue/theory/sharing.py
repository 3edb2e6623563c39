"""Generalised processor sharing: the fluid limit of continuous batching.

A decode step of a + b n seconds emits n tokens, so n requests share a server with a rate of n / (a + b n) tokens per
second. For such a server the number of requests in the system and the time per token depend on the distribution of
output lengths only through its mean (Cohen 1979, The multiple phase service network with generalized processor
sharing).
"""

from __future__ import annotations

from dataclasses import dataclass

from simqueue.errors import InputError
from simqueue.theory.domain import at_least, positive, product, unused

LEAST_FREE_BATCH = 10.0
"""Mean batch from which on a server with free slots is idle with a probability below exp(-10)."""


@dataclass(frozen=True, slots=True)
class SharedDecoding:
    """Steady state of decoding with an unlimited batch.

    Attributes
    ----------
    load : float
        λ O b, the arrival rate over the largest possible rate.
    mean_batch, variance_batch : float
        Mean and variance of the number of requests in the system; its distribution is negative binomial.
    itl_s, ttft_s, e2el_s : float
        Mean time between tokens, to the first token and to the last, in seconds.
    """

    load: float
    mean_batch: float
    variance_batch: float
    itl_s: float
    ttft_s: float
    e2el_s: float


def shared_decoding(
    arrival_rate: float, mean_output_tokens: float, overhead_s: float, per_decode_s: float
) -> SharedDecoding:
    """Return the steady state of continuous batching with an unlimited batch and a prefill that takes no time.

    Parameters
    ----------
    arrival_rate : float
        Poisson, per second, > 0; arrival_rate x mean_output_tokens x per_decode_s must be below 1.
    mean_output_tokens : float
        At least 1. It should be large (several hundred), because the model is a fluid limit. The distribution does not
        matter.
    overhead_s, per_decode_s : float
        > 0; a step with n requests takes overhead_s + n x per_decode_s seconds.

    Raises
    ------
    InputError
        Outside the valid range, for example if arrival_rate x mean_output_tokens x per_decode_s >= 1.
    """
    positive("arrival_rate", arrival_rate)
    at_least("mean_output_tokens", mean_output_tokens, 1)
    positive("overhead_s", overhead_s)
    positive("per_decode_s", per_decode_s)
    load = product(arrival_rate, mean_output_tokens, per_decode_s)
    idle = unused(load)
    itl_s = (overhead_s + per_decode_s) / idle
    ttft_s = 1.5 * itl_s - per_decode_s
    batch = arrival_rate * mean_output_tokens * itl_s
    return SharedDecoding(float(load), batch, batch / idle, itl_s, ttft_s, ttft_s + (mean_output_tokens - 1) * itl_s)


@dataclass(frozen=True, slots=True)
class FreeSlots:
    """Steady state with constant steps and an unlimited batch (M/G/∞ in discrete time).

    Attributes
    ----------
    mean_batch : float
        Mean batch; its distribution is Poisson.
    ttft_s, e2el_s : float
        Means in seconds; TTFT is uniformly distributed between one and two steps.
    """

    mean_batch: float
    ttft_s: float
    e2el_s: float


def free_slots(arrival_rate: float, mean_output_tokens: float, step_s: float) -> FreeSlots:
    """Return the steady state of continuous batching with constant steps, unlimited slots and no idle time.

    Parameters
    ----------
    arrival_rate : float
        Poisson, per second; arrival_rate x mean_output_tokens x step_s, the mean batch, must be at least 10, so that
        the server is almost never idle (with a probability below exp(-10)).
    mean_output_tokens : float
        At least 1.
    step_s : float
        Duration of a step in seconds, > 0.
    """
    positive("arrival_rate", arrival_rate)
    at_least("mean_output_tokens", mean_output_tokens, 1)
    positive("step_s", step_s)
    batch = arrival_rate * mean_output_tokens * step_s
    if batch < LEAST_FREE_BATCH:
        raise InputError(
            f"mean batch arrival_rate x mean_output_tokens x step_s = {batch:g}: must be at least "
            f"{LEAST_FREE_BATCH:g}, because the formula has no idle time"
        )
    return FreeSlots(batch, 1.5 * step_s, step_s / 2 + mean_output_tokens * step_s)
