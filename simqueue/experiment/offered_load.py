"""What a scenario asks of each policy against what the policy can carry: capacity, load, estimates."""

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
from simqueue.workload.streams import stream

SAMPLE = 65_536
"""Lengths drawn for what a law does not know of itself, such as the longest of a batch."""
LEAST_FOR_RATE = 20
"""Recorded or listed requests from which on their rate means something."""
NEAR = 1.25
"""Slots and budget that limit at rates within this factor, with a budget below SMALL prompts, have been seen to carry 3
to 15 % less than the law says (8B on an H100's roofline, 64 slots, budgets of 512 to 1,536 at prompts of 1,050)."""
SMALL = 2.0


@dataclass(frozen=True, slots=True)
class Demand:
    """What the workload asks for.

    Attributes
    ----------
    rate_rps : float or None
        Arrivals per second; None where there is no such thing (all at once, a handful of listed requests).
    gap_scv : float
        Squared coefficient of variation of the gaps.
    lengths : Lengths
    """

    rate_rps: float | None
    gap_scv: float
    lengths: Lengths


@dataclass(frozen=True, slots=True)
class PolicyLoad:
    """One policy under the scenario's demand.

    Attributes
    ----------
    capacity : Capacity or None
        None where no law is known for the policy.
    load : float or None
        Offered rate over capacity.
    estimate : OperatingPoint or None
        Below capacity, where estimates exist.
    why_not : str
        Empty, or why there is no capacity.
    caution : str
        Empty, or why the capacity may be further off than the law mostly is.
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
        The traffic of replication 0, if it is known; traces and listed requests are described by it.
    servers : mapping of str to Server or None, optional
        Each policy as `server` describes it; by default the policies are built for it.

    Raises
    ------
    InputError
        If something written down is wrong.
    """
    asked = demand(scenario, requests)
    described = all_servers(scenario) if servers is None else servers
    return {policy.name: _policy_load(policy, described[policy.name], asked) for policy in scenario.policies}


def all_servers(scenario: ResolvedScenario) -> dict[str, Server | None]:
    """Return every policy of a scenario as `server` describes it, by name."""
    built = build_all(scenario)
    return {policy.name: server(built[policy.name]) for policy in scenario.policies}


def demand(scenario: ResolvedScenario, requests: Sequence[Request] | None = None) -> Demand | None:
    """Return rate and lengths of a scenario's workload: of its laws where it has some, else of its requests."""
    workload = scenario.workload
    if workload is None or workload.system_prompt is not None or workload.prompt_output_correlation:
        return _observed(_fixed(scenario) if requests is None else requests)
    if workload.arrivals is not None and workload.prompt_tokens is not None and workload.output_tokens is not None:
        laws = [build_lengths(law, scenario.base_dir) for law in (workload.prompt_tokens, workload.output_tokens)]
        prompts, outputs = (law.sample(stream(0, 0, f"capacity.{i}"), SAMPLE) for i, law in enumerate(laws))
        prompt, output = ((law.mean(), law.variance()) for law in laws)
        finite = np.isfinite((*prompt, *output)).all()  # a heavy tail may have no variance; then the sample has to do
        lengths = from_moments(prompt, output, prompts, outputs) if finite else from_sample(prompts, outputs)
        arrivals = build_arrivals(workload.arrivals, scenario.base_dir)
        return Demand(arrivals.mean_rate_rps, 1.0 if arrivals.gap_scv is None else arrivals.gap_scv, lengths)
    if requests is None:
        requests = _fixed(scenario)
    return _observed(requests)


def _fixed(scenario: ResolvedScenario) -> Sequence[Request]:
    """Return the requests if their times do not depend on the answers and they fit in memory; else none."""
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
    """Return capacity, load and estimates of one server."""
    limit = capacity(step_time, asked.lengths, described)
    doubt = _caution(limit, described, asked.lengths.prompt)
    if asked.rate_rps is None:
        return PolicyLoad(limit, None, None, caution=doubt)
    point = operating_point(step_time, asked.lengths, described, asked.rate_rps, gap_scv=asked.gap_scv, known=limit)
    return PolicyLoad(limit, asked.rate_rps / limit.max_rate_rps, point, caution=doubt)


def _caution(limit: Capacity, described: Server, prompt_tokens: float) -> str:
    """Say where prompts queue for the token budget while they hold slots, which the law does not see."""
    budget = described.max_num_batched_tokens
    if budget is None or budget >= SMALL * prompt_tokens or described.batching != "chunked":
        return ""
    budget_rps = min(limit.limits_rps["tokens"], limit.limits_rps["compute"])
    if not 1 / NEAR < budget_rps / limit.limits_rps["slots"] < NEAR:
        return ""
    return (
        f"slots ({limit.limits_rps['slots']:.3g} req/s) and a token budget of about a prompt ({budget_rps:.3g} req/s) "
        "limit at nearly the same rate: the capacity may be up to some 15 % too high"
    )


def server(built: Policy) -> Server | None:
    """Return what limits a policy, in the terms of the capacity law; None if the policy does not describe itself."""
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
