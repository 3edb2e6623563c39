"""The exact theory that applies to a policy of a scenario, if there is one, and its predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from simqueue.errors import InputError
from simqueue.scenario.resolved import ResolvedPolicy, ResolvedScenario
from simqueue.schedulers.registry import is_built_in
from simqueue.steptime import StepTime
from simqueue.steptime.base import Batch
from simqueue.steptime.linear import ConstantStepTime, LinearStepTime
from simqueue.theory.bulk import slotted_continuous, timed_batching
from simqueue.theory.disciplines import priority_waits
from simqueue.theory.sharing import free_slots, shared_decoding
from simqueue.theory.single_server import mg1
from simqueue.theory.waves import wave_seconds
from simqueue.workload.arrivals.settings import PoissonArrivalsSettings
from simqueue.workload.build import build_lengths
from simqueue.workload.lengths.base import LengthDistribution
from simqueue.workload.lengths.settings import EmpiricalLengthSettings
from simqueue.workload.lengths.simple import ConstantLength
from simqueue.workload.lengths.smooth import GeometricLength
from simqueue.workload.lengths.table import TableLength

_FLUID_TOKENS = 100
_FLUID_ERROR = 0.015
"""Tokens are made in steps: requests arrive and leave within one, of 100 or more. The largest error seen was 1 %."""
_BUSY_BATCH = 10.0
"""Mean batch above which a server with free slots is idle with a probability below exp(-10)."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predictions of an exact theory for a policy.

    Attributes
    ----------
    model : str
        Name of the theory; empty if none applies.
    values : dict of summary column to float
        Means, in the column's unit.
    why_not : str
        Empty, or why no exact theory applies.
    error : float
        Largest error of the theory itself, as a share of its values: 0 unless it replaces steps by a fluid.
    """

    model: str
    values: dict[str, float]
    why_not: str = ""
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class _Case:
    """One policy in the terms of queueing theory."""

    rate: float
    prompt: LengthDistribution
    output: LengthDistribution
    step: StepTime
    slots: int
    policy: ResolvedPolicy
    given_prompts: bool
    """Whether prompt lengths are drawn from given values."""

    @property
    def prefill_s(self) -> float:
        """Mean prefill time of a request that runs alone."""
        return _linear(self.step, self.prompt.mean())

    @property
    def decode_s(self) -> float:
        """Time of a decode step with one request, without the cost of its context."""
        return self.step.seconds(Batch(1, 1, 0, sampled_rows=1))


def predict(scenario: ResolvedScenario, policy: ResolvedPolicy) -> Prediction:
    """Return the predictions of the exact theory of a policy, or why there is none.

    Raises
    ------
    InputError
        If a file of the workload cannot be read, or if there is no steady state.
    """
    case = _case(scenario, policy)
    if isinstance(case, str):
        return _no_theory(case)
    theory = _waves if policy.scheduler == "static" else _one_at_a_time if case.slots == 1 else _batched
    try:
        return theory(case)
    except InputError as error:
        advice = "a lower rate_rps, more slots, shorter requests or faster steps reduce the load"
        raise InputError(f"{policy.name}: {error}; {advice}") from None


def _case(scenario: ResolvedScenario, policy: ResolvedPolicy) -> _Case | str:
    """Return the policy in the terms of queueing theory, or why no exact theory applies."""
    workload = scenario.workload
    if workload is None or workload.can_time_out or workload.max_concurrency is not None:
        return "there must be one workload, without timeout_s (its own or of a class) and max_concurrency"
    if policy.fleet is not None:
        return "there must be one replica, without a router"
    before = _before_the_server(scenario, policy)
    if before:
        return before
    arrivals, lengths = workload.arrivals, workload.independent_lengths
    if not isinstance(arrivals, PoissonArrivalsSettings) or lengths is None:
        return "arrivals must be Poisson, and lengths independent"
    if not isinstance(policy.step_time, ConstantStepTime | LinearStepTime):
        return "the step time must be constant or linear"
    prompt, output = (build_lengths(one, scenario.base_dir) for one in lengths)
    slots = getattr(policy.settings, "max_num_seqs", 0)
    given = isinstance(lengths[0], EmpiricalLengthSettings)
    case = _Case(arrivals.rate_rps, prompt, output, policy.step_time, slots, policy, given)
    return _other_limits(case, policy.kv_cache.tokens) or case


def _before_the_server(scenario: ResolvedScenario, policy: ResolvedPolicy) -> str:
    """Return what keeps requests from the server or delays them on their way, or an empty text if nothing does."""
    if scenario.max_queued_requests is not None:
        return "max_queued_requests must not be set: requests that find the queue full are rejected"
    return "" if policy.front_end is None else "there must be no front_end: requests wait and take time there, too"


def _longest(lengths: LengthDistribution) -> int:
    """Return a length that one request in a billion reaches."""
    return int(lengths.of_uniforms(np.array([1 - 1e-9]))[0])


def _other_limits(case: _Case, pool_tokens: int) -> str:
    """Return what else can limit the policy, besides slots and step time, or an empty text if nothing does."""
    settings, scheduler = case.policy.settings, case.policy.scheduler
    if scheduler not in ("static", "continuous", "chunked") or getattr(settings, "prefill", "mixed") != "mixed":
        return f"the scheduler must be static, continuous with prefill: mixed, or chunked; it is {scheduler}"
    if not is_built_in(scheduler):
        return f"the scheduler {scheduler} must be that of simqueue"
    longest = case.policy.longest_request_tokens
    if longest is not None and _longest(case.prompt) + _longest(case.output) > longest:
        return f"no request may be longer than max_model_len, which is {longest}"
    busiest = min(case.slots, 20 + 4 * case.rate)
    if pool_tokens < busiest * (case.prompt.mean() + 12 * case.output.mean()):
        return "the KV pool must not be the limit"
    prompt = case.prompt.mean() + 12 * math.sqrt(case.prompt.variance())
    chunk = min(
        getattr(settings, "chunk_tokens", None) or math.inf, getattr(settings, "max_num_batched_tokens", math.inf)
    )
    together = case.slots if case.slots > 1 else 0
    if (scheduler == "chunked" and prompt > chunk) or (scheduler != "static" and case.prompt.mean() * together > chunk):
        return "the token budget must not be the limit, nor split prompts"
    return ""


def _one_at_a_time(case: _Case) -> Prediction:
    context_s = getattr(case.step, "per_context_token_s", 0.0)
    if context_s and (case.prompt.variance() or case.output.variance()):
        return Prediction(
            "",
            {},
            "random lengths need per_context_token_s: 0, or service times are dependent",
        )
    decodes = case.output.mean() - 1
    # the fed token of the j-th decode attends to prompt + j tokens
    reading_s = context_s * decodes * (case.prompt.mean() + case.output.mean() / 2)
    mean_s = case.prefill_s + decodes * case.decode_s + reading_s
    slope_s = _linear(case.step, 2.0) - _linear(case.step, 1.0)
    variance = slope_s**2 * case.prompt.variance() + case.decode_s**2 * case.output.variance()
    order = getattr(case.policy.settings, "order", "fcfs")
    if order == "fcfs":
        wait_s = mg1(case.rate, mean_s, mean_s**2 + variance).mean_wait_s
        name = "M/D/1" if variance == 0 else "M/G/1"
    elif order == "shortest_prompt" and case.given_prompts and not case.output.variance():
        wait_s, name = _shortest_first(case, mean_s), "M/G/1, priorities"
    else:
        return _no_theory(f"order: {order} needs constant outputs, and prompts drawn from given values")
    return _prediction(name, wait_s, case.prefill_s, mean_s)


def _shortest_first(case: _Case, mean_s: float) -> float:
    """Return the mean wait with the shortest prompt first: one priority class per length (Cobham)."""
    prompt = case.prompt
    if not isinstance(prompt, TableLength):
        return math.nan
    weights = prompt.weights.tolist()
    shares: dict[int, float] = {}
    for value, weight in zip(prompt.tokens.tolist(), weights, strict=True):
        shares[value] = shares.get(value, 0.0) + weight / sum(weights)
    services = [mean_s - case.prefill_s + _linear(case.step, float(length)) for length in shares]
    rates = [case.rate * share for share in shares.values()]
    waits = priority_waits(rates, services, [service**2 for service in services])
    return sum(share * wait for share, wait in zip(shares.values(), waits, strict=True))


def _batched(case: _Case) -> Prediction:
    if getattr(case.policy.settings, "order", "fcfs") != "fcfs":
        return _no_theory("several slots need order: fcfs")
    output = case.output.mean()
    if isinstance(case.step, ConstantStepTime):
        step_s = case.step.step_s
        batch = case.rate * output * step_s
        if isinstance(case.output, GeometricLength) and (case.output.bounds.low, case.output.bounds.high) == (1, None):
            found = slotted_continuous(case.rate, case.slots, output, step_s)
            return _prediction("slots in steps", found.mean_wait_s, step_s, output * step_s)
        if batch >= _BUSY_BATCH and case.slots > batch + 8 * math.sqrt(batch):
            free = free_slots(case.rate, output, step_s)
            values = {"mean_ttft_ms": 1000 * free.ttft_s, "mean_e2el_ms": 1000 * free.e2el_s}
            return Prediction("M/G/∞ in steps", values)
        return Prediction(
            "",
            {},
            "constant steps need geometric outputs, or a busy server with a slot for every request",
        )
    return _shared(case, output)


def _shared(case: _Case, output: float) -> Prediction:
    step = case.step
    plain = isinstance(step, LinearStepTime) and not step.per_prefill_token_s and not step.per_context_token_s
    if not plain or output < _FLUID_TOKENS:
        return Prediction(
            "",
            {},
            "linear steps need free prefill and context, and mean outputs of at least 100 tokens",
        )
    if not isinstance(step, LinearStepTime):
        return _no_theory("the step time must be linear")
    # the first token comes with the free prefill, so output - 1 tokens share the server
    found = shared_decoding(case.rate, output - 1, step.overhead_s + step.decode_base_s, step.per_decode_s)
    if case.slots < found.mean_batch + 8 * math.sqrt(found.variance_batch):
        return _no_theory("with linear steps the slots must not be the limit")
    values = {
        # sojourn times are proportional to lengths, so the mean over requests equals the mean over tokens
        "mean_tpot_ms": 1000 * found.itl_s,
        "mean_ttft_ms": 1000 * found.ttft_s,
        "mean_e2el_ms": 1000 * (found.ttft_s + (output - 1) * found.itl_s),
    }
    return Prediction("generalised processor sharing", values, error=_FLUID_ERROR)


def _waves(case: _Case) -> Prediction:
    settings = case.policy.settings
    constant = isinstance(case.prompt, ConstantLength) and isinstance(case.output, ConstantLength)
    usual = getattr(settings, "batch", "dynamic") == "dynamic" and getattr(settings, "release", "") == "wave_end"
    if not (constant and usual):
        return _no_theory("waves need constant lengths, batch: dynamic and release: wave_end")
    prompt, output = round(case.prompt.mean()), round(case.output.mean())
    seconds = [wave_seconds(case.step, rows, prompt, output) for rows in range(1, case.slots + 1)]
    found = timed_batching(case.rate, seconds)
    return Prediction(
        "bulk service",
        {"mean_queue_ms": 1000 * found.mean_wait_s, "mean_e2el_ms": 1000 * found.mean_sojourn_s},
    )


def _no_theory(why: str) -> Prediction:
    return Prediction("", {}, f"no exact theory: {why}")


def _prediction(model: str, wait_s: float, first_step_s: float, service_s: float) -> Prediction:
    return Prediction(
        model,
        {
            "mean_queue_ms": 1000 * wait_s,
            "mean_ttft_ms": 1000 * (wait_s + first_step_s),
            "mean_e2el_ms": 1000 * (wait_s + service_s),
        },
    )


def _linear(step: StepTime, prompt_tokens: float) -> float:
    """Return the step time of a prompt alone, interpolated between whole numbers of tokens."""
    low = max(1, math.floor(prompt_tokens))
    at_low, at_next = (step.seconds(Batch(prefill=((0, n),), sampled_rows=1)) for n in (low, low + 1))
    return at_low + (prompt_tokens - low) * (at_next - at_low)
