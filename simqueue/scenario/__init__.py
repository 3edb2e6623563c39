"""The scenario file: strict loading, frozen models, the values each policy runs with, and the JSON Schema."""

from simqueue.scenario.load import from_mapping, load
from simqueue.scenario.model import Scenario
from simqueue.scenario.policies import PolicySettings
from simqueue.scenario.resolve import EffectivePolicy, effective, resolved
from simqueue.workload.slo import SloSettings

__all__ = [
    "EffectivePolicy",
    "PolicySettings",
    "Scenario",
    "SloSettings",
    "effective",
    "from_mapping",
    "load",
    "resolved",
]
