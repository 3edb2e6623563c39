"""What a fleet is made of, as the simulation needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from simqueue.frontend import FrontEndTimes
from simqueue.routing import Age, FleetEvent, InFlight, RandomFailures, Recovery, Router, Signal
from simqueue.schedulers.base import Policy
from simqueue.steptime.base import StepTime


@dataclass(frozen=True, slots=True)
class Part:
    """One replica.

    Attributes
    ----------
    name, group : str
    weight : float
        Relative share of the traffic that is meant for it.
    make_policy : callable
        Returns a new policy with an empty KV cache; called again when it comes back after a failure.
    step_time : StepTime
    front_end : FrontEndTimes or None
        What requests go through before its scheduler.
    """

    name: str
    group: str
    weight: float
    make_policy: Callable[[], Policy]
    step_time: StepTime
    front_end: FrontEndTimes | None = None


@dataclass(frozen=True, slots=True)
class FleetRules:
    """How a fleet is run.

    Attributes
    ----------
    router : Router
        A new one.
    random : callable
        Name of a purpose -> a random stream of its own.
    order : tuple of int or None
        The router's own list of replicas; None: in the order of their numbers.
    router_request_s : float
        Work of the router per request, one request at a time.
    router_latency_s : float
        Further time from the router to a replica, which is not shared.
    ages : mapping of Signal to Age
    events : tuple of FleetEvent
        In order of time.
    failures : RandomFailures or None
    in_flight : InFlight
    recovery : Recovery
    """

    router: Router
    random: Callable[[str], Random]
    order: tuple[int, ...] | None = None
    router_request_s: float = 0.0
    router_latency_s: float = 0.0
    ages: Mapping[Signal, Age] = field(default_factory=dict)
    events: tuple[FleetEvent, ...] = ()
    failures: RandomFailures | None = None
    in_flight: InFlight = "resend"
    recovery: Recovery = field(default_factory=Recovery)
