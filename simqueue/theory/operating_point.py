"""Estimates of latencies below capacity. They accompany the simulation and do not replace it.

TPOT, for steps of a + b n seconds, is a fixed point of Little's law in which the request in question counts itself:
``TPOT = (a + b) / (1 - λ w)``, at most the duration of a step at saturation. It is exact for generalised processor
sharing.
TTFT is half a step until the next step starts, the step that computes the prompt, and the wait for a slot. The wait is
that of a birth-death queue, corrected for variability; bursty arrivals are described by their peakedness (Fredericks
1980).
Compared with exact chains, TPOT is within 6 % and TTFT within 10-20 %. Where the estimates have not been compared, or
were wrong, there are none: `outside_domain` says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simqueue.errors import InputError
from simqueue.steptime.base import StepTime
from simqueue.theory.affine import Affine, fit
from simqueue.theory.capacity import capacity, composition
from simqueue.theory.domain import at_least, positive
from simqueue.theory.lengths import Lengths
from simqueue.theory.limits import Capacity, Server
from simqueue.theory.mixture import StepSizes, poisson_seconds

MOST_LOAD = 0.95
"""Estimates were compared below this load."""
_NOT_COMPARED = {
    "static": "requests run in waves",
    "separate": "prompts have steps of their own",
    "chunked": "prompts are computed in chunks",
}
_ALIKE = 0.01
"""Squared coefficient of variation below which lengths count as equal."""
_PROMPTS_IN_A_STEP = 4
_LONGEST_PROMPT = 1.2
"""Time of a prompt over TPOT. At 2, estimates of TPOT were 20 to 40 % below simulations."""
_PRECISION = 1e-6
_GRID = 12
_MOST_STATES = 5000
"""If arrivals vary so little that more states were needed, states are larger; the wait is then nearly 0."""


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """Estimated means at one arrival rate.

    Attributes
    ----------
    load : float
        Arrival rate over capacity.
    tpot_s, ttft_s, e2el_s : float
        Seconds.
    running : float
        Requests in an average step.
    slot_wait_s : float
        The part of TTFT spent waiting for a slot.
    """

    load: float
    tpot_s: float
    ttft_s: float
    e2el_s: float
    running: float
    slot_wait_s: float


def operating_point(
    step: StepTime,
    lengths: Lengths,
    server: Server,
    rate_rps: float,
    *,
    gap_scv: float = 1.0,
    known: Capacity | None = None,
) -> OperatingPoint | None:
    """Return estimates of TPOT, TTFT and E2EL.

    Parameters
    ----------
    step, lengths, server
        As for `capacity`.
    rate_rps : float
        Arrivals per second.
    gap_scv : float
        Squared coefficient of variation of the gaps between arrivals; 1 for Poisson arrivals.
    known : Capacity, optional
        The result of `capacity` for the same arguments, if the caller has it.

    Returns
    -------
    OperatingPoint or None
        None where `outside_domain` gives a reason.

    Raises
    ------
    InputError
        If `rate_rps` is not positive or `gap_scv` is negative.
    """
    positive("rate_rps", rate_rps)
    at_least("gap_scv", gap_scv, 0)
    limit = known or capacity(step, lengths, server)
    load = rate_rps / limit.max_rate_rps
    if outside_domain(step, lengths, server, limit, load):
        return None
    steps = _AverageSteps(step, lengths, server, rate_rps)
    tpot_s = steps.tpot_s(limit.step_s)
    met = rate_rps * (lengths.output - 1) * tpot_s
    own_step_s = min(steps.seconds(met, tpot_s, lengths.new), limit.step_s + steps.prompt_s(met, tpot_s))
    slot_wait_s = _slot_wait(steps, limit, gap_scv, steps.prompt_s(met, tpot_s))
    ttft_s = tpot_s / 2 + own_step_s + slot_wait_s
    return OperatingPoint(
        load=load,
        tpot_s=tpot_s,
        ttft_s=ttft_s,
        e2el_s=ttft_s + (lengths.output - 1) * tpot_s,
        running=rate_rps * lengths.output * tpot_s,
        slot_wait_s=slot_wait_s,
    )


def outside_domain(step: StepTime, lengths: Lengths, server: Server, limit: Capacity, load: float) -> str:
    """Return why there are no estimates: the first thing in which they were not compared with exact values; or ""."""
    if server.batching != "mixed":
        return _NOT_COMPARED[server.batching]
    if server.depth > 1:
        return "two steps are in flight"
    affine = fit(step, composition(lengths, limit.steps_per_request, server))
    if not affine.exact:
        return "the step time is not linear in decodes, prompt tokens and context"
    if limit.binding != "slots":
        return f"{limit.binding} is the limit, not the slots"
    if load >= MOST_LOAD:
        return f"the load is {load:.2f}, and they are for loads below {MOST_LOAD}"
    return _lengths_outside(lengths, server) or _prompts_outside(affine, lengths, limit, load)


def _lengths_outside(lengths: Lengths, server: Server) -> str:
    if lengths.cached is not None:
        return "prompts are found in a prefix cache"
    if lengths.prompt_variance > _ALIKE * lengths.prompt**2:
        return "prompts differ in length"
    if lengths.output <= 1:
        return "answers have one token"
    # variance and E[min of two] / mean of a geometric distribution
    geometric = (lengths.output - 1) * lengths.output, lengths.output / (2 * lengths.output - 1)
    is_geometric = np.allclose((lengths.output_variance, lengths.shorter_of_two), geometric, rtol=3 * _ALIKE)
    if not is_geometric and lengths.output_variance > _ALIKE * lengths.output**2:
        return "outputs are neither equal nor geometric"
    budget = server.max_num_batched_tokens
    if budget is not None and budget < server.max_num_seqs + _PROMPTS_IN_A_STEP * lengths.prompt:
        return f"the token budget holds fewer than {_PROMPTS_IN_A_STEP} prompts beside decodes"
    return ""


def _prompts_outside(affine: Affine, lengths: Lengths, limit: Capacity, load: float) -> str:
    """Return that a prompt is long beside a step, if it is: the steps of a request then differ too much."""
    busy = load * limit.max_rate_rps / limit.limits_rps.get("compute", math.inf)  # one seat
    tpot_s = (affine.overhead_s + affine.per_decode_s) / (1 - busy)
    too_long = affine.per_prompt_token_s * lengths.prompt > _LONGEST_PROMPT * tpot_s
    return "a prompt takes longer than a step of decodes" if too_long else ""


class _AverageSteps:
    """Average steps at one arrival rate; the prompts of a step are those that arrived since the previous one began."""

    def __init__(self, step: StepTime, lengths: Lengths, server: Server, rate_rps: float) -> None:
        self.step, self.lengths, self.rate_rps = step, lengths, rate_rps
        self.sizes = StepSizes(
            context_per_decode=lengths.context / max(1.0, lengths.output - 1),
            tokens_per_prompt=lengths.new,
            past_tokens=composition(lengths, 1.0, server).past_tokens,
            budget=server.max_num_batched_tokens,
        )

    def seconds(self, decodes: float, since_s: float, more_tokens: float = 0.0) -> float:
        """Return the mean duration of a step with this many decodes and the prompts of `since_s` seconds."""
        if self.lengths.output <= 1:
            decodes = 0.0
        return poisson_seconds(self.step, self.sizes, decodes, self.rate_rps * since_s, more_tokens=more_tokens)

    def prompt_s(self, decodes: float, since_s: float) -> float:
        """Return the time by which one more prompt lengthens a step."""
        return self.seconds(decodes, since_s, self.lengths.new) - self.seconds(decodes, since_s)

    def tpot_s(self, longest_s: float) -> float:
        """Return the step time for a decoding request together with the others of Little's law."""
        return self._fixed_point(lambda t_s: 1.0 + self.rate_rps * (self.lengths.output - 1) * t_s, longest_s)

    def seconds_with(self, n: float, longest_s: float) -> float:
        """Return the step time with `n` requests in the system."""
        return self._fixed_point(lambda _: n * (self.lengths.output - 1) / self.lengths.output, longest_s)

    def _fixed_point(self, decodes: Callable[[float], float], longest_s: float) -> float:
        """Return the t, at most `longest_s`, for which a step of ``decodes(t)`` decodes takes t seconds."""
        low, high = 0.0, longest_s
        if self.seconds(decodes(high), high) >= high:
            return longest_s
        while high - low > _PRECISION * high:
            middle = (low + high) / 2
            if self.seconds(decodes(middle), middle) >= middle:
                low = middle
            else:
                high = middle
        return (low + high) / 2


def _slot_wait(steps: _AverageSteps, limit: Capacity, gap_scv: float, prompt_s: float) -> float:
    """Return the mean wait for a slot in seconds."""
    lengths, rate_rps, slots = steps.lengths, steps.rate_rps, limit.running
    peakedness = max(1 + (gap_scv - 1) * lengths.shorter_of_two, slots / _MOST_STATES)
    grid = np.unique(np.concatenate([[1.0], np.linspace(1, slots, _GRID), [slots]]))
    times_s = np.array([steps.seconds_with(float(n), limit.step_s) for n in grid[:-1]] + [limit.step_s])

    def service_rate(n: float) -> float:
        if n >= slots:
            return slots / (lengths.output * limit.step_s)
        return n / (lengths.output * float(np.interp(n, grid, times_s)))

    wait_s = birth_death_wait(rate_rps, service_rate, slots, peakedness)
    interference = max(0.0, 1 - prompt_s * limit.max_rate_rps)
    service_scv = lengths.output_variance / lengths.output**2 * interference**2
    return wait_s * (gap_scv + service_scv) / (2 * peakedness)


def birth_death_wait(rate_rps: float, service_rate: Callable[[float], float], slots: float, unit: float = 1.0) -> float:
    """Return the mean wait in seconds of a birth-death queue whose states are multiples of `unit` requests.

    Parameters
    ----------
    rate_rps : float
        Arrivals, in requests per second.
    service_rate : callable
        n -> departures per second with n requests in the system; constant and above `rate_rps` for n >= `slots`.
    slots : float
        Largest number of requests in service; others wait.
    unit : float
        Requests per state: the peakedness of the arrivals, 1 for Poisson arrivals.

    Raises
    ------
    InputError
        If the queue is not stable.
    """
    full = math.ceil(slots / unit - 1e-9)
    if full > _MOST_STATES:
        raise InputError(f"{full} states are too many for a birth-death queue; at most {_MOST_STATES:,}")
    ratio = rate_rps / service_rate(slots)
    if ratio >= 1:
        raise InputError(f"load {ratio:.4g} of the birth-death queue: must be below 1")
    weight, total, waiting = 1.0, 1.0, 0.0
    for k in range(1, full + 1):
        weight *= rate_rps / service_rate(k * unit)
        total += weight
        waiting += weight * max(0.0, k * unit - slots)
        if weight > 1e200:
            weight, total, waiting = weight / 1e200, total / 1e200, waiting / 1e200
    # Above `slots` requests the weights are geometric.
    over = full * unit - slots
    tail = weight * ratio / (1 - ratio)
    waiting += tail * over + weight * unit * ratio / (1 - ratio) ** 2
    return waiting / (total + tail) / rate_rps
