"""The keys of a fleet: replicas, the router before them, and what happens to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from simqueue.datafiles.limits import MOST_KEYS
from simqueue.errors import Problem
from simqueue.names import PLAIN_RULE, is_plain
from simqueue.printable import listed
from simqueue.routing import InFlight, Signal
from simqueue.scenario.fleet_events import EventSettings, FailuresSettings, event_problems, unknown_replicas
from simqueue.scenario.recovery import BreakerEntry, HealthEntry, RetriesSettings
from simqueue.scenario.resolved_fleet import replica_name
from simqueue.scenario.routers import DEFAULT_KIND, RouterEntry, RouterSettings, read_router
from simqueue.settings import Settings, invalid_all

MOST_REPLICAS: Final = 10_000
ONLY_GROUP: Final = "replica"
"""Name of the group of a fleet without groups."""
AGED: Final = (Signal.RUNNING, Signal.WAITING, Signal.KV_USED, Signal.TOKENS)
"""The signals that can have an age, in the order of the keys."""


class GroupSettings(Settings):
    """Replicas with the same settings. A group can also set every key of a policy, except `fleet`; keys that it does
    not set are the policy's. A group with another scheduler or engine has its own keys for it, and none of the
    policy's.
    """

    model_config = ConfigDict(extra="allow")

    replicas: int = Field(1, ge=1, le=MOST_REPLICAS, description="replicas of this group")
    weight: float = Field(
        1.0, gt=0, le=1e9, description="relative share of the traffic meant for each of them, for routers with weights"
    )

    @property
    def own_keys(self) -> dict[str, Any]:
        """The keys of a policy that were given for the group."""
        return dict(self.model_extra or {})

    @classmethod
    def _has_pattern(cls, _key: str) -> bool:
        return True  # which keys there are depends on the policy; see `simqueue.scenario.groups`


def _age(description: str) -> Any:
    return Field(default=None, ge=0, le=1e9, description=description, json_schema_extra={"unit": "s"})


def _signal(what: str) -> Any:
    return Field(default=None, description=f"the age of {what}; left out: as for all signals")


class AgeSettings(Settings):
    """How old a signal can be."""

    every_s: float | None = _age("time between two looks at the engine; 0: as it is now; left out: as for all signals")
    delay_s: float | None = _age("time from a look until the router has the value; left out: as for all signals")


class SignalsSettings(Settings):
    """How old the signals of engines are that the router reads. What the router counts by itself has no age."""

    every_s: float | None = _age(
        "time between two looks at the engines, for all signals; 0: as they are now; left out: the router's own"
    )
    delay_s: float | None = _age("time from a look until the router has the values; left out: the router's own")
    running: AgeSettings | None = _signal("the number of requests that run")
    waiting: AgeSettings | None = _signal("the number of requests that wait at the engine")
    kv_used: AgeSettings | None = _signal("the share of the KV pool that is in use")
    tokens: AgeSettings | None = _signal("the number of tokens of requests that run or wait")


class RouterTimeSettings(Settings):
    """The time that a request spends at the router; what is left out takes no time."""

    request_ms: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="work on each request before it is sent to a replica; one request at a time",
        json_schema_extra={"unit": "ms"},
    )
    latency_ms: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="further time of each request; requests do not wait for each other",
        json_schema_extra={"unit": "ms"},
    )


class FleetSettings(Settings):
    """The replicas of a policy, the router before them, and what happens to them."""

    replicas: int | None = Field(
        None, ge=1, le=MOST_REPLICAS, description="equal replicas, named replica-0, replica-1, ...; or give groups"
    )
    groups: Annotated[dict[str, GroupSettings], Field(min_length=1, max_length=MOST_KEYS)] | None = Field(
        None, description="name -> group of equal replicas, named NAME-0, NAME-1, ...; or give replicas"
    )
    router: RouterEntry | None = Field(
        None,
        description=f"which replica gets a request: a name, or a mapping with keys of its own; null: {DEFAULT_KIND}",
    )
    router_order: Literal["listed", "shuffled"] | list[str] = Field(
        "listed",
        description="the order in which the router has the replicas: that of the groups, at random, or all their names",
    )
    router_time: RouterTimeSettings | None = Field(None, description="time of requests at the router; null: none")
    signals: SignalsSettings | None = Field(
        None, description="how old the signals of engines are that the router reads; null: the router's own ages"
    )
    events: list[EventSettings] = Field(
        default=[], max_length=MOST_KEYS, description="what happens to replicas at given times"
    )
    failures: FailuresSettings | None = Field(None, description="failures of replicas at random; null: none")
    in_flight: InFlight = Field(
        "resend",
        description="requests at a replica that fails: all are lost; those without a token are sent again and the "
        "others are lost; all are sent again and begin again; all are sent again and keep their tokens",
    )
    retries: RetriesSettings | None = Field(
        None, description="how the router sends requests again whose attempt failed; null: the router's own"
    )
    health: HealthEntry | None = Field(
        None,
        description="health checks; at once: the router knows of each failure at once; null: the router's own",
    )
    breaker: BreakerEntry | None = Field(None, description="circuit breaker; null: the router's own")

    @property
    def given_groups(self) -> dict[str, GroupSettings]:
        """The groups; without any, the one that all replicas are in."""
        if self.groups is not None:
            return self.groups
        return {ONLY_GROUP: GroupSettings(replicas=self.replicas or 1)}

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each replica, by its number."""
        groups = self.given_groups.items()
        return tuple(replica_name(name, place) for name, group in groups for place in range(group.replicas))

    @property
    def given_router(self) -> RouterSettings:
        """The router, which is round robin where none was given."""
        return read_router(DEFAULT_KIND) if self.router is None else read_router(self.router)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = list(self._bad_groups()) or [
            *event_problems(self.events, self.names),
            *self._bad_order(),
        ]
        if problems:
            raise invalid_all(problems)
        return self

    def _bad_groups(self) -> Iterator[Problem]:
        if self.groups is None:
            if self.replicas is None:
                yield Problem(("replicas",), "this key is missing; give replicas or groups")
            return
        if self.replicas is not None:
            yield Problem(("groups",), "cannot be combined with replicas; give one of the two")
        for name in self.groups:
            if not is_plain(name):
                yield Problem(("groups", name), f"the name of a group {PLAIN_RULE}")
        total = sum(group.replicas for group in self.groups.values())
        if total > MOST_REPLICAS:
            yield Problem(("groups",), f"can have up to {MOST_REPLICAS:,} replicas together; they have {total:,}")

    def _bad_order(self) -> Iterator[Problem]:
        """Yield the names of an order that are unknown or repeated; else those that it lacks."""
        if isinstance(self.router_order, str):
            return
        names, known = self.names, frozenset(self.names)
        texts = unknown_replicas([name for name in self.router_order if name not in known], names)
        met: dict[str, int] = {}
        for place, name in enumerate(self.router_order):
            if name in texts:
                yield Problem(("router_order", place), texts[name])
            elif name in met:
                yield Problem(("router_order", place), f"is listed already, at {met[name]}")
            met.setdefault(name, place)
        missing = [name for name in names if name not in met]
        if missing and not texts:
            some = listed(missing, 10)
            yield Problem(("router_order",), f"must name every replica once; missing: {some}")
