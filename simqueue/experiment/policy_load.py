"""The load of one policy: capacity, load, estimated latencies, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from simqueue.experiment.demand import Demand
from simqueue.experiment.served import Limits, Served, limits_of
from simqueue.frontend import FrontEndTimes
from simqueue.steptime import StepTime
from simqueue.theory.front_end import wait_s, with_front_end
from simqueue.theory.limits import Capacity, Limit
from simqueue.theory.operating_point import OperatingPoint, operating_point, outside_domain

_OF_CAPACITY: Mapping[str, Callable[[Capacity], Any]] = {
    "capacity_rps": lambda limit: limit.max_rate_rps,
    "binding": lambda limit: limit.binding,
    "limits_rps": lambda limit: {name: _finite(rate) for name, rate in limit.felt_rps.items()},
}
_OF_SATURATED_GPU: Mapping[str, Callable[[Capacity], float]] = {
    "steps_per_request": lambda limit: limit.steps_per_request,
    "saturated_step_ms": lambda limit: 1000 * limit.step_s,
    "saturated_running": lambda limit: limit.running,
}
_OF_ESTIMATE: Mapping[str, Callable[[OperatingPoint], float]] = {
    "estimated_tpot_ms": lambda point: 1000 * point.tpot_s,
    "estimated_ttft_ms": lambda point: 1000 * point.ttft_s,
    "estimated_e2el_ms": lambda point: 1000 * point.e2el_s,
    "estimated_running": lambda point: point.running,
}
"""Key and value of each plain value about the capacity, the GPU at that rate and the estimates."""


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


_LOW, _HIGH = 0.7, 1.1
"""Where the load is below the one or above the other for sure, a doubt makes no difference to a run; `capacity` tells
it at every load."""
_FACTOR = 6.0
"""Without bounds, the capacity is taken as known to this factor: the largest error that was seen."""


@dataclass(frozen=True, slots=True)
class PolicyLoad:
    """The load of one policy.

    Attributes
    ----------
    capacity : Capacity or None
        None if no capacity law is known for the policy.
    load : float or None
        Offered rate over capacity.
    estimate : OperatingPoint or None
        None outside its domain.
    why_not : str
        Empty, or why there is no capacity.
    doubt : str
        Empty, or why the capacity is less accurate than usual.
    no_estimate : str
        Empty, or why there is a load but no estimate.
    failed : bool
        Whether there is no capacity because of a fault of the law.
    low_rps, high_rps : float or None
        Bounds of the capacity where it is less sure than usual.
    alike : bool
        Whether all that serves has one kind of step: replicas of several groups have not.
    """

    capacity: Capacity | None
    load: float | None
    estimate: OperatingPoint | None
    why_not: str = ""
    doubt: str = ""
    no_estimate: str = ""
    failed: bool = False
    low_rps: float | None = None
    high_rps: float | None = None
    alike: bool = True

    @property
    def caution(self) -> str:
        """Empty, or why the capacity is less accurate than usual and what is known of it."""
        if self.capacity is None:
            return ""
        return Limit(self.capacity, self.low_rps, self.high_rps, self.doubt).caution

    @property
    def sure(self) -> bool:
        """Whether there is a load, and the closed form of the capacity was compared with simulations like this."""
        return self.load is not None and not self.doubt

    @property
    def notes(self) -> list[str]:
        """Why something is not known, or is less accurate than usual."""
        no_estimate = f"no estimates of latencies: {self.no_estimate}" if self.no_estimate else ""
        return [note for note in (self.why_not, self.caution, no_estimate) if note]

    def warnings(self, policy: str, *, exceeded: bool = False) -> list[str]:
        """Return what a run has to say about the load of this policy; `exceeded`: above 1 at times."""
        if self.failed:
            return [f"{policy}: no load: {self.why_not}"]
        if self.load is None or self.capacity is None or not self.doubt:
            return []
        rate_rps = self.load * self.capacity.max_rate_rps
        least = rate_rps / (self.high_rps or _FACTOR * self.capacity.max_rate_rps)
        most = rate_rps / (self.low_rps or self.capacity.max_rate_rps / _FACTOR)
        if least > _HIGH or (most < _LOW and not exceeded):
            return []
        known = f", between {least:.2f} and {most:.2f}" if self.low_rps and self.high_rps else ""
        return [f"{policy}: the load of {self.load:.2f} is not sure{known}: {self.doubt}"]

    def plain(self) -> dict[str, Any]:
        """Return what is known as plain values: None if undefined or without a limit."""
        limit, point = self.capacity, self.estimate
        alike = limit is not None and self.alike and limit.binding not in ("front end", "router")
        saturated = limit if alike else None
        return {
            **{key: None if limit is None else value(limit) for key, value in _OF_CAPACITY.items()},
            **{key: None if saturated is None else value(saturated) for key, value in _OF_SATURATED_GPU.items()},
            "capacity_low_rps": self.low_rps,
            "capacity_high_rps": self.high_rps,
            "load": self.load,
            **{key: None if point is None else value(point) for key, value in _OF_ESTIMATE.items()},
            "note": "; ".join(self.notes) or None,
        }


def loaded(
    step_time: StepTime, by: Served, asked: Demand, *, estimates: bool = True, known: Limits | None = None
) -> PolicyLoad:
    """Return capacity, load and, if they are wanted, estimates of one policy.

    Parameters
    ----------
    step_time : StepTime
    by : Served
        What serves its requests.
    asked : Demand
    estimates : bool
    known : Limits, optional
        The result of `limits_of`, if the caller has it.
    """
    limits = known or limits_of(step_time, by, asked)
    limit = limits.whole
    found = PolicyLoad(limit.capacity, None, None, doubt=limit.doubt, low_rps=limit.low_rps, high_rps=limit.high_rps)
    if asked.rate_rps is None:
        return found
    found = replace(found, load=asked.rate_rps / limit.capacity.max_rate_rps)
    if not estimates:
        return found
    why = _no_estimates(step_time, by, asked, limits.server, asked.rate_rps)
    if why:
        return replace(found, no_estimate=why)
    point = operating_point(
        step_time, asked.lengths, by.server, asked.rate_rps, gap_scv=asked.gap_scv, known=limits.server.capacity
    )
    found = replace(found, estimate=point)
    return found if by.front_end is None else _later(found, by.front_end, asked)


def _later(found: PolicyLoad, times: FrontEndTimes, asked: Demand) -> PolicyLoad:
    """Return a load with the time in the front end in its estimates."""
    if found.load is None or found.estimate is None or asked.rate_rps is None:
        return found
    waited_s = wait_s(times, asked.lengths, asked.rate_rps, asked.gap_scv)
    if waited_s is None:
        return replace(found, estimate=None, no_estimate="the front end is busy or overloaded")
    return replace(found, estimate=with_front_end(found.estimate, times, asked.lengths, waited_s, found.load))


def _no_estimates(step_time: StepTime, by: Served, asked: Demand, limit: Limit, rate_rps: float) -> str:
    """Return why there are no estimates of the server without its front end, or an empty text."""
    load = rate_rps / limit.capacity.max_rate_rps
    outside = asked.irregular or outside_domain(step_time, asked.lengths, by.server, limit.capacity, load)
    if outside:
        return outside
    if by.clients is not None and by.front_end is not None:
        return "clients limit the requests in flight, and the front end is a part of their way"
    if asked.gap_scv != 1:
        return "arrivals are not Poisson: for even and gamma arrivals TTFT was up to 40 % off"
    return f"how fast the steps carry requests is not sure: {limit.doubt}" if limit.doubt else ""
