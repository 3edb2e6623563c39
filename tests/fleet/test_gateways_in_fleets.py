"""sglang-router and vllm-router in random fleets: folding changes nothing, and every request ends once."""

from __future__ import annotations

from hypothesis import given

from ..helpers.profiles import examples
from .cases import FleetCase, fleet_cases, fleet_differences

GATEWAYS = ("sglang-router", "vllm-router")


@examples(40, thorough=800)
@given(fleet_cases(routers=GATEWAYS))
def test_folding_changes_nothing(case: FleetCase) -> None:
    """A router with a tree of texts and its own counts chooses the same, folded and step by step."""
    assert fleet_differences(case.play(fast=True), case.play(fast=False)) == []
