"""Tiny scenarios worked out by hand: requests a, b, c ..., steps of one second unless said otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from simqueue.kvcache import ContiguousKVCache, KVCache, PagedKVCache
from simqueue.request import Request
from simqueue.schedulers import SCHEDULERS, Policy
from simqueue.schedulers.limits import RequestLimits
from simqueue.simulation import Recording, RunOptions, Simulation
from simqueue.steptime import StepTime
from simqueue.steptime.linear import ConstantStepTime

from .recordings import differences

NAMES = "abcdefgh"
ONE_SECOND = ConstantStepTime(1.0)
Asked = tuple[float, int, int]
"""arrival_s, prompt_tokens, output_tokens."""


def requests_of(asked: Sequence[Asked | Request]) -> list[Request]:
    """Return requests named a, b, c ... in the order given."""
    return [one if isinstance(one, Request) else Request(NAMES[index], *one) for index, one in enumerate(asked)]


def make_policy(
    scheduler: str | type[Policy],
    keys: dict[str, Any] | None = None,
    *,
    blocks: int = 1000,
    block_size: int = 16,
    contiguous: bool = False,
    reserve_tokens: int | None = None,
    reject: bool = True,
) -> Any:
    """Return a fresh policy, by name or class, with a pool of its own."""
    kv: KVCache = PagedKVCache(blocks, block_size)
    if contiguous:
        kv = ContiguousKVCache(blocks, block_size, reserve_tokens=reserve_tokens)
    policy_class: Any = SCHEDULERS[scheduler] if isinstance(scheduler, str) else scheduler
    return policy_class(policy_class.Settings.model_validate(keys or {}), kv, RequestLimits(None, reject))


def simulate(
    policy: Policy,
    asked: Sequence[Asked | Request],
    *,
    step_time: StepTime = ONE_SECOND,
    horizon_s: float = float("inf"),
    fast: bool = True,
) -> Recording:
    """Play with every check on."""
    options = RunOptions(horizon_s, fast=fast, check=True)
    return Simulation(requests_of(asked), policy, step_time, options).run()


def both_ways(made: Callable[[], Policy], asked: Sequence[Asked | Request], **options: Any) -> Recording:
    """Play fresh policies with folded steps and step by step: both must leave the same recording."""
    folded, stepped = (simulate(made(), asked, fast=fast, **options) for fast in (True, False))
    assert differences(folded, stepped) == []
    return folded


def play(
    scheduler: str | type[Policy],
    keys: dict[str, Any],
    asked: Sequence[Asked | Request],
    *,
    step_time: StepTime = ONE_SECOND,
    horizon_s: float = float("inf"),
    **pool: Any,
) -> Recording:
    """Play a policy, made by name or class, both ways."""
    return both_ways(lambda: make_policy(scheduler, keys, **pool), asked, step_time=step_time, horizon_s=horizon_s)


def column(recording: Recording, name: str) -> list[Any]:
    """Return one column of the requests, None for what never happened."""
    values = recording.requests[name].tolist()
    return [None if isinstance(value, float) and np.isnan(value) else value for value in values]


def seen(recording: Recording, *names: str) -> dict[str, Any]:
    """Return what happened to each request, by its name; by default its first token and its finish, in seconds."""
    names = names or ("first_token_s", "finish_s")
    columns = [column(recording, name) for name in names]
    values = columns[0] if len(names) == 1 else list(zip(*columns, strict=True))
    return dict(zip(column(recording, "request_id"), values, strict=True))


def rows(recording: Recording, *names: str) -> list[tuple[Any, ...]]:
    """Return the chosen columns of the steps table."""
    return list(zip(*(recording.steps[name].tolist() for name in names), strict=True))
