"""Random small fleets: all kinds of replicas, routers that read everything, failures, ties on purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from simqueue.frontend import FrontEndTimes
from simqueue.request import Request
from simqueue.routing import (
    ROUTERS,
    Age,
    FleetEvent,
    InFlight,
    RandomFailures,
    Ranking,
    Recovery,
    Router,
    Signal,
    View,
)
from simqueue.schedulers import SCHEDULERS, Policy
from simqueue.schedulers.keys import VllmV1Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.vllm_v1 import VllmV1
from simqueue.simulation import Recording, RunOptions
from simqueue.simulation.fleet_rules import FleetRules, Part
from simqueue.simulation.simulate_fleet import FleetSimulation
from simqueue.steptime import StepTime
from simqueue.traffic import Traffic

from ..helpers.exact_times import TICK_S
from ..helpers.recordings import differences
from ..properties import cases, vllm_cases

HORIZONS_S = st.sampled_from([float("inf")] * 8 + [ticks * TICK_S for ticks in range(1, 120)])
INDEPENDENT = ("round_robin", "random")
LIVE = ("nosy", "least_outstanding", "join_shortest_queue", "least_kv", "power_of_two", "central_queue")


class Nosy(Router):
    """Reads everything that there is, and chooses by all of it: a fault in any signal changes where requests go."""

    wants_first_tokens = True
    reads = frozenset(Signal)

    def __init__(self, settings: Any, random: Random) -> None:
        super().__init__(settings, random)
        self._heard = 0

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return one replica by a sum of all signals in which each of them makes a difference."""
        found = {}
        for view in replicas:
            seen = (view.running, view.waiting, view.tokens, round(1e6 * view.kv_used), view.in_flight_tokens)
            held = (view.cached_tokens(request), view.free_seats, view.in_flight, round(1e6 * view.seen_s))
            found[view.number] = hash((*seen, *held, self._heard)) % 1009
        able = [view.number for view in replicas if view.healthy]
        return Ranking({min(able, key=lambda number: (found[number], number)): 1.0}, "nosy", {"sum": found})

    def first_token(self, request: Request, replica: View, now_s: float) -> None:
        """Hear of it."""
        self._heard = hash((self._heard, replica.number, request.prompt_tokens, round(1e6 * now_s))) % 1009

    def finished(self, request: Request, replica: View, now_s: float, *, tokens: int, served: bool) -> None:
        """Hear of it."""
        self._heard = hash((self._heard, replica.number, tokens, served, round(1e6 * now_s))) % 1009


def make_router(kind: str) -> Router:
    """Return a new router."""
    if kind == "nosy":
        return Nosy(None, Random(1))
    cls = ROUTERS[kind]
    return cls(cls.Settings(), Random(1))


@dataclass(frozen=True)
class FleetCase:
    """A scenario with one fleet."""

    requests: tuple[Request, ...]
    makers: tuple[Callable[[], Policy], ...]
    """How the policy of each replica is made."""
    step_times: tuple[StepTime, ...]
    router: str
    ages: Mapping[Signal, Age] = field(default_factory=dict)
    events: tuple[FleetEvent, ...] = ()
    failures: RandomFailures | None = None
    in_flight: InFlight = "resend"
    recovery: Recovery = field(default_factory=Recovery)
    router_request_s: float = 0.0
    router_latency_s: float = 0.0
    horizon_s: float = float("inf")
    max_queued: int | None = None
    front_end: FrontEndTimes | None = None

    @property
    def parts(self) -> list[Part]:
        """The replicas."""
        made = zip(self.makers, self.step_times, strict=True)
        return [Part(f"r-{i}", "r", 1.0, make, step_time, self.front_end) for i, (make, step_time) in enumerate(made)]

    def options(self, *, fast: bool) -> RunOptions:
        """Return the options of a run with every check on."""
        return RunOptions(
            self.horizon_s, fast=fast, check=True, max_queued_requests=self.max_queued, front_end=self.front_end
        )

    def play(self, *, fast: bool = True, traffic: Traffic | None = None) -> Recording:
        """Run it, with other traffic if it is given."""
        rules = FleetRules(
            router=make_router(self.router),
            random=Random,
            router_request_s=self.router_request_s,
            router_latency_s=self.router_latency_s,
            ages=self.ages,
            events=self.events,
            failures=self.failures,
            in_flight=self.in_flight,
            recovery=self.recovery,
        )
        return FleetSimulation(
            traffic or Traffic(list(self.requests)), self.parts, rules, self.options(fast=fast)
        ).run()


def fleet_differences(one: Recording, other: Recording) -> list[str]:
    """Return the names of all columns and values that differ in any bit, also of the fleet."""
    assert one.fleet is not None
    assert other.fleet is not None
    found = differences(replace(one, fleet=None), replace(other, fleet=None))
    found += ["replicas"] * (one.fleet.replicas != other.fleet.replicas)
    for table in ("lives", "stays"):
        columns, twins = getattr(one.fleet, table), getattr(other.fleet, table)
        found += [
            f"{table}.{name}"
            for name in columns
            if columns[name].tolist() != twins[name].tolist() and repr(columns[name]) != repr(twins[name])
        ]
    return found


def vllm_makers(case: vllm_cases.VllmCase, spare: Sequence[int]) -> tuple[Callable[[], Policy], ...]:
    """Return makers of vLLM's policies, with pools that differ."""

    def maker(blocks: int) -> Callable[[], Policy]:
        def make() -> Policy:
            limits = RequestLimits(case.max_model_len, case.reject, cuts_output=True)
            cache = replace(case, blocks=blocks).cache()
            return VllmV1(VllmV1Settings.model_validate(case.flags), cache, limits, case.rules)

        return make

    return tuple(maker(case.blocks + more) for more in spare)


def plain_makers(case: cases.Case, spare: Sequence[int]) -> tuple[Callable[[], Policy], ...]:
    """Return makers of a policy that a scenario names, with pools that differ."""

    def maker(blocks: int) -> Callable[[], Policy]:
        return lambda: replace(case, blocks=blocks).simulation(fast=True).policy

    assert case.scheduler in SCHEDULERS
    return tuple(maker(case.blocks + more) for more in spare)


TICKS = st.integers(0, 60)
REPAIRS = st.sampled_from([None, 1, 2, 5, 20])
AGES = st.sampled_from([Age(), Age(TICK_S), Age(4 * TICK_S), Age(3 * TICK_S, TICK_S), Age(0.0123, 0.05)])
RECOVERIES = (
    Recovery(),
    Recovery(retries=0),
    Recovery(retries=3, first_wait_s=TICK_S, wait_factor=2.0, longest_wait_s=3 * TICK_S, retries_refused=True),
    Recovery(retries=2, first_wait_s=0.01, wait_factor=1.5, longest_wait_s=1.0, jitter=0.2),
    Recovery(retries=9, check_every_s=4 * TICK_S, check_timeout_s=TICK_S, check_failures=2, check_successes=2),
    Recovery(retries=9, breaker_failures=2, breaker_window_s=1.0, breaker_open_s=5 * TICK_S, breaker_successes=1),
)


@st.composite
def events(draw: st.DrawFn, replicas: int) -> tuple[FleetEvent, ...]:
    """A few failures, drains and starts, many of them at instants at which steps end."""
    made = []
    for _ in range(draw(st.integers(0, 4))):
        at_s, number = draw(TICKS) * TICK_S, draw(st.integers(0, replicas - 1))
        kind = draw(st.sampled_from(["fail", "fail", "drain", "start"]))
        after = draw(REPAIRS)
        after_s = None if after is None else after * TICK_S
        if kind == "fail":
            made.append(FleetEvent(at_s, number, "fail", repair_s=after_s))
        elif kind == "drain":
            made.append(FleetEvent(at_s, number, "drain", deadline_s=after_s))
        else:
            made.append(FleetEvent(at_s, number, "start"))
    return tuple(sorted(made, key=lambda event: event.at_s))


@st.composite
def fleet_cases(draw: st.DrawFn, *, routers: Sequence[str] = (*INDEPENDENT, *LIVE), fails: bool = True) -> FleetCase:
    """A fleet of one to four replicas, with failures if `fails`."""
    spare = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    base: Any
    if draw(st.integers(0, 2)):
        base = draw(vllm_cases.vllm_cases() | vllm_cases.talking_cases())
        makers = vllm_makers(base, spare)
    else:
        keys = cases.iteration_keys() | cases.static_keys() | cases.llamacpp_keys()
        base = draw(cases.cases(keys))
        makers = plain_makers(base, spare)
    patience = draw(st.sampled_from([None, None, 3, 9]))
    requests = [
        request if patience is None else replace(request, gives_up_s=request.arrival_s + patience * TICK_S)
        for request in base.requests
    ]
    case = FleetCase(
        tuple(requests),
        makers,
        (base.step_time,) * len(spare),
        draw(st.sampled_from(list(routers))),
        ages={signal: draw(AGES) for signal in Signal if signal is not Signal.CACHED},
        router_request_s=draw(st.sampled_from([0.0, 0.0, 0.0, TICK_S, 0.003])),
        router_latency_s=draw(st.sampled_from([0.0, 0.0, 0.0, TICK_S, 0.003])),
        horizon_s=draw(HORIZONS_S),
        max_queued=draw(st.sampled_from([None, None, None, 0, 2])),
        front_end=draw(st.sampled_from([None, None, None, FrontEndTimes(TICK_S, 0.001, first_token_s=TICK_S)])),
    )
    if not fails:
        return case
    return replace(
        case,
        events=draw(events(len(spare))),
        failures=draw(st.sampled_from([None, None, RandomFailures(1.0, 0.1), RandomFailures(0.2, 0.5)])),
        in_flight=draw(st.sampled_from(["lose", "resend", "restart", "resume"])),
        recovery=RECOVERIES[draw(st.integers(0, len(RECOVERIES) - 1))],
    )
