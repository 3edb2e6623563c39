"""Scenarios: strict loading of files, resolved values, the JSON Schema and the reference of keys."""

from simqueue.scenario.load import from_mapping, load
from simqueue.scenario.model import Scenario
from simqueue.scenario.policies import PolicySettings
from simqueue.scenario.resolved import ResolvedPolicy, ResolvedScenario
from simqueue.workload.slo import SloSettings

__all__ = [
    "PolicySettings",
    "ResolvedPolicy",
    "ResolvedScenario",
    "Scenario",
    "SloSettings",
    "from_mapping",
    "load",
]
