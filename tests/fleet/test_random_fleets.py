"""Random fleets, folded and step by step, with every check on."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from simqueue.request import Status
from simqueue.routing import Recovery
from simqueue.simulation import Simulation

from ..helpers.profiles import examples
from ..helpers.recordings import differences
from .cases import INDEPENDENT, LIVE, FleetCase, fleet_cases, fleet_differences

BEFORE_THE_ENGINE = tuple(kind for kind in (*INDEPENDENT, *LIVE) if kind != "central_queue")
"""Routers that hold nothing back: with a central queue the queue is before the engine, and not in it."""
ADDED = ("routed_s", "reached_s", "route_reason", "resent", "discarded_tokens")


@examples(150, thorough=3000)
@given(fleet_cases())
def test_folding_changes_nothing(case: FleetCase) -> None:
    """Routers that read everything, failures, drains, retries: the same bytes in every table."""
    assert fleet_differences(case.play(fast=True), case.play(fast=False)) == []


@examples(100, thorough=1000)
@given(fleet_cases(routers=BEFORE_THE_ENGINE, fails=False))
def test_one_replica_is_no_fleet(case: FleetCase) -> None:
    """Whatever the router: the same tables as without it, but for the columns about routing."""
    case = replace(case, makers=case.makers[:1], step_times=case.step_times[:1])
    case = replace(case, router_request_s=0.0, router_latency_s=0.0, recovery=Recovery())
    routed = case.play()
    plain = Simulation(list(case.requests), case.makers[0](), case.step_times[0], case.options(fast=True)).run()
    requests = {name: column for name, column in routed.requests.items() if name not in ADDED}
    steps = {name: column for name, column in routed.steps.items() if name != "replica"}
    assert differences(replace(routed, requests=requests, steps=steps, fleet=None), plain) == []


@examples(100, thorough=1000)
@given(fleet_cases())
def test_every_request_ends_once(case: FleetCase) -> None:
    """However replicas fail: no request is lost or served twice, and without a horizon none is left over.

    Requests can only be unfinished if there is a horizon, or if a warning names them.
    """
    recording = case.play()
    requests = recording.requests
    sent = [request.request_id for request in case.requests if request.arrival_s <= case.horizon_s]
    assert requests["request_id"].tolist() == sent
    unfinished = int((requests["status"] == Status.UNFINISHED.value).sum())
    if case.horizon_s == float("inf") and unfinished:
        assert any("can never be completed" in line for line in recording.warnings)
