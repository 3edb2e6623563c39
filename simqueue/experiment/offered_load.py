"""The load that a scenario offers to each policy: capacity, load, estimated latencies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simqueue.errors import InputError
from simqueue.experiment.build import build_all
from simqueue.experiment.demand import Demand, Offered, asked_of, offered
from simqueue.request import Request
from simqueue.scenario.resolved import ResolvedPolicy, ResolvedScenario
from simqueue.schedulers import Policy
from simqueue.schedulers.declarations import declared_batching
from simqueue.simulation.recording import Recording
from simqueue.steptime import StepTime
from simqueue.theory.capacity import COMPUTE_BOUND, Capacity, Server, capacity
from simqueue.theory.lengths import Lengths
from simqueue.theory.operating_point import OperatingPoint, operating_point, outside_domain

NEAR = 1.25
"""If the limits by slots and by token budget are within this factor, and the budget is below SMALL prompts, simulated
capacities were 3 to 15 % below the capacity law (8B on the roofline of an H100, 64 slots, budgets of 512 to 1,536,
prompts of 1,050 tokens)."""
SMALL = 2.0
_OF_PROMPTS = 1000
"""Policies with whole prompts get a caution if the longest of so many prompts is longer than the budget."""
_LONG_PROMPTS = "prompts longer than the token budget run alone, when nothing else runs: the capacity is too high"


_OF_CAPACITY: Mapping[str, Callable[[Capacity], Any]] = {
    "capacity_rps": lambda limit: limit.max_rate_rps,
    "binding": lambda limit: limit.binding,
    "limits_rps": lambda limit: {name: _finite(rate) for name, rate in limit.felt_rps.items()},
    "steps_per_request": lambda limit: limit.steps_per_request,
    "saturated_step_ms": lambda limit: 1000 * limit.step_s,
    "saturated_running": lambda limit: limit.running,
}
_OF_ESTIMATE: Mapping[str, Callable[[OperatingPoint], float]] = {
    "estimated_tpot_ms": lambda point: 1000 * point.tpot_s,
    "estimated_ttft_ms": lambda point: 1000 * point.ttft_s,
    "estimated_e2el_ms": lambda point: 1000 * point.e2el_s,
    "estimated_running": lambda point: point.running,
}
"""Key and value of each plain value about the capacity and about the estimates."""


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class PolicyLoad:
    """The load of one policy.

    Attributes
    ----------
    capacity : Capacity or None
        None if no capacity law is known for the policy.
    load : float or None
        Offered rate over capacity.
    estimate : OperatingPoint or None
        None outside its domain.
    why_not : str
        Empty, or why there is no capacity.
    caution : str
        Empty, or why the capacity is less accurate than usual.
    no_estimate : str
        Empty, or why there is a load but no estimate.
    failed : bool
        Whether there is no capacity because of a fault of the law.
    """

    capacity: Capacity | None
    load: float | None
    estimate: OperatingPoint | None
    why_not: str = ""
    caution: str = ""
    no_estimate: str = ""
    failed: bool = False

    @property
    def notes(self) -> list[str]:
        """Why something is not known, or is less accurate than usual."""
        no_estimate = f"no estimates of latencies: {self.no_estimate}" if self.no_estimate else ""
        return [note for note in (self.why_not, self.caution, no_estimate) if note]

    def plain(self) -> dict[str, Any]:
        """Return what is known as plain values: None if undefined or without a limit."""
        limit, point = self.capacity, self.estimate
        return {
            **{key: None if limit is None else value(limit) for key, value in _OF_CAPACITY.items()},
            "load": self.load,
            **{key: None if point is None else value(point) for key, value in _OF_ESTIMATE.items()},
            "note": "; ".join(self.notes) or None,
        }


def policy_loads(
    scenario: ResolvedScenario,
    requests: Sequence[Request] | None = None,
    policies: Mapping[str, Policy] | None = None,
    recordings: Mapping[str, Recording] | None = None,
    *,
    estimates: bool = True,
) -> dict[str, PolicyLoad]:
    """Return capacity, load and estimates of every policy of a scenario.

    Parameters
    ----------
    scenario : ResolvedScenario
    requests : sequence of Request, optional
        The requests of replication 0, if they are known. They describe traces and listed requests.
    policies : mapping of str to Policy, optional
        By name; what they refuse, cut and cache is no load. By default they are built.
    recordings : mapping of str to Recording, optional
        Runs of replication 0, which show the hits of prefix caches.
    estimates : bool
        Whether latencies are estimated too.

    Raises
    ------
    InputError
        If the scenario is wrong.
    """
    load = offered(scenario, requests)
    built = build_all(scenario) if policies is None else policies
    runs = recordings or {}
    found = {}
    for policy in scenario.policies:
        name = policy.name
        found[name] = _policy_load(policy, built[name], load, runs.get(name), estimates=estimates)
    return found


def _policy_load(
    policy: ResolvedPolicy, built: Policy, load: Offered | None, recording: Recording | None, *, estimates: bool
) -> PolicyLoad:
    if load is None:
        return PolicyLoad(None, None, None, "the workload has no fixed rate of requests")
    described = server(built)
    if described is None:
        return PolicyLoad(None, None, None, f"no capacity law for the scheduler '{policy.scheduler}'")
    try:
        return loaded(policy.step_time, described, asked_of(built, load, recording), estimates=estimates)
    except InputError as error:
        return PolicyLoad(None, None, None, str(error))
    except ArithmeticError as error:  # what is said about a run must not lose the run
        return PolicyLoad(None, None, None, f"the capacity law failed: {error}", failed=True)


def loaded(step_time: StepTime, described: Server, asked: Demand, *, estimates: bool = True) -> PolicyLoad:
    """Return capacity, load and, if they are wanted, estimates of one policy, which `described` describes."""
    limit = capacity(step_time, asked.lengths, described)
    doubt = _caution(limit, described, asked.lengths)
    if asked.rate_rps is None:
        return PolicyLoad(limit, None, None, caution=doubt)
    load = asked.rate_rps / limit.max_rate_rps
    if not estimates:
        return PolicyLoad(limit, load, None, caution=doubt)
    why = outside_domain(step_time, asked.lengths, described, limit, load)
    if why:
        return PolicyLoad(limit, load, None, caution=doubt, no_estimate=why)
    point = operating_point(step_time, asked.lengths, described, asked.rate_rps, gap_scv=asked.gap_scv, known=limit)
    return PolicyLoad(limit, load, point, caution=doubt)


def _caution(limit: Capacity, described: Server, lengths: Lengths) -> str:
    """Return a caution where the budget delays prompts in a way that the capacity law ignores."""
    budget = described.max_num_batched_tokens
    if budget is None:
        return ""
    if described.batching != "chunked":
        return _LONG_PROMPTS if lengths.longest(_OF_PROMPTS)[0] > budget else ""
    if budget >= SMALL * lengths.new:
        return ""
    # Prompts wait for the token budget while they hold slots.
    slots_rps, compute_rps = limit.limits_rps["slots"], limit.limits_rps["compute"]
    budget_rps = min(limit.limits_rps["tokens"], compute_rps)
    if not 1 / NEAR < budget_rps / slots_rps < NEAR or compute_rps < COMPUTE_BOUND * slots_rps:
        return ""
    return (
        f"slots ({slots_rps:.3g} req/s) and token budget ({budget_rps:.3g} req/s, about one prompt) "
        "limit at nearly the same rate: the capacity can be up to 15 % too high"
    )


def server(built: Policy) -> Server | None:
    """Return the limits of a policy, in the terms of the capacity law; None if the policy does not declare them."""
    batching, kv = declared_batching(built), built.kv
    if batching is None:
        return None
    return Server(
        batching=batching.kind,
        max_num_seqs=batching.max_num_seqs,
        max_num_batched_tokens=batching.max_num_batched_tokens,
        chunk_tokens=batching.chunk_tokens,
        kv_blocks=kv.total - kv.watermark_blocks,
        block_size=kv.block_size,
        reserve_tokens=kv.reserve_tokens,
        depth=built.depth,
    )
