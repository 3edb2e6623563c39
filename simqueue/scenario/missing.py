"""What cannot be computed without the model or the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simqueue.errors import KeyPath, Problem
from simqueue.scenario.groups import Part

if TYPE_CHECKING:
    from simqueue.scenario.model import Scenario


def missing_hardware(part: Part) -> Iterator[Problem]:
    """Yield what a policy, or a group of its replicas, asks of a model or a GPU that it has not got."""
    scenario, name = part.scenario, part.policy
    hardware = (("model", scenario.model), ("gpu", scenario.value_for(name, "gpu")))
    missing = " and ".join(f"'{key}'" for key, value in hardware if value is None)
    if not missing:
        return
    step_time = scenario.value_for(name, "step_time")
    if step_time is None:
        text = f"this key is missing; give step_time, or {missing} for the roofline"
        yield Problem((*scenario.written.group, "step_time"), text)
    elif step_time.kind == "roofline":
        above = _above(scenario, name, "step_time", own=bool(scenario.policy(name).step_time))
        yield Problem((*above, "step_time", "kind"), f"the roofline also needs {missing}")
    if scenario.value_for(name, "kv_cache").blocks == "auto":
        above = _above(scenario, name, "kv_cache", "blocks", own=scenario.kv_cache.blocks != "auto")
        yield Problem(
            (*above, "kv_cache", "blocks"), f"'auto' needs {missing}; otherwise give a whole number of blocks"
        )


def _above(scenario: Scenario, policy: str, *key: str, own: bool) -> KeyPath:
    """Return where a key is written: in the group, in the policy (`own`), or for all policies."""
    written = scenario.written
    if written.group and written.has((*written.group, *key)):
        return written.group
    return ("policies", policy) if own else ()
