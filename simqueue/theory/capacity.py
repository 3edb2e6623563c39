"""The capacity law: the largest arrival rate that a batching server can carry, and what limits it.

The law is rate conservation. Let s be the number of steps per second. A step has an overhead of a seconds. A request
needs w seconds of step time that no scheduler can save, to compute its tokens and to read its context. So the busy
share of time is ``s a + λ w`` with every scheduler. Each resource requires a minimum number g of steps per request,
s >= λ g:

    slots   g = (k + O - 1) / max_num_seqs           k: steps per prompt (one more if two steps are in flight)
    tokens  g = (P + O - 1) / max_num_batched_tokens
    KV      g = M / pool tokens                      M: tokens held, summed over the steps of a request

Prompt tokens that a prefix cache has are not computed: they are part of the context that is read, but not of P. In the
pool, tokens that several running requests have in common count once.

The busy share is at most 1, hence ``λ_max = 1 / (w + a g)`` with the largest g. For affine steps this is an exact upper
bound, and mixed batching reaches it up to rounding. For convex step times (a roofline) the duration of the average step
is too small. If whole prompts join the batch, the number of prompts in a step is nearly binomial, and the duration is
averaged over that distribution. With the tokens alone, the law is the stability condition of Li, Dai and Peng 2025
(arXiv 2504.07347).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from simqueue.errors import InputError
from simqueue.steptime.base import StepTime
from simqueue.theory.affine import Affine, Composition, fit, step_seconds
from simqueue.theory.lengths import Lengths
from simqueue.theory.limits import COMPUTE_BOUND, Capacity, Resource, Server
from simqueue.theory.mixture import StepSizes, pieces_of, steps_seconds
from simqueue.theory.waves import one_by_one, waves

_STEPS, _PROMPTS = 2000, 4000
"""Over so many random steps or more, with so many prompts or more, a duration is averaged."""
_LEAST_STEPS, _MOST_STEPS, _MOST_PROMPTS = 100, 200_000, 100_000
"""Bounds of them, so that it takes some milliseconds."""
_MOST_IN_A_ROW = 1000
"""Prefill steps after one decode step; more of them are empty."""
_MANY_SLOTS = 4096
"""With more slots, the number of prompts in a step hardly varies, so the duration of the mean step is enough."""


def capacity(step: StepTime, lengths: Lengths, server: Server) -> Capacity:
    """Return the largest rate that a replica can carry.

    Parameters
    ----------
    step : StepTime
        The step-time model, from which the coefficients are fitted.
    lengths : Lengths
    server : Server

    Raises
    ------
    InputError
        If the KV pool does not hold one request.
    """
    if server.max_num_seqs == 1 and lengths.cached is None:
        return one_by_one(step, lengths, server)
    if server.batching == "static":
        return waves(step, lengths, server)
    required = _required_steps(lengths, server)
    binding: Resource = max(required, key=lambda name: required[name])
    g = required[binding]
    affine = fit(step, composition(lengths, g, server))
    limits = {
        name: 1 / _seconds_per_request(step, affine, lengths, _without_budget_below(required, n, server), n, name)
        for name, n in required.items()
    }
    rate = limits[binding]
    limits["compute"] = (
        _inverse(_work(affine, lengths))
        if affine.exact
        else 1 / _seconds_per_request(step, affine, lengths, server, g / 1000, "compute")
    )
    # The durations are approximate; what requires fewer steps does not limit more.
    limits = {name: max(rate, limit) for name, limit in limits.items()}
    named: Resource = "compute" if limits["compute"] < COMPUTE_BOUND * rate else binding
    step_s = 1 / (rate * g) - _separate_steps(affine, lengths, server, g) / g
    return Capacity(rate, named, limits, g, step_s, (prompt_steps(lengths, server) + lengths.output - 1) / g)


def _without_budget_below(required: Mapping[Resource, float], steps: float, server: Server) -> Server:
    """Return the server, without its token budget if the budget requires more than this many steps per request."""
    return replace(server, max_num_batched_tokens=None) if required.get("tokens", 0.0) > steps else server


def prompt_steps(lengths: Lengths, server: Server) -> float:
    """Return k, the mean number of steps that a prompt takes."""
    if server.batching != "chunked":
        return 1.0
    room = math.inf if server.max_num_batched_tokens is None else server.max_num_batched_tokens
    # `left` is what the decodes of a full batch leave of the budget. Two prompts can share a step, so a prompt takes
    # one more step than the quotient.
    left = max(1.0, room - server.max_num_seqs + 1)
    by_budget = min(1 + lengths.new / left, max(1.0, lengths.new))  # a piece has at least one token
    return max(by_budget, _pieces(lengths, server))


def _pieces(lengths: Lengths, server: Server) -> float:
    """Return the mean number of pieces into which `chunk_tokens` cuts a prompt."""
    if server.batching != "chunked" or server.chunk_tokens is None:
        return 1.0
    return _cuts(lengths, server.chunk_tokens)


def _cuts(lengths: Lengths, tokens: float) -> float:
    """Return the mean number of pieces of up to `tokens` tokens in a prompt: half a piece more than the quotient."""
    if lengths.new_square <= lengths.new**2:  # equal prompts
        return float(max(1, math.ceil(lengths.new / tokens)))
    return max(1.0, min(lengths.new / tokens + 0.5, lengths.new))


def composition(lengths: Lengths, steps_per_request: float, server: Server) -> Composition:
    """Return the content of an average step if the server makes this many steps per request."""
    g = steps_per_request
    # An average step has pieces of several prompts, or a part of one.
    piece = lengths.new / max(g, _pieces(lengths, server))
    return Composition(
        decodes=(lengths.output - 1) / g,
        context_tokens=lengths.context / g,
        prompt_tokens=lengths.new / g,
        prompts=1 / g,
        past_tokens=past_of(lengths, piece),
    )


def past_of(lengths: Lengths, piece: float) -> float:
    """Return the tokens that precede a piece of a prompt of so many tokens, as tokens meet it.

    Summed over the pieces of a prompt, past x new is nearly half its square: E[P²] / 2 = E[P] (past + half a piece).
    """
    return max(0.0, lengths.mean_position - piece / 2)


def _required_steps(lengths: Lengths, server: Server) -> dict[Resource, float]:
    """Return the steps per request that each resource requires."""
    k = prompt_steps(lengths, server)
    required: dict[Resource, float] = {"slots": _steps_held(lengths, server, k) / server.max_num_seqs}
    if server.max_num_batched_tokens is not None:
        required["tokens"] = (lengths.new + lengths.output - 1) / server.max_num_batched_tokens
    if server.kv_blocks is not None:
        required["kv"] = _kv_steps(lengths, server, k, server.kv_blocks)
    return required


def _steps_held(lengths: Lengths, server: Server, k: float) -> float:
    """Return the mean number of steps for which a request has its slot."""
    return k + lengths.output - 1 + _last_steps(lengths, server)


def _last_steps(lengths: Lengths, server: Server) -> int:
    """Return for how many steps a request has its slot after its last token."""
    budget = server.max_num_batched_tokens
    if lengths.output <= 1 and (budget is None or server.max_num_seqs * lengths.new <= budget):
        return 0  # all leave together, so no step is planned before they have left
    return server.depth - 1


def _kv_steps(lengths: Lengths, server: Server, k: float, kv_blocks: int) -> float:
    """Return the steps per request that the pool requires; tokens shared by running requests are held once."""
    held, usable = _held_tokens(lengths, server, k), _usable_tokens(lengths, server, kv_blocks)
    if lengths.cached is None:
        return held / usable
    steps = _steps_held(lengths, server, k)
    each, shared = held / steps, lengths.cached.shared

    low, high = 1.0, max(1.0, usable / max(1.0, each - shared(math.inf)))
    while high - low > 1e-9 * high:
        running = (low + high) / 2
        if running * (each - shared(running)) < usable:
            low = running
        else:
            high = running
    return steps / high


def _usable_tokens(lengths: Lengths, server: Server, kv_blocks: int) -> float:
    """Return the mean number of tokens in use in a full pool.

    With equal reservations it is a whole number of them. Otherwise the first waiting request needs its prompt or its
    reservation at once, and half of that is idle on average while it waits.
    """
    pool = kv_blocks * server.block_size
    if isinstance(server.reserve_tokens, int):
        each = math.ceil(server.reserve_tokens / server.block_size)
        if each > kv_blocks:
            raise InputError(f"the KV pool of {kv_blocks} blocks cannot hold one reservation of {each} blocks")
        return kv_blocks // each * each * server.block_size
    mean, square = lengths.new, lengths.new_square
    if server.reserve_tokens == "request_max":
        covariance = lengths.product - lengths.prompt * lengths.output
        mean = lengths.prompt + (lengths.output - 1)
        square = lengths.prompt_variance + (lengths.output_variance + 2 * covariance) + mean**2
    return max(pool - square / (2 * mean), pool / 2)


def _held_tokens(lengths: Lengths, server: Server, k: float) -> float:
    """Return the tokens that a request holds in the KV cache, summed over its steps."""
    steps = _steps_held(lengths, server, k)
    rounding = (server.block_size - 1) / 2
    last = _last_steps(lengths, server) * (lengths.prompt + lengths.output - 1)
    if server.reserve_tokens is None:
        growing = lengths.product + (lengths.output_variance + lengths.output**2 - lengths.output) / 2
        return growing + (k - 1) * (lengths.prompt - lengths.new / 2) + rounding * steps + last
    if server.reserve_tokens == "request_max":
        square = lengths.output_variance + lengths.output**2
        whole = lengths.product + square - lengths.output
        return whole + (k - 1) * (lengths.prompt + lengths.output - 1) + rounding * steps + last
    return steps * math.ceil(server.reserve_tokens / server.block_size) * server.block_size


def _work(affine: Affine, lengths: Lengths) -> float:
    """Return w, the seconds per request that no scheduler can save."""
    return (
        affine.per_decode_s * (lengths.output - 1)
        + affine.per_prompt_token_s * lengths.new
        + affine.per_context_token_s * lengths.context
    )


def _inverse(value: float) -> float:
    return 1 / value if value > 0 else math.inf


def _seconds_per_request(
    step: StepTime, affine: Affine, lengths: Lengths, server: Server, g: float, resource: str
) -> float:
    """Return the server's time per request in seconds: w + a g for affine steps."""
    separate = _separate_steps(affine, lengths, server, g)
    if affine.exact:
        return _work(affine, lengths) + affine.overhead_s * g + separate
    if server.batching == "separate":
        prompts = prompts_together(lengths, server, g)
        at = composition(lengths, g, server)
        prompt_s = _prompt_step(step, lengths, server, at, prompts) / prompts
        if lengths.output <= 1:
            return prompt_s
        slots = _slots_in_use(lengths, server, g)
        decode = Composition(slots, at.context_tokens / at.decodes * slots, 0, 0)
        return prompt_s + (lengths.output - 1) / decode.decodes * step_seconds(step, decode)
    if resource in ("slots", "kv"):
        return g * _binomial_step(step, lengths, server, g)
    return g * step_seconds(step, composition(lengths, g, server))


def _binomial_step(step: StepTime, lengths: Lengths, server: Server, g: float) -> float:
    """Return the mean duration of a step in which each slot computes its prompt in some of its steps, at random.

    `chunk_tokens` cuts every prompt; the budget cuts only the tokens above it in a step.
    """
    at, k = composition(lengths, g, server), _pieces(lengths, server)
    slots = at.decodes + k * at.prompts
    if slots > _MANY_SLOTS:
        return step_seconds(step, at)
    whole = max(1, math.floor(slots))
    begin = k * at.prompts / whole
    m = np.random.default_rng(0).binomial(whole, min(1.0, begin), _random_steps(k * at.prompts))
    return steps_seconds(step, _sizes(lengths, server, at), np.maximum(0, slots - m), m)


def _prompt_step(step: StepTime, lengths: Lengths, server: Server, at: Composition, prompts: float) -> float:
    """Return the mean duration of a separate step of so many prompts."""
    m = np.floor(np.arange(1, _random_steps(prompts) + 1) * prompts).astype(int)
    return steps_seconds(step, _sizes(lengths, server, at), np.zeros(len(m)), np.diff(m, prepend=0))


def _random_steps(prompts: float) -> int:
    """Return over how many random steps with so many prompts each a duration is averaged."""
    enough = max(_STEPS, _PROMPTS / prompts)
    return int(min(enough, _MOST_STEPS, max(_LEAST_STEPS, _MOST_PROMPTS / prompts)))


def _sizes(lengths: Lengths, server: Server, at: Composition) -> StepSizes:
    """Return the mean sizes of what a step is made of, and how prompts or their pieces vary."""
    k = _pieces(lengths, server)
    prompts = lengths.longest(1)[0] if lengths.cached is None and lengths.prompt_variance > 0 else None
    if prompts is not None and server.chunk_tokens is not None and k > 1:
        prompts = pieces_of(prompts, server.chunk_tokens)
    return StepSizes(
        context_per_decode=at.context_tokens / at.decodes if at.decodes else 0.0,
        tokens_per_prompt=lengths.new / k,
        past_tokens=past_of(lengths, lengths.new / k),
        budget=server.max_num_batched_tokens,
        lengths=prompts,
        whole=k == 1,
    )


def _separate_steps(affine: Affine, lengths: Lengths, server: Server, g: float) -> float:
    """Return the overhead per request, in seconds, that separate prefill steps add to that of mixed batching."""
    if server.batching != "separate":
        return 0.0
    decoding = (lengths.output - 1) / _slots_in_use(lengths, server, g)
    mixed = max(g, decoding)
    return affine.overhead_s * (1 / prompts_together(lengths, server, g) + decoding - mixed)


def _slots_in_use(lengths: Lengths, server: Server, g: float) -> float:
    """Return the mean number of slots in use at saturation: all, or fewer if another resource is the limit."""
    return min(float(server.max_num_seqs), lengths.output / g)


def prompts_together(lengths: Lengths, server: Server, g: float) -> float:
    """Return the mean number of prompts in a prefill step at saturation.

    They are the prompts that take the slots which became free in one decode step. Those of them that get one token only
    are done with the prefill step, and one more prefill step follows for the prompts that take their slots.
    """
    if lengths.output <= 1:
        together = float(server.max_num_seqs)
    else:
        slots = _slots_in_use(lengths, server, g)
        one_token = float(np.mean(lengths.longest(1)[1] < 1.5))
        admitted = slots / (lengths.output - 1)  # per decode step
        ends = min(1.0, admitted * (1 - one_token) / slots)
        again = admitted * (1 - one_token) * one_token ** np.arange(1, _MOST_IN_A_ROW)
        steps = -math.expm1(slots * math.log1p(-ends)) if ends < 1 else 1.0
        together = admitted / (steps + float(-np.expm1(-again).sum()))
    if server.max_num_batched_tokens is not None:
        together = min(together, max(1.0, server.max_num_batched_tokens / lengths.new))
    return max(1.0, together)
