"""The load that a scenario offers to each policy: capacity, load, estimated latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simqueue.errors import InputError
from simqueue.experiment.build import build_all
from simqueue.request import Request
from simqueue.scenario.resolved import ResolvedPolicy, ResolvedScenario
from simqueue.scenario.traffic import make_traffic
from simqueue.schedulers import Policy
from simqueue.schedulers.declarations import declared_batching
from simqueue.steptime import StepTime
from simqueue.theory.capacity import Capacity, Lengths, Server, capacity
from simqueue.theory.lengths import from_moments, from_sample
from simqueue.theory.operating_point import OperatingPoint, operating_point
from simqueue.workload.build import build_arrivals, build_lengths
from simqueue.workload.lengths.base import LengthDistribution
from simqueue.workload.streams import stream

SAMPLE = 65_536
"""Number of lengths drawn for what a distribution has no formula for, such as the longest of a batch."""
LEAST_FOR_RATE = 20
"""Least number of recorded or listed requests that have an arrival rate."""
NEAR = 1.25
"""If the limits by slots and by token budget are within this factor, and the budget is below SMALL prompts, simulated
capacities were 3 to 15 % below the capacity law (8B on the roofline of an H100, 64 slots, budgets of 512 to 1,536,
prompts of 1,050 tokens)."""
SMALL = 2.0


@dataclass(frozen=True, slots=True)
class Demand:
    """The load of a workload.

    Attributes
    ----------
    rate_rps : float or None
        Arrivals per second; None if there is no rate (all at once, a few listed requests).
    gap_scv : float
        Squared coefficient of variation of the gaps between arrivals.
    lengths : Lengths
    """

    rate_rps: float | None
    gap_scv: float
    lengths: Lengths


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
        None at or above capacity.
    why_not : str
        Empty, or why there is no capacity.
    caution : str
        Empty, or why the capacity is less accurate than usual.
    """

    capacity: Capacity | None
    load: float | None
    estimate: OperatingPoint | None
    why_not: str = ""
    caution: str = ""


def policy_loads(
    scenario: ResolvedScenario,
    requests: Sequence[Request] | None = None,
    servers: Mapping[str, Server | None] | None = None,
) -> dict[str, PolicyLoad]:
    """Return capacity, load and estimates of every policy of a scenario.

    Parameters
    ----------
    scenario : ResolvedScenario
    requests : sequence of Request, optional
        The requests of replication 0, if they are known. They describe traces and listed requests.
    servers : mapping of str to Server or None, optional
        Each policy as `server` describes it. By default the policies are built to describe them.

    Raises
    ------
    InputError
        If the scenario is wrong.
    """
    asked = demand(scenario, requests)
    described = all_servers(scenario) if servers is None else servers
    return {policy.name: _policy_load(policy, described[policy.name], asked) for policy in scenario.policies}


def all_servers(scenario: ResolvedScenario) -> dict[str, Server | None]:
    """Return every policy of a scenario as `server` describes it, by name."""
    built = build_all(scenario)
    return {policy.name: server(built[policy.name]) for policy in scenario.policies}


def demand(scenario: ResolvedScenario, requests: Sequence[Request] | None = None) -> Demand | None:
    """Return rate and lengths of a workload: those of its distributions, if it has them, otherwise of its requests."""
    workload = scenario.workload
    lengths = None if workload is None else workload.independent_lengths
    if workload is None or workload.arrivals is None or lengths is None:
        return _observed(_fixed(scenario) if requests is None else requests)
    found = _moments(*(build_lengths(one, scenario.base_dir) for one in lengths))
    arrivals = build_arrivals(workload.arrivals, scenario.base_dir)
    return Demand(arrivals.mean_rate_rps, 1.0 if arrivals.gap_scv is None else arrivals.gap_scv, found)


def _moments(prompt: LengthDistribution, output: LengthDistribution) -> Lengths:
    """Return the moments of two distributions: exact ones, or those of a sample if a heavy tail has no variance."""
    prompts, outputs = (one.sample(stream(0, 0, f"capacity.{i}"), SAMPLE) for i, one in enumerate((prompt, output)))
    exact = (prompt.mean(), prompt.variance()), (output.mean(), output.variance())
    return from_moments(*exact, prompts, outputs) if np.isfinite(exact).all() else from_sample(prompts, outputs)


def _fixed(scenario: ResolvedScenario) -> Sequence[Request]:
    """Return the requests if their arrival times are fixed and they fit into memory, otherwise none."""
    traffic = make_traffic(scenario)
    return traffic.requests if isinstance(traffic.requests, list) and not traffic.session_groups else ()


def _observed(requests: Sequence[Request]) -> Demand | None:
    if not requests:
        return None
    lengths = from_sample(
        np.array([request.prompt_tokens for request in requests]),
        np.array([request.output_tokens for request in requests]),
    )
    arrival_s = np.array([request.arrival_s for request in requests])
    span_s = float(arrival_s[-1] - arrival_s[0])
    if len(requests) < LEAST_FOR_RATE or span_s <= 0:
        return Demand(None, 1.0, lengths)
    gaps = np.diff(arrival_s)
    return Demand((len(requests) - 1) / span_s, float(gaps.var() / gaps.mean() ** 2), lengths)


def _policy_load(policy: ResolvedPolicy, described: Server | None, asked: Demand | None) -> PolicyLoad:
    if asked is None:
        return PolicyLoad(None, None, None, "the workload has no fixed rate of requests")
    if described is None:
        return PolicyLoad(None, None, None, f"no capacity law for the scheduler '{policy.scheduler}'")
    try:
        return loaded(policy.step_time, described, asked)
    except InputError as error:
        return PolicyLoad(None, None, None, str(error))


def loaded(step_time: StepTime, described: Server, asked: Demand) -> PolicyLoad:
    """Return capacity, load and estimates of one policy, which `described` describes."""
    limit = capacity(step_time, asked.lengths, described)
    doubt = _caution(limit, described, asked.lengths.prompt)
    if asked.rate_rps is None:
        return PolicyLoad(limit, None, None, caution=doubt)
    point = operating_point(step_time, asked.lengths, described, asked.rate_rps, gap_scv=asked.gap_scv, known=limit)
    return PolicyLoad(limit, asked.rate_rps / limit.max_rate_rps, point, caution=doubt)


def _caution(limit: Capacity, described: Server, prompt_tokens: float) -> str:
    """Return a caution if prompts wait for the token budget while they hold slots: the capacity law ignores that."""
    budget = described.max_num_batched_tokens
    if budget is None or budget >= SMALL * prompt_tokens or described.batching != "chunked":
        return ""
    budget_rps = min(limit.limits_rps["tokens"], limit.limits_rps["compute"])
    if not 1 / NEAR < budget_rps / limit.limits_rps["slots"] < NEAR:
        return ""
    return (
        f"slots ({limit.limits_rps['slots']:.3g} req/s) and token budget ({budget_rps:.3g} req/s, about one prompt) "
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
    )
