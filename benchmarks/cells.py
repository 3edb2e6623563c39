"""What is measured. A cell has a name, traffic, a policy with its KV pool, and a way to simulate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmarks import traffic
from simqueue.engines.sglang import rules_of, tree_of
from simqueue.engines.sglang_facts import sglang_versions
from simqueue.kvcache import KVCache, PagedKVCache, PrefixKVCache
from simqueue.kvcache.radix import RadixKVCache
from simqueue.kvcache.radixtree import RadixRules
from simqueue.schedulers import Policy
from simqueue.schedulers.chunked import Chunked
from simqueue.schedulers.keys import ChunkedSettings, SglangSettings, VllmV1Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.sglang import Sglang
from simqueue.schedulers.vllm_v1 import VllmV1
from simqueue.simulation import RunOptions, Simulation
from simqueue.simulation.columns import Sinks
from simqueue.simulation.simulate_fleet import FleetSimulation
from simqueue.steptime import StepTime
from simqueue.steptime.linear import LinearStepTime
from simqueue.traffic import RequestStream
from simqueue.traffic import Traffic as OfferedTraffic
from tests.fastpath.walking import walking

Way = Literal["fast", "stepped", "walk"]
Traffic = Callable[[float], RequestStream]
"""Returns requests, given 70 % of the saturation rate of W1, in requests/s."""

STEP_TIME: StepTime = LinearStepTime(0.006, 5.0e-5, 0.0, 3.0e-5, 4.0e-8)
BLOCKS, BLOCK_SIZE = 6886, 16
LOAD = 0.7


@dataclass(frozen=True)
class Cell:
    """One measurement.

    Attributes
    ----------
    name : str
    requests : callable
    way : {"fast", "stepped", "walk"}
    keys : dict
        Settings of the policy that W1 does not have.
    blocks : int
    prefix_caching, asynchronous, streamed : bool
    sglang : str or None
        The version of SGLang whose scheduler is measured, with 128 running requests and its own chunks.
    """

    name: str
    requests: Traffic
    way: Way = "fast"
    keys: dict[str, Any] = field(default_factory=dict)
    blocks: int = BLOCKS
    prefix_caching: bool = False
    asynchronous: bool = False
    streamed: bool = False
    sglang: str | None = None

    def simulation(self, requests: RequestStream, sinks: Sinks | None = None) -> Simulation | FleetSimulation:
        """Return the run that is measured."""
        return Simulation(OfferedTraffic(requests), self.policy(), STEP_TIME, self.options(), sinks=sinks)

    def options(self) -> RunOptions:
        """Return how it is run."""
        return RunOptions(fast=self.way == "fast")

    def policy(self) -> Policy:
        """Make the policy with its pool."""
        if self.sglang is not None:
            return self._sglang(self.sglang)
        made = self._asynchronous() if self.asynchronous else self._chunked()
        return walking(made) if self.way == "walk" else made

    def _chunked(self) -> Policy:
        keys = {"max_num_batched_tokens": 512, "max_num_seqs": 128} | self.keys
        return Chunked(ChunkedSettings.model_validate(keys), self._pool(), RequestLimits())

    def _asynchronous(self) -> Policy:
        keys = {"max_num_batched_tokens": 512, "max_num_seqs": 128, "async_scheduling": True} | self.keys
        return VllmV1(VllmV1Settings.model_validate(keys), self._pool(lag=1), RequestLimits())

    def _sglang(self, version: str) -> Policy:
        facts = sglang_versions()[version]
        pool = RadixKVCache(self.blocks * BLOCK_SIZE, 1, RadixRules("lru", *tree_of(facts)))
        flags = SglangSettings(max_running_requests=128, schedule_policy=facts.schedule_policy)
        return Sglang(flags, pool, RequestLimits(), rules_of(facts))

    def _pool(self, lag: int = 0) -> KVCache:
        if self.prefix_caching:
            return PrefixKVCache(self.blocks, BLOCK_SIZE, registration_lag=lag)
        return PagedKVCache(self.blocks, BLOCK_SIZE)


def w1(n: int) -> Traffic:
    """Return W1 with `n` requests, generated before the run, as the `run` command does."""
    return lambda rate_rps: list(traffic.Poisson(n, rate_rps))


def growing_w1(n: int) -> Traffic:
    """Return W1 with `n` requests, generated during the run to save memory."""
    return lambda rate_rps: traffic.Poisson(n, rate_rps)


def saturation(n: int) -> Cell:
    """Return the cell that measures the saturation rate of W1's server."""
    return Cell("W1, all at once", lambda _: traffic.at_once(n))


def cells(*, quick: bool) -> list[Cell]:
    """Return all cells; `quick` makes them smaller."""
    n = 2_000 if quick else 10_000
    growth = [1_000, 10_000] if quick else [10_000, 100_000, 1_000_000]
    seats = [16, 1024] if quick else [16, 64, 256, 1024]
    steps = 5_000 if quick else 30_000
    rows = 2_000 if quick else None
    return [
        Cell("W1", w1(n)),
        Cell("W1", w1(n), "stepped"),
        Cell("W1", w1(n), "walk"),
        Cell("W1, prefix caching", w1(n), prefix_caching=True),
        Cell("W1, asynchronous vLLM V1", w1(n), asynchronous=True),
        Cell("W1, asynchronous, prefix caching", w1(n), asynchronous=True, prefix_caching=True),
        *(Cell(f"W1, SGLang {version}", w1(n), sglang=version) for version in ("0.4.0", "0.5.6", "0.5.23")),
        Cell("multi-turn, prefix caching", lambda rate: traffic.turns(n, rate), prefix_caching=True),
        Cell("W1, low load (1/10)", lambda rate: list(traffic.Poisson(n, rate / 10))),
        Cell("W1, KV thrash (1/6 of the pool)", w1(n), blocks=BLOCKS // 6),
        Cell("W1, KV thrash (1/6 of the pool)", w1(n), "walk", blocks=BLOCKS // 6),
        Cell("long outputs", _long(n // 2)),
        Cell("long outputs", _long(n // 2), "stepped"),
        Cell("Azure trace", lambda _: traffic.azure(1.0, rows)),
        Cell("Azure trace, half rate", lambda _: traffic.azure(0.5, rows)),
        *(
            Cell(f"W1 all at once, {order}", lambda _: traffic.at_once(n), keys={"order": order}, blocks=4 * BLOCKS)
            for order in ("fcfs", "shortest_prompt", "shortest_output", "priority", "deadline")
        ),
        *(Cell(f"{number} seats full", _full(number, steps), "stepped", _seats(number), 4_000_000) for number in seats),
        *(Cell(f"W1, {number} requests", growing_w1(number)) for number in growth),
        *(Cell(f"W1, {number} requests, streamed", growing_w1(number), streamed=True) for number in growth),
    ]


def _long(n: int) -> Traffic:
    # a request of 967 tokens holds its seat five times as long as one of 192
    return lambda rate: list(traffic.Poisson(n, rate / 3, traffic.LONG_PROMPTS, traffic.LONG_OUTPUTS))


def _full(seats: int, steps: int) -> Traffic:
    return lambda _: traffic.equal_requests(seats, 16, steps)


def _seats(number: int) -> dict[str, int]:
    return {"max_num_seqs": number, "max_num_batched_tokens": 16 * number}
