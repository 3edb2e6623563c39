"""The fleet of a policy with every value decided: its replicas, the router, and what happens to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Literal

from simqueue.routing import Age, FleetEvent, InFlight, RandomFailures, Recovery, Router, Signal
from simqueue.routing.base import Spread
from simqueue.settings import Settings

if TYPE_CHECKING:
    from simqueue.scenario.resolved import ResolvedPolicy


@dataclass(frozen=True, slots=True)
class ResolvedGroup:
    """Replicas with the same settings.

    Attributes
    ----------
    name : str
    replicas : int
        How many.
    weight : float
        Relative share of the traffic that is meant for each of them.
    policy : ResolvedPolicy
        What each of them runs, complete; it has no fleet.
    """

    name: str
    replicas: int
    weight: float
    policy: ResolvedPolicy


@dataclass(frozen=True, slots=True)
class ResolvedFleet:
    """The replicas of a policy and what stands before them.

    Attributes
    ----------
    groups : tuple of ResolvedGroup
        Replicas are numbered group after group, from 0.
    router : str
        Its kind.
    settings : Settings
        The keys of the router.
    make_router : callable
        Random stream -> router. It holds the class, so that worker processes need not have registered it.
    router_draws : bool
        Whether the router can need random numbers.
    spread : Spread
        How the router spreads the work.
    order : "listed", "shuffled" or tuple of int
        The router's own list of replicas; shuffled: by a random stream.
    router_request_s : float
        Work of the router per request, one request at a time.
    router_latency_s : float
        Further time from the router to a replica, which is not shared.
    ages : mapping of Signal to Age
        For every signal that has an age.
    events : tuple of FleetEvent
        In order of time.
    failures : RandomFailures or None
    in_flight : {"lose", "resend", "restart", "resume"}
        What happens to the requests at a replica that fails: they are lost; those without a token are sent again and
        the others are lost; all are sent again from the beginning; all are sent again, and keep their tokens.
    recovery : Recovery
        Retries, health checks and the circuit breaker.
    """

    groups: tuple[ResolvedGroup, ...]
    router: str
    settings: Settings
    make_router: Callable[[Random], Router]
    router_draws: bool
    spread: Spread
    order: Literal["listed", "shuffled"] | tuple[int, ...]
    router_request_s: float
    router_latency_s: float
    ages: Mapping[Signal, Age]
    events: tuple[FleetEvent, ...]
    failures: RandomFailures | None
    in_flight: InFlight
    recovery: Recovery

    @property
    def replicas(self) -> int:
        """How many replicas there are, with those that start later."""
        return sum(group.replicas for group in self.groups)

    @property
    def draws(self) -> bool:
        """Whether it can need random numbers: two runs of the same requests can then differ."""
        return self.router_draws or self.failures is not None or self.order == "shuffled" or self.recovery.jitter > 0

    @property
    def has_no_choice(self) -> bool:
        """Whether it is no more than one replica that is always there and reached at once: no fleet."""
        takes_time = self.router_request_s or self.router_latency_s
        return self.replicas == 1 and not self.events and self.failures is None and not takes_time

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each replica, by its number: group and place in the group."""
        return tuple(replica_name(group.name, place) for group in self.groups for place in range(group.replicas))


def replica_name(group: str, place: int) -> str:
    """Return the name of a replica from its group and its place in the group, counted from 0."""
    return f"{group}-{place}"
