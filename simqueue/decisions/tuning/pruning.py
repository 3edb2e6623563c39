"""What the capacity law says for sure: systems that cannot serve the load need no run."""

from __future__ import annotations

from simqueue.decisions.tuning.candidates import System
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.statistics.verdict import LAW_ERROR


def may_give_up(scenario: ResolvedScenario) -> bool:
    """Return whether requests can leave without an answer, so that no queue grows without bound."""
    workloads = scenario.workloads.values()
    times_out = any(
        workload.timeout_s is not None
        or any(found.timeout_s is not None for found in (workload.classes or {}).values())
        or any(item.timeout_s is not None for item in workload.requests or ())
        for workload in workloads
    )
    return times_out or scenario.max_queued_requests is not None


def overload(system: System, *, steady: bool) -> str:
    """Return why a system cannot serve the load for sure; an empty text if it may.

    The load counts as above 1 only if it is so by more than the error of the law, or at the upper bound of the
    capacity. There is then no steady state that could keep a limit. The requests of finite traffic, such as a trace,
    can still be answered in time if there are few enough of them, so nothing is said of it.
    """
    law = system.law
    least = _least_load(law)
    if least is None or least <= 1 or not steady or may_give_up(system.scenario):
        return ""
    resource = "" if law.capacity is None else f" ({law.capacity.binding} limits)"
    return f"cannot serve the load{resource}"


def _least_load(law: PolicyLoad) -> float | None:
    """Return the load that there is at least; None if it is not known."""
    if law.load is None or law.capacity is None:
        return None
    rate_rps = law.load * law.capacity.max_rate_rps
    if law.doubt:
        return None if law.high_rps is None else rate_rps / law.high_rps
    return law.load / (1 + LAW_ERROR)
