"""What a workload asks of a policy: the requests that it admits, the tokens that it makes, those that its cache has.

A workload offers the same requests to every policy. A policy refuses some of them, cuts the outputs of others, and
finds the beginnings of prompts in its cache. Only the rest is work, so each policy has a demand of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.request import Request, Status
from simqueue.results.metrics import has_status
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.scenario.traffic import make_traffic
from simqueue.schedulers import Policy
from simqueue.simulation.recording import Recording
from simqueue.theory.lengths import Lengths, Shared, from_moments, from_sample
from simqueue.workload.arrivals.base import ArrivalProcess
from simqueue.workload.arrivals.renewal import GammaArrivals, PoissonArrivals
from simqueue.workload.arrivals.simple import ConstantArrivals
from simqueue.workload.build import build_arrivals, build_lengths
from simqueue.workload.lengths.base import LengthDistribution
from simqueue.workload.reuse import Reused, SeenPrefixes, reused
from simqueue.workload.streams import stream

SAMPLE = 65_536
"""Number of lengths drawn for what a distribution has no formula for, such as the longest of a batch."""
LEAST_FOR_RATE = 20
"""Least number of recorded or listed requests that have an arrival rate."""
MOST_COMPARED = 2000
"""Requests whose prompts are compared with each other: more than run at one time."""
MOST_REPLAYED = 20_000
"""Requests by which the hits before a run are judged; of a longer workload the first ones."""
_LIKE_POISSON = 1.5
"""Recorded gaps with a squared coefficient of variation up to this may be those of a Poisson process."""
_CERTAIN = 0.95
"""Hits are known before a run if at least this share of the tokens in common is certain to stay cached."""

Integers = NDArray[np.int64]
Sample = tuple[Integers, Integers]


@dataclass(frozen=True, slots=True)
class Demand:
    """What a workload asks of one policy.

    Attributes
    ----------
    rate_rps : float or None
        Admitted requests per second; None if there is no rate (all at once, a few listed requests).
    gap_scv : float
        Squared coefficient of variation of the gaps between their arrivals.
    lengths : Lengths
        Of admitted requests, with the outputs that are made for them.
    sample : (int64 array, int64 array) or None
        Prompt and output lengths of admitted requests; None if a prefix cache has parts of the prompts.
    irregular : str
        Empty, or why the arrivals are none of those with which estimates of latencies were compared.
    """

    rate_rps: float | None
    gap_scv: float
    lengths: Lengths
    sample: Sample | None = None
    irregular: str = ""


@dataclass(frozen=True, slots=True)
class Offered:
    """What a workload offers to every policy.

    Attributes
    ----------
    all : Demand
        Of a policy that admits all requests, cuts none and caches nothing.
    prompts, outputs : int64 arrays
        Lengths of `requests`, or a sample of their distributions.
    requests : sequence of Request
        Empty if rate and lengths are those of distributions.
    """

    all: Demand
    prompts: Integers
    outputs: Integers
    requests: Sequence[Request] = ()


def offered(scenario: ResolvedScenario, requests: Sequence[Request] | None = None) -> Offered | None:
    """Return what a workload offers: by its distributions, if it has them, otherwise by its requests.

    None if there are no requests, or if their arrivals depend on answers.

    Parameters
    ----------
    scenario : ResolvedScenario
    requests : sequence of Request, optional
        The requests of replication 0, if they are known.
    """
    workload = scenario.workload
    lengths = None if workload is None else workload.independent_lengths
    if workload is None or workload.arrivals is None or lengths is None:
        return _observed(_fixed(scenario) if requests is None else requests)
    arrivals = build_arrivals(workload.arrivals, scenario.base_dir)
    prompt, output = (build_lengths(one, scenario.base_dir) for one in lengths)
    prompts, outputs = (one.sample(stream(0, 0, f"capacity.{i}"), SAMPLE) for i, one in enumerate((prompt, output)))
    gap_scv = 1.0 if arrivals.gap_scv is None else arrivals.gap_scv
    moments = _moments(prompt, output, prompts, outputs)
    demand = Demand(arrivals.mean_rate_rps, gap_scv, moments, (prompts, outputs), _irregular(arrivals))
    return Offered(demand, prompts, outputs)


def asked_of(policy: Policy, load: Offered, recording: Recording | None = None) -> Demand:
    """Return what is asked of one policy.

    Parameters
    ----------
    policy : Policy
    load : Offered
    recording : Recording, optional
        A run of this policy, which shows the hits of its prefix cache.

    Raises
    ------
    InputError
        If the policy refuses all requests, or if prefix hits are not known.
    """
    made = _tokens_made(policy, load, recording)
    admitted = made > 0
    if not admitted.any():
        raise InputError("every request is refused")
    found = _with_hits(policy, load, made, recording)
    if found is None and (made == load.outputs).all():
        return load.all
    sample = load.prompts[admitted], made[admitted]
    lengths = found or from_sample(*sample)
    return Demand(*_rate(load, admitted), lengths, None if found else sample, load.all.irregular)


def _irregular(arrivals: ArrivalProcess) -> str:
    """Return why arrivals are none of those with which estimates were compared, or an empty text.

    With on-off arrivals and Weibull gaps of the same variance estimates were off by 30 to 50 %.
    """
    if arrivals.gap_scv is None:
        return "the rate of arrivals changes with time"
    compared = isinstance(arrivals, PoissonArrivals | GammaArrivals | ConstantArrivals)
    return "" if compared else "arrivals are neither Poisson nor even, and their gaps are not gamma distributed"


def _moments(prompt: LengthDistribution, output: LengthDistribution, prompts: Integers, outputs: Integers) -> Lengths:
    """Return the moments of two distributions: exact ones, or those of a sample if a heavy tail has no variance."""
    exact = (prompt.mean(), prompt.variance()), (output.mean(), output.variance())
    return from_moments(*exact, prompts, outputs) if np.isfinite(exact).all() else from_sample(prompts, outputs)


def _fixed(scenario: ResolvedScenario) -> Sequence[Request]:
    """Return the requests if their arrival times are fixed and they fit into memory, otherwise none."""
    traffic = make_traffic(scenario)
    return traffic.requests if isinstance(traffic.requests, list) and not traffic.session_groups else ()


def _observed(requests: Sequence[Request]) -> Offered | None:
    if not requests:
        return None
    prompts = np.array([request.prompt_tokens for request in requests])
    outputs = np.array([request.output_tokens for request in requests])
    rate_rps, gap_scv = _observed_rate(np.array([request.arrival_s for request in requests]))
    bursty = "recorded arrivals vary more than Poisson arrivals" if gap_scv > _LIKE_POISSON else ""
    demand = Demand(rate_rps, gap_scv, from_sample(prompts, outputs), (prompts, outputs), bursty)
    return Offered(demand, prompts, outputs, requests)


def _observed_rate(arrival_s: NDArray[np.float64]) -> tuple[float | None, float]:
    """Return the rate of arrivals in ascending order, None if they are too few, and the SCV of their gaps."""
    span_s = float(arrival_s[-1] - arrival_s[0])
    if len(arrival_s) < LEAST_FOR_RATE or span_s <= 0:
        return None, 1.0
    gaps = np.diff(arrival_s)
    return (len(arrival_s) - 1) / span_s, float(gaps.var() / gaps.mean() ** 2)


def _rate(load: Offered, admitted: NDArray[np.bool_]) -> tuple[float | None, float]:
    """Return the rate of the admitted requests, and the SCV of the gaps between them."""
    if load.requests:
        return _observed_rate(np.array([request.arrival_s for request in load.requests])[admitted])
    rate_rps, share = load.all.rate_rps, float(admitted.mean())
    # Each arrival of a renewal process is kept with the same probability, whatever the others are.
    return None if rate_rps is None else share * rate_rps, share * load.all.gap_scv + (1 - share)


# -- refused and cut ---------------------------------------------------------------------------------------------------


def _tokens_made(policy: Policy, load: Offered, recording: Recording | None) -> Integers:
    """Return how many tokens the policy makes for each request or sample: 0 if it refuses it."""
    longest = Request("longest", 0.0, int(load.prompts.max()), int(load.outputs.max()))
    if _made(policy, longest) == longest.output_tokens and not _limited(recording):
        return load.outputs  # limits are upper bounds: what takes the longest whole takes all others
    if load.requests:
        return np.array([_made(policy, request) for request in load.requests])
    pairs, which = np.unique(np.stack((load.prompts, load.outputs)), axis=1, return_inverse=True)
    made = [_made(policy, Request("sample", 0.0, prompt, output)) for prompt, output in pairs.T.tolist()]
    return np.asarray(np.array(made)[which.reshape(-1)])


def _made(policy: Policy, request: Request) -> int:
    return policy.due_tokens(request) if policy.rejection(request) is None else 0


def _limited(recording: Recording | None) -> bool:
    """Whether requests of a run were rejected or cut."""
    if recording is None:
        return False
    rows = recording.requests
    return bool(has_status(rows, Status.REJECTED).any() or (rows["due_tokens"] < rows["output_tokens"]).any())


# -- found in the prefix cache -----------------------------------------------------------------------------------------


def _with_hits(policy: Policy, load: Offered, made: Integers, recording: Recording | None) -> Lengths | None:
    """Return the lengths with what the prefix cache has of them, or None if it has nothing.

    Raises
    ------
    InputError
        If there is no run to show it, and it cannot be told without.
    """
    kept = [request for request, tokens in zip(load.requests, made.tolist(), strict=False) if tokens]
    if not policy.kv.shares or all(request.prompt is None for request in kept):
        return None
    if recording is None:
        return _expected_hits(policy, kept[:MOST_REPLAYED], made[made > 0][:MOST_REPLAYED])
    rows = recording.requests
    served = ~np.isnan(rows["first_scheduled_s"])
    if "attempt" in rows:
        served &= rows["attempt"] == 0
    cached = rows["cached_tokens"][served]
    if not cached.any():
        return None
    parts = list(reused(islice(kept, MOST_COMPARED)))
    return from_sample(rows["prompt_tokens"][served], rows["due_tokens"][served], cached, _shared(parts, cached))


def _expected_hits(policy: Policy, requests: Sequence[Request], made: Integers) -> Lengths | None:
    """Return the lengths with the hits of a cache that is known to keep what prompts have in common.

    What `gap` requests took after the last use of some tokens must fit in the pool beside all that is used again. Then
    these tokens are in use or the least recently used ones are others.
    """
    seen = SeenPrefixes()
    parts = list(reused(requests, seen))
    common = np.array([sum(part.tokens for part in found) for found in parts])
    if not common.any():
        return None
    prompts, size = np.array([request.prompt_tokens for request in requests]), policy.kv.block_size
    others = (policy.kv.total - policy.kv.watermark_blocks) * size - seen.reused_tokens
    most_gap = others / float((prompts - common + made).mean()) - 1
    kept = sum(part.tokens for found in parts for part in found if part.gap <= most_gap)
    if kept < _CERTAIN * common.sum():
        raise InputError("how much of the tokens that prompts have in common stays cached is known only after a run")
    cached = np.minimum(common // size, (prompts - 1) // size) * size
    return from_sample(prompts, made, cached, _shared(parts[:MOST_COMPARED], cached))


def _shared(parts: Sequence[Sequence[Reused]], cached: Integers) -> Shared:
    """Return how many tokens of each request others of n requests that run together have in the pool.

    A token used again after `gap` requests is in the pool once, not twice, if both run: for 1 - gap / n of them.
    Prompts computed at the same time hold their tokens twice, so no more than what hits find is shared. The first half
    of the requests fills the cache, and does not count.
    """
    parts, cached = parts[len(parts) // 2 :], cached[len(cached) // 2 :]
    gaps = np.array([part.gap for found in parts for part in found], dtype=np.float64)
    tokens = np.array([part.tokens for found in parts for part in found], dtype=np.float64)
    kinds, which = np.unique(gaps, return_inverse=True)
    sums: NDArray[Any] = np.bincount(which.reshape(-1), weights=tokens, minlength=len(kinds)) / max(1, len(parts))
    scale = min(1.0, float(cached.mean()) / sums.sum()) if sums.sum() else 0.0
    return lambda running: scale * float(sums @ np.maximum(0.0, 1 - kinds / running))
