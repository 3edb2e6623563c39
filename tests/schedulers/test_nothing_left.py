"""What remains of requests when they have left: nothing, however they leave."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

import pytest

from simqueue.kvcache import PrefixKVCache
from simqueue.kvcache.identity import Node
from simqueue.request import Job, Request
from simqueue.schedulers import Policy
from simqueue.schedulers.keys import VllmV1Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.vllm_v0 import VllmV0
from simqueue.schedulers.vllm_v1 import VllmV1

from ..helpers.playing import make_policy, seen, simulate

SEATS = {"max_num_seqs": 6, "max_num_batched_tokens": 48}


def reachable(root: Any) -> Iterator[Any]:
    """Yield all objects that `root` keeps alive; classes, modules and the globals of functions are not its own."""
    known, todo = {id(root)}, [root]
    while todo:
        one = todo.pop()
        yield one
        for other in gc.get_referents(one.__closure__ if isinstance(one, FunctionType) else one):
            if id(other) not in known and not isinstance(other, type | ModuleType):
                known.add(id(other))
                todo.append(other)


def traffic() -> list[Request]:
    """Return requests that share prompts, wait, are preempted, and some of whose clients give up at any stage."""
    requests = []
    for index in range(16):
        prompt = ((index % 3, 0, 20), (10 + index, 0, 7 + index))
        arrival_s = 0.5 * (index // 2)
        gives_up_s = arrival_s + 1.5 + 5 * index % 28 if index % 3 else None
        length = sum(piece[2] for piece in prompt)
        stream = 100 + index % 4
        requests.append(
            Request(
                str(index), arrival_s, length, 12 + index, prompt=prompt, output_stream=stream, gives_up_s=gives_up_s
            )
        )
    return requests


def vllm(*, prefix: bool, asynchronous: bool) -> Policy:
    """Return vLLM's V1 scheduler on a pool of 18 blocks of 4 tokens."""
    flags = VllmV1Settings.model_validate({**SEATS, "async_scheduling": asynchronous})
    if not prefix:
        return make_policy(VllmV1, {**SEATS, "async_scheduling": asynchronous}, blocks=18, block_size=4)  # type: ignore[no-any-return]
    return VllmV1(flags, PrefixKVCache(18, 4, registration_lag=int(asynchronous)), RequestLimits())


def made(name: str) -> Policy:
    """Return a fresh policy on a small pool."""
    if name.startswith("vllm-v1"):
        return vllm(prefix="prefix" in name, asynchronous="async" in name)
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "chunked": ("chunked", SEATS),
        "continuous": ("continuous", SEATS),
        "separate": ("continuous", {**SEATS, "prefill": "separate"}),
        "llamacpp": ("llamacpp", {"n_parallel": 3, "n_batch": 48}),
        "static": ("static", {"max_num_seqs": 3}),
        "static, each at its end": ("static", {"max_num_seqs": 3, "release": "own_end"}),
        "static, answers whole": ("static", {"max_num_seqs": 3, "emit": "wave_end"}),
        "vllm-v0": (VllmV0, SEATS),
    }
    scheduler, keys = kinds[name]
    blocks = 60 if "static" in name or name == "llamacpp" else 18
    return make_policy(scheduler, keys, blocks=blocks, block_size=4)  # type: ignore[no-any-return] # any policy


POLICIES = [
    "chunked",
    "continuous",
    "separate",
    "llamacpp",
    "static",
    "static, each at its end",
    "static, answers whole",
    "vllm-v0",
    "vllm-v1",
    "vllm-v1 async",
    "vllm-v1 prefix",
    "vllm-v1 prefix async",
]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("name", POLICIES)
def test_policy_keeps_nothing_of_requests_that_have_left(name: str, fast: bool) -> None:
    """Finished, cancelled, preempted: when the run is over, no request can be reached from the policy or its pool."""
    policy = made(name)
    recording = simulate(policy, traffic(), fast=fast)
    status = list(seen(recording, "status").values())
    assert set(status) == {"finished", "timed_out"}
    assert not [one for one in reachable(policy) if isinstance(one, Job)]
    assert policy.kv.free == policy.kv.total


@pytest.mark.parametrize("name", [name for name in POLICIES if "prefix" in name])
def test_prefix_cache_keeps_what_is_cached_and_nothing_else(name: str) -> None:
    """Every run of tokens that is still known has cached blocks, or leads to one that has; no request uses any."""
    policy = made(name)
    simulate(policy, traffic())
    nodes = [one for one in reachable(policy.kv) if isinstance(one, Node)]
    assert len(nodes) > 2  # something is cached
    for node in nodes:
        assert node.users == 0
        assert node.extents or node.children or node.parent is None
    policy.kv.take(policy.kv.free)  # new requests need all blocks: nothing is cached any more
    (root,) = (one for one in reachable(policy.kv) if isinstance(one, Node))
    assert root.parent is None


@pytest.mark.parametrize("name", POLICIES)
def test_nothing_is_left_where_no_client_gives_up_either(name: str) -> None:
    """The same traffic with patient clients: no request can be reached, and the pool is free."""
    policy = made(name)
    recording = simulate(policy, [replace(request, gives_up_s=None) for request in traffic()])
    assert set(seen(recording, "status").values()) == {"finished"}
    assert not [one for one in reachable(policy) if isinstance(one, Job)]
    assert policy.kv.free == policy.kv.total
