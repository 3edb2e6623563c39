"""The scheduler task of a course module on continuous batching and chunked prefill, with its own interface.

`Req` and `simulate` have the module's signatures and its unit, milliseconds. They run on the same engine, KV pool and
recorder as every scenario, with the module's linear step cost; nothing is simulated twice.
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
"""0.2 ms a step, 0.02 ms a prompt token, 0.4 ms if anything decodes, 0.03 ms a decoding request."""


@dataclass
class Req:
    """One request of the module; times in milliseconds.

    Attributes
    ----------
    rid : int
    arrival : float
    prompt_len, out_len : int
        Tokens to read and to make, each at least 1.
    prefill_done, generated : int
        Prompt tokens computed and tokens made; filled in by `simulate`.
    first_tok, finish : float or None
        When the first token was there and when the request left; filled in by `simulate`.
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
    """Play requests through one policy.

    Parameters
    ----------
    policy : {"static", "continuous", "chunked"}
    requests : sequence of Req
        In any order; those that arrive together keep theirs.
    max_num_seqs : int
        Requests that run at one time; in a wave, for static.
    max_num_batched_tokens : int
        Token budget of a step; static has none. It may be smaller than `max_num_seqs`: then no more requests run than
        it has tokens.
    chunk : int
        Most prompt tokens one request gets in a step; chunked only.

    Returns
    -------
    requests : list of Req
        The same objects in the order given, with `prefill_done`, `generated`, `first_tok` and `finish` filled in.
    end : float
        When the last one left, in milliseconds; 0.0 without requests.

    Raises
    ------
    InputError
        If there is no such policy, a setting is below 1, or a request has an impossible arrival or length.
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
    """Blocks that hold everybody at once, even padded to the longest prompt and output."""
    if not requests:
        return 1
    longest = max(req.prompt_len for req in requests) + max(req.out_len for req in requests)
    return len(requests) * -(-longest // BLOCK_SIZE)


def _policy(name: PolicyName, blocks: int, max_num_seqs: int, max_num_batched_tokens: int, chunk: int) -> Policy:
    kv, limits = PagedKVCache(blocks, BLOCK_SIZE), RequestLimits()
    # Who runs or is being read in takes a token of the budget each, in order, so seats beyond the budget get nothing.
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
