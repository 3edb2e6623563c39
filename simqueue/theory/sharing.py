"""Generalised processor sharing: continuous batching seen from far away.

A decode step of a + b n seconds makes n tokens, so n requests share a server that works at n / (a + b n) tokens per
second. For such a server the number of requests inside and the time per token depend on the law of output lengths
through its mean alone (Cohen 1979, The multiple phase service network with generalized processor sharing).
"""

from __future__ import annotations

from dataclasses import dataclass

from simqueue.theory.domain import at_least, positive, stable


@dataclass(frozen=True, slots=True)
class SharedDecoding:
    """Steady state of decoding without a limit on the batch.

    Attributes
    ----------
    load : float
        λ O b, the share of the largest possible rate.
    mean_batch, variance_batch : float
        Of the number of requests inside; it is negative binomial.
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
    """Return the steady state of continuous batching without limits and with free prefill.

    Parameters
    ----------
    arrival_rate : float
        Poisson, per second.
    mean_output_tokens : float
        Many (some hundred), for the sharing is that of a fluid; the law does not matter.
    overhead_s, per_decode_s : float
        A step with n requests takes overhead_s + n per_decode_s seconds.

    Raises
    ------
    InputError
        Outside the valid range, arrival_rate x mean_output_tokens x per_decode_s >= 1 included.
    """
    positive("arrival_rate", arrival_rate)
    at_least("mean_output_tokens", mean_output_tokens, 1)
    positive("overhead_s", overhead_s)
    positive("per_decode_s", per_decode_s)
    load = arrival_rate * mean_output_tokens * per_decode_s
    stable(load)
    itl_s = (overhead_s + per_decode_s) / (1 - load)
    ttft_s = 1.5 * itl_s - per_decode_s
    batch = arrival_rate * mean_output_tokens * itl_s
    return SharedDecoding(load, batch, batch / (1 - load), itl_s, ttft_s, ttft_s + (mean_output_tokens - 1) * itl_s)


@dataclass(frozen=True, slots=True)
class FreeSlots:
    """Steady state with constant steps and no limit on the batch (M/G/∞ in discrete time).

    Attributes
    ----------
    mean_batch : float
        Mean of the batch, which is Poisson.
    ttft_s, e2el_s : float
        Means in seconds; TTFT is uniform between one and two steps.
    """

    mean_batch: float
    ttft_s: float
    e2el_s: float


def free_slots(arrival_rate: float, mean_output_tokens: float, step_s: float) -> FreeSlots:
    """Return the steady state of continuous batching with constant steps, slots for everybody and a server never idle.

    Parameters
    ----------
    arrival_rate : float
        Poisson, per second; arrival_rate x mean_output_tokens x step_s is well above 1, so that the server is
        practically never idle.
    mean_output_tokens : float
    step_s : float
        Seconds a step takes.
    """
    positive("arrival_rate", arrival_rate)
    at_least("mean_output_tokens", mean_output_tokens, 1)
    positive("step_s", step_s)
    return FreeSlots(arrival_rate * mean_output_tokens * step_s, 1.5 * step_s, step_s / 2 + mean_output_tokens * step_s)
