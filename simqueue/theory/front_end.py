"""What a front end adds to the capacity law and to estimates: one more server in front, on which requests queue."""

from __future__ import annotations

from dataclasses import replace

from simqueue.frontend import FrontEndTimes
from simqueue.theory.lengths import Lengths
from simqueue.theory.limits import Limit
from simqueue.theory.operating_point import OperatingPoint

QUIET = 0.3
"""Load of a front end up to which its waits are small, so that their formula need not be exact for the arrivals."""


def occupied_s(times: FrontEndTimes, lengths: Lengths) -> float:
    """Return how long a request occupies the front end on average."""
    return times.before_s(lengths.prompt) + times.output_token_s * lengths.output


def behind_front_end(limit: Limit, times: FrontEndTimes, lengths: Lengths) -> Limit:
    """Return the capacity of a server with a front end, and how sure it is, from that of the server alone.

    How fast a front end works is known, so that it bounds what is not known about the server behind it.
    """
    each_s = occupied_s(times, lengths)
    if not each_s:
        return limit
    capacity, most_rps = limit.capacity, 1 / each_s
    capacity = replace(capacity, limits_rps={**capacity.limits_rps, "front end": most_rps})
    if most_rps < capacity.max_rate_rps:
        capacity = replace(capacity, max_rate_rps=most_rps, binding="front end")
    if not limit.doubt or (limit.low_rps is not None and limit.low_rps >= most_rps):
        return Limit(capacity)
    high_rps = most_rps if limit.high_rps is None else min(limit.high_rps, most_rps)
    return replace(limit, capacity=capacity, high_rps=high_rps)


def wait_s(times: FrontEndTimes, lengths: Lengths, rate_rps: float, gap_scv: float) -> float | None:
    """Return the mean wait for the front end; None if it is overloaded, or busy with arrivals that are not Poisson.

    Pollaczek-Khinchine; for other arrivals Kingman's approximation. The variance of outputs and prompts is that of
    independent lengths, plus their covariance.
    """
    mean_s = occupied_s(times, lengths)
    load = rate_rps * mean_s
    if load >= 1 or (gap_scv != 1 and load > QUIET):
        return None
    covariance = lengths.product - lengths.prompt * lengths.output
    a, b = times.prompt_token_s, times.output_token_s
    variance = a**2 * lengths.prompt_variance + b**2 * lengths.output_variance + 2 * a * b * covariance
    scv = variance / mean_s**2 if mean_s else 0.0
    return load / (1 - load) * mean_s * (gap_scv + scv) / 2


def with_front_end(
    point: OperatingPoint, times: FrontEndTimes, lengths: Lengths, waited_s: float, load: float
) -> OperatingPoint:
    """Return estimates with the time in the front end; `load` is that of the server as a whole."""
    before_s = times.network_s + waited_s + times.before_s(lengths.prompt)
    ttft_s = point.ttft_s + before_s + times.delay_s(lengths.prompt)
    return replace(point, load=load, ttft_s=ttft_s, e2el_s=max(point.e2el_s + before_s, ttft_s))
