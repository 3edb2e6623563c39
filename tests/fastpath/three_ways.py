"""One scenario played in three ways: equal steps folded, step by step, and walking the batch without counters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from simqueue.kvcache import ContiguousKVCache, KVCache, PagedKVCache, PrefixKVCache
from simqueue.request import Request
from simqueue.schedulers import SCHEDULERS, Policy
from simqueue.schedulers.keys import VllmV0Settings, VllmV1Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.vllm_v0 import VllmV0
from simqueue.schedulers.vllm_v1 import VllmV1
from simqueue.simulation import Recording, RunOptions, Simulation
from simqueue.steptime import StepTime

from ..helpers.recordings import differences
from .walking import walking

Way = Literal["fast", "stepped", "walked"]
WAYS: tuple[Way, ...] = ("fast", "stepped", "walked")


@dataclass(frozen=True)
class Pool:
    """A KV cache to be made."""

    layout: Literal["paged", "contiguous", "prefix"]
    blocks: int
    block_size: int
    watermark_blocks: int = 0

    def build(self, *, lag: int) -> KVCache:
        """Make it; `lag` is that of registrations."""
        sizes = self.blocks, self.block_size, self.watermark_blocks
        if self.layout == "contiguous":
            return ContiguousKVCache(*sizes)
        return PrefixKVCache(*sizes, registration_lag=lag) if self.layout == "prefix" else PagedKVCache(*sizes)


@dataclass(frozen=True)
class Case:
    """A scenario with one policy; `scheduler` is a registered name, ``vllm`` or ``vllm-v0``."""

    requests: Sequence[Request]
    scheduler: str
    keys: dict[str, Any]
    pool: Pool
    step_time: StepTime
    horizon_s: float = float("inf")

    def policy(self) -> Policy:
        """Make the policy."""
        lag = int(self.keys.get("async_scheduling", False))
        limits = RequestLimits()
        if self.scheduler == "vllm":
            return VllmV1(VllmV1Settings.model_validate(self.keys), self.pool.build(lag=lag), limits)
        if self.scheduler == "vllm-v0":
            return VllmV0(VllmV0Settings.model_validate(self.keys), self.pool.build(lag=0), limits)
        made: Callable[..., Policy] = SCHEDULERS[self.scheduler]
        settings = SCHEDULERS[self.scheduler].Settings.model_validate(self.keys)
        return made(settings, self.pool.build(lag=lag), limits)

    def play(self, way: Way, *, check: bool = False) -> Recording:
        """Play it one way."""
        policy = walking(self.policy()) if way == "walked" else self.policy()
        options = RunOptions(self.horizon_s, fast=way == "fast", check=check)
        return Simulation(list(self.requests), policy, self.step_time, options).run()


def assert_three_ways_agree(case: Case, *, check: bool = True) -> None:
    """Compare every table of the three ways, byte for byte."""
    fast = case.play("fast", check=check)
    assert differences(fast, case.play("stepped", check=check)) == []
    assert differences(fast, case.play("walked", check=check)) == []
