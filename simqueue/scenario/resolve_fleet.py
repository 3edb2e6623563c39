"""Every value of a fleet is decided here, once: the scenario's, else the router's own, else the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from simqueue.errors import InputError, about, inside
from simqueue.names import unknown
from simqueue.routing import Age, FleetEvent, RandomFailures, Router, Signal
from simqueue.scenario.fleet import AGED, AgeSettings, FleetSettings, RouterTimeSettings, SignalsSettings
from simqueue.scenario.fleet_events import DrainSettings, FailSettings, in_order
from simqueue.scenario.recovery import complete_breaker, complete_health, complete_retries, recovery_of
from simqueue.scenario.resolved_fleet import ResolvedFleet, ResolvedGroup

if TYPE_CHECKING:
    from simqueue.scenario.resolved import ResolvedPolicy

_NOW: Final = Age()
_NO_LOOKS: Final = "needs every_s > 0: with 0 a signal is as it is now"


def resolved_fleet(fleet: FleetSettings, policies: Sequence[ResolvedPolicy]) -> ResolvedFleet:
    """Return the record of a fleet; `policies` are what its groups run, in their order.

    Raises
    ------
    InputError
        If the router cannot be made with its keys, or a signal that is as it is now has a delay.
    """
    chosen = fleet.given_router
    router, settings = chosen.router_class, chosen.own_settings()
    own = router.recovery
    times = fleet.router_time or RouterTimeSettings()
    numbers = {name: number for number, name in enumerate(fleet.names)}
    order = fleet.router_order
    make_router = partial(router, settings)
    with about("fleet", "router"), inside("fleet", "router"):
        made = make_router(Random(0))
        for name in made.names:
            if name not in numbers and name not in fleet.given_groups:
                raise InputError(unknown("replica or group", name, [*fleet.names, *fleet.given_groups]))
    return ResolvedFleet(
        groups=tuple(
            ResolvedGroup(name, group.replicas, group.weight, policy)
            for (name, group), policy in zip(fleet.given_groups.items(), policies, strict=True)
        ),
        router=chosen.kind,
        settings=settings,
        make_router=make_router,
        router_draws=router.draws,
        spread=made.spread,
        order=order if isinstance(order, str) else tuple(numbers[name] for name in order),
        router_request_s=times.request_ms / 1e3,
        router_latency_s=times.latency_ms / 1e3,
        ages={signal: _seconds(age) for signal, age in _ages(fleet, router).items()},
        events=tuple(_event(event, numbers) for _, event in in_order(fleet.events)),
        failures=None if fleet.failures is None else RandomFailures(fleet.failures.mtbf_s, fleet.failures.repair_s),
        in_flight=fleet.in_flight,
        recovery=recovery_of(
            complete_retries(fleet.retries, own),
            complete_health(fleet.health, own),
            complete_breaker(fleet.breaker, own),
            own.source,
        ),
    )


def completed(fleet: FleetSettings) -> FleetSettings:
    """Return the same keys, with a value for each that the router or a default gives."""
    chosen = fleet.given_router
    own = chosen.router_class.recovery
    ages = {signal.value: age for signal, age in _ages(fleet, chosen.router_class).items()}
    update = {
        "router": chosen,
        "signals": (fleet.signals or SignalsSettings()).model_copy(update=ages),
        "retries": complete_retries(fleet.retries, own),
        "health": complete_health(fleet.health, own),
        "breaker": complete_breaker(fleet.breaker, own),
    }
    return fleet.model_copy(update=update)


def _ages(fleet: FleetSettings, router: type[Router]) -> dict[Signal, AgeSettings]:
    """Return the age of every signal: its own, else that of all signals, else the router's."""
    given = fleet.signals or SignalsSettings()
    ages = {signal: _age(given, signal, router.ages.get(signal, _NOW)) for signal in AGED}
    if given.delay_s and not any(age.every_s for age in ages.values()):
        raise InputError(_NO_LOOKS, "fleet", "signals", "delay_s", value=given.delay_s)
    return ages


def _age(given: SignalsSettings, signal: Signal, routers: Age) -> AgeSettings:
    own: AgeSettings = getattr(given, signal.value) or AgeSettings()
    every_s = _first(own.every_s, given.every_s, routers.every_s)
    if every_s:
        return AgeSettings(every_s=every_s, delay_s=_first(own.delay_s, given.delay_s, routers.delay_s))
    if own.delay_s:
        raise InputError(_NO_LOOKS, "fleet", "signals", signal.value, "delay_s", value=own.delay_s)
    return AgeSettings(every_s=0.0, delay_s=0.0)


def _first(own: float | None, of_all: float | None, routers: float) -> float:
    given = of_all if own is None else own
    return routers if given is None else given


def _seconds(age: AgeSettings) -> Age:
    return Age(age.every_s or 0.0, age.delay_s or 0.0)


def _event(event: Any, numbers: Mapping[str, int]) -> FleetEvent:
    """Return the record of an event."""
    return FleetEvent(
        event.at_s,
        numbers[event.replica],
        event.event,
        repair_s=event.repair_s if isinstance(event, FailSettings) else None,
        deadline_s=event.deadline_s if isinstance(event, DrainSettings) else None,
    )
