"""The two products as routers of a scenario, and as routers of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import ClassVar

from simqueue.errors import InputError
from simqueue.routing.base import Age, Recovery, Router, Signal
from simqueue.routing.gateway.bucket import Bucket
from simqueue.routing.gateway.cache_aware import CacheAware
from simqueue.routing.gateway.consistent_hash import ConsistentHash
from simqueue.routing.gateway.front import Front, NoText
from simqueue.routing.gateway.kv_aware import KvAware
from simqueue.routing.gateway.manual import Manual
from simqueue.routing.gateway.pairs import LeastIfImbalanced, PairRouter
from simqueue.routing.gateway.power_of_two import PowerOfTwo
from simqueue.routing.gateway.rules import SGLANG, VLLM, Rules
from simqueue.routing.gateway.settings import SglangSettings, VllmRouterSettings
from simqueue.routing.gateway.sticky import StickyLeastLoaded
from simqueue.routing.plain import NoKeys, RandomChoice, RoundRobin
from simqueue.routing.several import Several
from simqueue.routing.texts import DIGITS

RECOVERY = Recovery(
    retries=5,
    first_wait_s=0.05,
    wait_factor=1.5,
    longest_wait_s=30.0,
    jitter=0.2,
    check_every_s=60.0,
    check_timeout_s=5.0,
    check_failures=3,
    check_successes=2,
    breaker_failures=10,
    breaker_window_s=120.0,
    breaker_open_s=60.0,
    breaker_successes=3,
    source="default values of sglang-router 0.3.2 and vllm-router 0.1.17",
)
"""What both programs do about failures."""


PLAIN: Mapping[str, type[Router]] = {"round_robin": RoundRobin, "random": RandomChoice}
"""Policies that look at nothing."""


class Gateway(Several):
    """What both programs have in common.

    Loads that workers report are polled every 30 s (sglang, ``worker_startup_check_interval_secs``, which the load
    monitor uses).
    """

    recovery: ClassVar[Recovery] = RECOVERY
    ages: ClassVar[Mapping[Signal, Age]] = {Signal.TOKENS: Age(30.0)}


class SglangRouter(Gateway):
    """sglang-router, the router of SGLang."""

    Settings = SglangSettings
    summary: ClassVar[str] = "sglang-router by version: cache_aware and its other policies"
    checked: ClassVar[str] = "recorded decisions of 0.1.9, 0.2.3, 0.2.4, 0.3.2; cuts of bucket: its log"

    def made(self) -> Router:
        """Return the policy that the keys name."""
        if not isinstance(self.settings, SglangSettings):
            raise TypeError(f"{type(self.settings).__name__} are not the keys of sglang-router")
        return sglang_policy(self.settings, self.random)


class VllmRouter(Gateway):
    """vllm-router, the router of vLLM."""

    Settings = VllmRouterSettings
    summary: ClassVar[str] = "vllm-router by version: cache_aware, consistent_hash and its other policies"
    checked: ClassVar[str] = "recorded decisions of 0.1.12, 0.1.17; kv_aware without KV events"

    def made(self) -> Router:
        """Return the policy that the keys name."""
        if not isinstance(self.settings, VllmRouterSettings):
            raise TypeError(f"{type(self.settings).__name__} are not the keys of vllm-router")
        return vllm_policy(self.settings, self.random)


def sglang_policy(keys: SglangSettings, random: Random, front: Front | None = None) -> Router:
    """Return the policy that the keys name; `front`: what it sees of requests, if not what a scenario has."""
    front = front or Front(keys.chars_per_token)
    rules = SGLANG[keys.version]
    match keys.policy:
        case "round_robin" | "random":
            return PLAIN[keys.policy](NoKeys(), random)
        case "power_of_two":
            return PowerOfTwo(keys, random, front, rules)
        case "manual":
            return Manual(keys, random, front)
        case "bucket":
            return Bucket(keys, random, front)
        case "cache_aware":
            return CacheAware(keys, random, front, rules)


def vllm_policy(keys: VllmRouterSettings, random: Random, front: Front | None = None) -> Router:
    """Return the policy that the keys name; `front`: what it sees of requests, if not what a scenario has."""
    rules = VLLM[keys.version]
    front = front or Front((DIGITS if keys.tokenized else 0) if rules.by_tokens else keys.chars_per_token)
    match keys.policy:
        case "round_robin" | "random":
            return PLAIN[keys.policy](NoKeys(), random)
        case "power_of_two":
            return PowerOfTwo(keys, random, front, rules)
        case "consistent_hash":
            return ConsistentHash(keys, random, front)
        case "sticky_least_loaded":
            return StickyLeastLoaded(keys, random, front)
        case "kv_aware":
            return KvAware(keys, random, front)
        case "cache_aware":
            return CacheAware(keys, random, front, rules)


def sglang_pair(
    prefill: SglangSettings, decode: SglangSettings, random: Random, front: Front | None = None
) -> PairRouter:
    """Return the router of sglang-router for pools of workers; there, `cache_aware` has no tree.

    Raises
    ------
    InputError
        If the version is not the newest: its rules for pools are not known.
    """
    _check_pools("sglang-router", prefill.version, SGLANG)
    return PairRouter(_sglang_pool(prefill, random, front), _sglang_pool(decode, random, front))


def vllm_pair(
    prefill: VllmRouterSettings, decode: VllmRouterSettings, random: Random, front: Front | None = None
) -> PairRouter:
    """Return the router of vllm-router for pools of workers; the decode pool gets no text.

    Raises
    ------
    InputError
        If the version is not the newest: its rules for pools are not known.
    """
    _check_pools("vllm-router", prefill.version, VLLM)
    return PairRouter(vllm_policy(prefill, random, front), vllm_policy(decode, random, NoText(front or Front())))


def _sglang_pool(keys: SglangSettings, random: Random, front: Front | None) -> Router:
    if keys.policy == "cache_aware":
        return LeastIfImbalanced(keys, random, front or Front())
    return sglang_policy(keys, random, front)


def _check_pools(product: str, version: str, known: Mapping[str, Rules]) -> None:
    newest = list(known)[-1]
    if version != newest:
        raise InputError(f"{product} {version}: rules for prefill and decode pools are known of version {newest} only")
