"""The scheduler task of a course module on continuous batching and chunked prefill, with its own interface.

`Req` and `simulate` have the module's signatures; times are in milliseconds. They run on the same simulation, KV pool
and recorder as every scenario, with the module's linear step cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal

from simqueue.errors import InputError
from simqueue.kvcache import PagedKVCache
from simqueue.names import unknown
from simqueue.request import Request
from simqueue.schedulers import Chunked, Continuous, Policy, Static
from simqueue.schedulers.keys import ChunkedSettings, ContinuousSettings, StaticSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.simulation import RunOptions, Simulation
from simqueue.steptime.linear import LinearStepTime

PolicyName = Literal["static", "continuous", "chunked"]
POLICIES: tuple[PolicyName, ...] = ("static", "continuous", "chunked")
MS_PER_S = 1000.0
BLOCK_SIZE = 16

STEP_COST = LinearStepTime(
    overhead_s=0.2e-3, per_prefill_token_s=0.02e-3, decode_base_s=0.4e-3, per_decode_s=0.03e-3, per_context_token_s=0.0
)
"""0.2 ms per step, 0.02 ms per prompt token, 0.4 ms if any request decodes, 0.03 ms per decoding request."""


@dataclass
class Req:
    """One request of the module; times in milliseconds.

    Attributes
    ----------
    rid : int
    arrival : float
    prompt_len, out_len : int
        Prompt and output tokens, each at least 1.
    prefill_done, generated : int
        Prompt tokens computed and output tokens generated; set by `simulate`.
    first_tok, finish : float or None
        Times of the first token and of the end of the request; set by `simulate`.
    """

    rid: int
    arrival: float
    prompt_len: int
    out_len: int
    prefill_done: int = 0
    generated: int = 0
    first_tok: float | None = None
    finish: float | None = None


def simulate(
    policy: PolicyName,
    requests: Sequence[Req],
    *,
    max_num_seqs: int = 32,
    max_num_batched_tokens: int = 8192,
    chunk: int = 512,
) -> tuple[list[Req], float]:
    """Simulate requests under one policy.

    Parameters
    ----------
    policy : {"static", "continuous", "chunked"}
    requests : sequence of Req
        In any order; requests that arrive at the same time keep their order.
    max_num_seqs : int
        Most requests that run at the same time; for static, most requests in a wave.
    max_num_batched_tokens : int
        Token budget of a step; static has none. If it is smaller than `max_num_seqs`, it also limits the requests that
        run.
    chunk : int
        Most prompt tokens per request and step; chunked only.

    Returns
    -------
    requests : list of Req
        The same objects in the given order, with `prefill_done`, `generated`, `first_tok` and `finish` set.
    end : float
        End of the last request, in milliseconds; 0.0 without requests.

    Raises
    ------
    InputError
        If the policy is unknown, a setting is below 1, or an arrival or a length of a request is out of range.
    """
    _check_settings(max_num_seqs=max_num_seqs, max_num_batched_tokens=max_num_batched_tokens, chunk=chunk)
    _check_requests(requests)
    chosen = _policy(policy, _ample_blocks(requests), max_num_seqs, max_num_batched_tokens, chunk)
    by_arrival = sorted(requests, key=lambda req: req.arrival)
    asked = [
        Request(str(index), req.arrival / MS_PER_S, req.prompt_len, req.out_len) for index, req in enumerate(by_arrival)
    ]
    recording = Simulation(asked, chosen, STEP_COST, RunOptions()).run()
    columns = recording.requests
    for req, first_s, finish_s in zip(by_arrival, columns["first_token_s"], columns["finish_s"], strict=True):
        req.prefill_done, req.generated = req.prompt_len, req.out_len
        req.first_tok, req.finish = float(first_s) * MS_PER_S, float(finish_s) * MS_PER_S
    return list(requests), recording.end_s * MS_PER_S


def _check_settings(**settings: int) -> None:
    for name, value in settings.items():
        if not _is_count(value):
            raise InputError(f"{name} = {value!r}: must be a whole number of at least 1")


def _check_requests(requests: Sequence[Req]) -> None:
    for index, req in enumerate(requests):
        where = f"requests[{index}] (rid {req.rid})"
        if not isinstance(req.arrival, Real) or not 0 <= req.arrival < math.inf:
            raise InputError(f"{where}: arrival = {req.arrival!r}: must be a finite number of ms, at least 0")
        for name, tokens in (("prompt_len", req.prompt_len), ("out_len", req.out_len)):
            if not _is_count(tokens):
                raise InputError(f"{where}: {name} = {tokens!r}: must be a whole number of at least 1")


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _ample_blocks(requests: Sequence[Req]) -> int:
    """Return enough blocks for all requests at once, padded to the longest prompt and output."""
    if not requests:
        return 1
    longest = max(req.prompt_len for req in requests) + max(req.out_len for req in requests)
    return len(requests) * -(-longest // BLOCK_SIZE)


def _policy(name: PolicyName, blocks: int, max_num_seqs: int, max_num_batched_tokens: int, chunk: int) -> Policy:
    kv, limits = PagedKVCache(blocks, BLOCK_SIZE), RequestLimits()
    # Each running request takes at least one token of the budget, so more seats than tokens would stay unused.
    seats, budget = int(min(max_num_seqs, max_num_batched_tokens)), int(max_num_batched_tokens)
    if name == "static":
        return Static(StaticSettings(max_num_seqs=int(max_num_seqs), emit="wave_end"), kv, limits)
    if name == "continuous":
        mixed = ContinuousSettings(max_num_seqs=seats, max_num_batched_tokens=budget)
        return Continuous(mixed, kv, limits)
    if name == "chunked":
        cut = ChunkedSettings(max_num_seqs=seats, max_num_batched_tokens=budget, chunk_tokens=int(chunk))
        return Chunked(cut, kv, limits)
    raise InputError(unknown("policy", name, POLICIES))
