"""Routers of products in random fleets: folding changes nothing, and every request ends once."""

from __future__ import annotations

from hypothesis import given

from simqueue.request import Status

from ..helpers.profiles import examples
from .cases import FleetCase, fleet_cases, fleet_differences

PRODUCTS = ("dynamo", "litellm", "llm-d", "production-stack", "aibrix", "envoy", "nginx")


@examples(30, thorough=1200)
@given(fleet_cases(routers=PRODUCTS))
def test_folding_changes_nothing(case: FleetCase) -> None:
    """Whatever they count and read, they choose the same, folded and step by step, with failures and drains."""
    assert fleet_differences(case.play(fast=True), case.play(fast=False)) == []


@examples(30, thorough=600)
@given(fleet_cases(routers=PRODUCTS))
def test_every_request_ends_once(case: FleetCase) -> None:
    """No request is lost or served twice; without a horizon, those that are left over are named."""
    recording = case.play()
    sent = [request.request_id for request in case.requests if request.arrival_s <= case.horizon_s]
    assert recording.requests["request_id"].tolist() == sent
    unfinished = int((recording.requests["status"] == Status.UNFINISHED.value).sum())
    if case.horizon_s == float("inf") and unfinished:
        assert any("can never be completed" in line for line in recording.warnings)
