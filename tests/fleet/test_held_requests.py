"""Requests that a router holds until signals with an age change: it is asked again at each look that brings news."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.request import Request, Status
from simqueue.routing import Age, Ranking, Router, Signal, View
from simqueue.simulation import Recording
from simqueue.simulation.fleet_rules import FleetRules
from simqueue.simulation.simulate_fleet import FleetSimulation
from simqueue.steptime.linear import ConstantStepTime
from simqueue.traffic import Traffic

from ..helpers.profiles import examples
from ..properties import cases
from .cases import FleetCase, fleet_cases, fleet_differences, plain_makers


@dataclass(frozen=True)
class Shyness:
    """How many requests may be reported of a replica that gets another one."""

    most: int


class Shy(Router):
    """The first replica of which few enough running and waiting requests are reported; else the request waits."""

    reads = frozenset({Signal.RUNNING, Signal.WAITING})

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return it."""
        fit = [one.number for one in replicas if one.healthy and one.running + one.waiting <= self.settings.most]  # type: ignore[attr-defined]  # not a scenario's keys
        return Ranking({fit[0]: 1.0} if fit else {}, "shy")


def played(case: FleetCase, age: Age, most: int, *, fast: bool = True) -> Recording:
    """Return the run of a fleet with a shy router."""
    rules = FleetRules(
        router=Shy(Shyness(most), Random(1)),  # type: ignore[arg-type]  # not a scenario's keys
        random=Random,
        ages=dict.fromkeys((Signal.RUNNING, Signal.WAITING), age),
        events=case.events,
        failures=case.failures,
        in_flight=case.in_flight,
        recovery=case.recovery,
    )
    return FleetSimulation(Traffic(list(case.requests)), case.parts, rules, case.options(fast=fast)).run()


AGES = st.sampled_from([Age(0.05), Age(0.25), Age(1.0, 0.1), Age(0.1, 0.35)])


@examples(30, thorough=600)
@given(case=fleet_cases(), age=AGES, most=st.integers(0, 2))
def test_folding_changes_nothing(case: FleetCase, age: Age, most: int) -> None:
    """Looks that let requests go are at the same instants, whether steps are folded or not."""
    assert fleet_differences(played(case, age, most), played(case, age, most, fast=False)) == []


@examples(30, thorough=600)
@given(case=fleet_cases(fails=False), age=AGES, most=st.integers(0, 2))
def test_held_requests_go_when_the_fleet_is_empty(case: FleetCase, age: Age, most: int) -> None:
    """An idle replica is reported idle at the next look, so no request stays at the router while one is ready."""
    columns = played(case, age, most).requests
    if case.horizon_s == float("inf"):
        here = columns["replica"][columns["status"] == Status.UNFINISHED.value]
        assert (here >= 0).all()


@pytest.mark.parametrize("age", [Age(0.05), Age(1.0, 0.1), Age(0.1, 0.35)], ids=str)
@given(case=fleet_cases(fails=False))
@examples(10, thorough=50)
def test_a_router_that_takes_nothing_ends_the_run(age: Age, case: FleetCase) -> None:
    """When no look can bring news, the run is over, and the requests are named as never completed."""
    recording = played(case, age, -1)
    assert (recording.requests["status"] != Status.FINISHED.value).all()


@pytest.mark.parametrize(
    ("age", "routed_s"),
    [
        (Age(0.3), 1.2),  # looks at 0.3 (busy), 0.6, 0.9, and at 1.2 when it is idle
        (Age(0.3, 0.05), 1.25),
        (Age(0.1, 0.35), 1.35),  # the look at 1.0 comes after the end, and is known at 1.35
        (Age(5.0), 5.0),
        (Age(5.0, 2.0), 0.4),  # before the first look is known, all seem idle
    ],
    ids=str,
)
@pytest.mark.parametrize("fast", [True, False])
def test_a_held_request_goes_when_the_look_that_frees_it_is_known(age: Age, routed_s: float, fast: bool) -> None:
    """Steps of 0.25 s: a request of four tokens is in until 1 s; one that comes at 0.4 s waits until that is known."""
    step = cases.Case((), "continuous", {}, 100, 16, ConstantStepTime(0.25))
    busy, held = Request("busy", 0.0, 4, 4), Request("held", 0.4, 4, 1)
    case = FleetCase((busy, held), plain_makers(step, [0]), (step.step_time,), "random")
    columns = played(case, age, 0, fast=fast).requests
    assert columns["finish_s"][0] == 1.0
    assert columns["routed_s"].tolist() == pytest.approx([0.0, routed_s])
