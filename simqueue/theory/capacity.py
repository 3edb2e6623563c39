"""The capacity law of a continuous-batching server: the largest rate it can carry, and what limits it.

Rate conservation. Let s be steps per second. Per request w seconds of a step's time are irreducible (tokens computed,
contexts read), and a step has a seconds of overhead, so the busy share of time is ``s a + λ w``, for every scheduler.
Each resource forces a least number of steps per request, s >= λ g:

    slots   g = (k + O - 1) / max_num_seqs           k: steps that a prompt takes
    tokens  g = (P + O - 1) / max_num_batched_tokens
    KV      g = M / pool tokens                      M: tokens held, summed over the steps of a request

and the busy share cannot exceed 1, hence ``λ_max = 1 / (w + a g)`` with the largest g. Necessity is exact for affine
steps; mixed batching reaches it but for granularity. For convex step times (a roofline) the average step would promise
too much; where whole prompts join, the number of prompts in a step is close to binomial, and the time of a step is
averaged over it. The token row alone is the stability condition of Li, Dai and Peng 2025 (arXiv 2504.07347).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from simqueue.errors import InputError
from simqueue.steptime.base import Batch, StepTime
from simqueue.theory.affine import Affine, Composition, fit, step_seconds
from simqueue.theory.mixture import average_seconds

Resource = Literal["slots", "tokens", "kv", "compute"]
COMPUTE_BOUND = 1.05
"""Compute is what limits where even endless slots, tokens and KV would not raise the rate by this factor."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Moments of prompt and output lengths, in tokens.

    Attributes
    ----------
    prompt, output : float
        Means, each at least 1.
    prompt_variance, output_variance : float
    product : float
        E[prompt x output].
    shorter_of_two : float
        E[min(O₁, O₂)] / E[O] of two independent outputs: 1 for a constant, 1/2 for an exponential.
    longest : callable
        n -> (E[longest of n prompts], E[longest of n outputs]); for static batching.
    """

    prompt: float
    output: float
    prompt_variance: float
    output_variance: float
    product: float
    shorter_of_two: float
    longest: Callable[[int], tuple[float, float]]

    @property
    def context(self) -> float:
        """Tokens read by all decodes of a request: E[P (O - 1)] + E[O (O - 1)] / 2."""
        return self.product - self.prompt + (self.output_variance + self.output**2 - self.output) / 2


@dataclass(frozen=True, slots=True)
class Server:
    """What limits a replica.

    Attributes
    ----------
    batching : {"mixed", "separate", "chunked", "static"}
        Whole prompts beside decodes, prompts in steps of their own, chunks beside decodes, or padded waves.
    max_num_seqs : int
    max_num_batched_tokens : int or None
        None: no limit.
    chunk_tokens : int or None
        Most prompt tokens of one request in a step.
    kv_blocks : int or None
        Blocks of the pool; None: no limit.
    block_size : int
        Tokens a block holds.
    reserve_tokens : int or "request_max" or None
        Tokens reserved per request, all that it may need, or None for blocks taken as needed.
    """

    batching: Literal["mixed", "separate", "chunked", "static"]
    max_num_seqs: int
    max_num_batched_tokens: int | None = None
    chunk_tokens: int | None = None
    kv_blocks: int | None = None
    block_size: int = 16
    reserve_tokens: int | Literal["request_max"] | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a server can carry.

    Attributes
    ----------
    max_rate_rps : float
        Requests per second beyond which the queue grows without end.
    binding : str
        What limits: slots, tokens, kv or compute; for waves: slots or kv.
    limits_rps : mapping of resource to float
        The largest rate with this limit alone; compute: with no other.
    steps_per_request : float
        g, which the binding resource forces.
    step_s : float
        Time of an average step at saturation.
    running : float
        Requests in an average step at saturation.
    """

    max_rate_rps: float
    binding: Resource
    limits_rps: Mapping[Resource, float]
    steps_per_request: float
    step_s: float
    running: float


def capacity(step: StepTime, lengths: Lengths, server: Server) -> Capacity:
    """Return the largest rate that a replica can carry.

    Parameters
    ----------
    step : StepTime
        The model itself; its coefficients are read off it.
    lengths : Lengths
    server : Server

    Raises
    ------
    InputError
        If not even one request fits.
    """
    if server.batching == "static":
        return _waves(step, lengths, server)
    forced = _forced_steps(lengths, server)
    law = fit(step, composition(lengths, max(forced.values()), server))
    limits = {name: 1 / _seconds_per_request(step, law, lengths, server, g, name) for name, g in forced.items()}
    binding: Resource = max(forced, key=lambda name: forced[name])
    rate = limits[binding]
    limits["compute"] = 1 / _seconds_per_request(step, law, lengths, server, forced[binding] / 1000, "compute")
    if law.exact:
        limits["compute"] = _inverse(_work(law, lengths))
    if limits["compute"] < COMPUTE_BOUND * rate:
        named: Resource = "compute"
    else:
        named = binding
    g = forced[binding]
    step_s = 1 / (rate * g) - _separate_steps(law, lengths, server, g) / g
    return Capacity(rate, named, limits, g, step_s, (prompt_steps(lengths, server) + lengths.output - 1) / g)


def prompt_steps(lengths: Lengths, server: Server) -> float:
    """Return k, the mean number of steps that a prompt takes."""
    if server.batching != "chunked":
        return 1.0
    room = math.inf if server.max_num_batched_tokens is None else server.max_num_batched_tokens
    # what the decodes of a full house leave; chunks are shared, hence one more than the quotient
    left = max(1.0, room - server.max_num_seqs + 1)
    by_budget = 1 + lengths.prompt / left if math.isfinite(left) else 1.0
    return max(by_budget, _pieces(lengths, server))


def _pieces(lengths: Lengths, server: Server) -> float:
    """Return into how many pieces the cap on chunks cuts an average prompt."""
    if server.batching != "chunked" or server.chunk_tokens is None:
        return 1.0
    return max(1.0, lengths.prompt / server.chunk_tokens + 0.5)


def composition(lengths: Lengths, steps_per_request: float, server: Server) -> Composition:
    """Return what an average step holds when a request takes that many steps of the server."""
    g = steps_per_request
    # the mean of past x new over a request's pieces is that of its square: E[P²] / 2 = E[P] (past + half a piece)
    mean_square = (lengths.prompt_variance + lengths.prompt**2) / (2 * lengths.prompt)
    piece = lengths.prompt / _pieces(lengths, server)
    return Composition(
        decodes=(lengths.output - 1) / g,
        context_tokens=lengths.context / g,
        prompt_tokens=lengths.prompt / g,
        prompts=1 / g,
        past_tokens=max(0.0, mean_square - piece / 2),
    )


def _forced_steps(lengths: Lengths, server: Server) -> dict[Resource, float]:
    """Return the steps per request that each resource forces."""
    k = prompt_steps(lengths, server)
    forced: dict[Resource, float] = {"slots": (k + lengths.output - 1) / server.max_num_seqs}
    if server.max_num_batched_tokens is not None:
        forced["tokens"] = (lengths.prompt + lengths.output - 1) / server.max_num_batched_tokens
    if server.kv_blocks is not None:
        forced["kv"] = _held_tokens(lengths, server, k) / _usable_tokens(lengths, server, server.kv_blocks)
    return forced


def _usable_tokens(lengths: Lengths, server: Server, kv_blocks: int) -> float:
    """Return the tokens of a full pool that are in use on average.

    Equal reservations fit a whole number of times. Otherwise the head of the queue waits until all that it takes at
    once is free, its prompt or its reservation, and half of that lies idle on average.
    """
    pool = kv_blocks * server.block_size
    if isinstance(server.reserve_tokens, int):
        each = math.ceil(server.reserve_tokens / server.block_size)
        if each > kv_blocks:
            raise InputError(f"the KV pool of {kv_blocks} blocks does not hold one reservation of {each}")
        return kv_blocks // each * each * server.block_size
    mean, variance = lengths.prompt, lengths.prompt_variance
    if server.reserve_tokens == "request_max":
        covariance = lengths.product - lengths.prompt * lengths.output
        mean += lengths.output - 1
        variance += lengths.output_variance + 2 * covariance
    return max(pool - (variance + mean**2) / (2 * mean), pool / 2)


def _held_tokens(lengths: Lengths, server: Server, k: float) -> float:
    """Return tokens in the KV cache, summed over the steps of a request."""
    steps = k + lengths.output - 1
    rounding = (server.block_size - 1) / 2
    if server.reserve_tokens is None:
        growing = lengths.product + (lengths.output_variance + lengths.output**2 - lengths.output) / 2
        return growing + (k - 1) * lengths.prompt / 2 + rounding * steps
    if server.reserve_tokens == "request_max":
        square = lengths.output_variance + lengths.output**2
        whole = lengths.product + square - lengths.output
        return whole + (k - 1) * (lengths.prompt + lengths.output - 1) + rounding * steps
    return steps * math.ceil(server.reserve_tokens / server.block_size) * server.block_size


def _work(law: Affine, lengths: Lengths) -> float:
    """Return w, the irreducible seconds per request."""
    return (
        law.per_decode_s * (lengths.output - 1)
        + law.per_prompt_token_s * lengths.prompt
        + law.per_context_token_s * lengths.context
    )


def _inverse(value: float) -> float:
    return 1 / value if value > 0 else math.inf


def _seconds_per_request(
    step: StepTime, law: Affine, lengths: Lengths, server: Server, g: float, resource: str
) -> float:
    """Return a request's share of the server's time, w + a g for affine steps."""
    separate = _separate_steps(law, lengths, server, g)
    if law.exact:
        return _work(law, lengths) + law.overhead_s * g + separate
    if server.batching == "separate":
        prompts = _prompts_together(lengths, server, g)
        at = composition(lengths, g, server)
        alone = Composition(0, 0, prompts * lengths.prompt, prompts, at.past_tokens)
        seats = _seats_in_use(lengths, server, g)
        decode = Composition(seats, at.context_tokens / at.decodes * seats, 0, 0)
        return step_seconds(step, alone) / prompts + (lengths.output - 1) / decode.decodes * step_seconds(step, decode)
    if resource in ("slots", "kv") and lengths.output > 1:
        return g * _binomial_step(step, lengths, server, g)
    return g * step_seconds(step, composition(lengths, g, server))


def _binomial_step(step: StepTime, lengths: Lengths, server: Server, g: float) -> float:
    """Return the mean time of a step in which each seat is at its prompt in some of its steps, at random.

    A cap on chunks cuts every prompt; the budget only cuts what exceeds it in a step.
    """
    from scipy.stats import binom  # noqa: PLC0415 - scipy is slow to load and not always wanted

    at, k = composition(lengths, g, server), _pieces(lengths, server)
    seats = at.decodes + k * at.prompts
    whole = max(1, math.floor(seats))
    m = np.arange(whole + 1) * seats / whole
    return average_seconds(
        step,
        seats - m,
        m,
        np.asarray(binom.pmf(np.arange(whole + 1), whole, k * at.prompts / seats)),
        context_per_decode=at.context_tokens / at.decodes,
        tokens_per_prompt=lengths.prompt / k,
        past_tokens=at.past_tokens,
        budget=server.max_num_batched_tokens,
    )


def _separate_steps(law: Affine, lengths: Lengths, server: Server, g: float) -> float:
    """Return what a prompt's own step costs in overhead, per request, over mixed batching."""
    if server.batching != "separate":
        return 0.0
    decoding = (lengths.output - 1) / _seats_in_use(lengths, server, g)
    mixed = max(g, decoding)
    return law.overhead_s * (1 / _prompts_together(lengths, server, g) + decoding - mixed)


def _seats_in_use(lengths: Lengths, server: Server, g: float) -> float:
    """Return how many seats are taken at saturation: all, or as many as the binding resource feeds."""
    return min(float(server.max_num_seqs), lengths.output / g)


def _prompts_together(lengths: Lengths, server: Server, g: float) -> float:
    """Return how many prompts share a prefill step at saturation: those whose seats became free in one decode step."""
    if lengths.output <= 1:
        together = float(server.max_num_seqs)
    else:
        seats = _seats_in_use(lengths, server, g)
        ends = 1 / max(1.0, lengths.output - 1)
        together = seats * ends / -math.expm1(seats * math.log1p(-ends)) if ends < 1 else seats
    if server.max_num_batched_tokens is not None:
        together = min(together, max(1.0, server.max_num_batched_tokens / lengths.prompt))
    return max(1.0, together)


def _waves(step: StepTime, lengths: Lengths, server: Server) -> Capacity:
    """Static batching: full waves, padded to their longest prompt and lasting for their longest output."""
    rows, binding = server.max_num_seqs, "slots"
    if server.kv_blocks is not None:
        while rows > 0 and rows * _row_blocks(lengths, server, rows) > server.kv_blocks:
            rows, binding = rows - 1, "kv"
    if rows == 0:
        raise InputError(f"the KV pool of {server.kv_blocks} blocks does not hold one average request")
    prompt, output = lengths.longest(rows)
    low = math.floor(output)
    seconds = [wave_seconds(step, rows, round(prompt), n) for n in (low, low + 1)]
    wave_s = seconds[0] + (output - low) * (seconds[1] - seconds[0])
    rate = rows / wave_s
    name: Resource = "slots" if binding == "slots" else "kv"
    return Capacity(rate, name, {name: rate}, output / rows, wave_s / output, float(rows))


def _row_blocks(lengths: Lengths, server: Server, rows: int) -> int:
    prompt, output = lengths.longest(rows)
    tokens = prompt + output - 1
    if isinstance(server.reserve_tokens, int):
        tokens = server.reserve_tokens
    return math.ceil(tokens / server.block_size)


def wave_seconds(step: StepTime, rows: int, prompt_tokens: int, output_tokens: int) -> float:
    """Return how long a padded wave of equal rows lasts: its prefill, and output_tokens - 1 decode steps."""
    prefill_s = step.seconds(Batch(prefill=((0, prompt_tokens),) * rows, sampled_rows=rows))
    if output_tokens <= 1:
        return prefill_s
    first = Batch(rows, rows, rows * (prompt_tokens + 1), sampled_rows=rows)
    return prefill_s + math.fsum(step.durations(first, output_tokens - 1))
