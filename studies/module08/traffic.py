"""The module's own traffic, and its own metrics of a run."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Final

import numpy as np

from simqueue.module08.scheduler import MS_PER_S, PolicyName, Req, simulate

SEED: Final = 1234
CLOCKS: Final = {"arrivals in ms": MS_PER_S, "as written (s read as ms)": 1.0}
"""Milliseconds of the simulator's clock per second of the traffic."""
RUNS: Final[dict[str, tuple[PolicyName, int]]] = {
    "static": ("static", 512),
    "continuous": ("continuous", 512),
    "chunked-8": ("chunked", 8),
    "chunked-32": ("chunked", 32),
    "chunked-512": ("chunked", 512),
}


def module_traffic(seed: int = SEED, clock: float = MS_PER_S) -> list[Req]:
    """Return the module's requests: Poisson arrivals at 16 requests/s for 30 s, clipped lognormal lengths."""
    rng = random.Random(seed)  # the module's generator: the same bits
    at_s, requests = 0.0, list[Req]()
    while True:
        at_s += rng.expovariate(16)
        if at_s >= 30:
            return requests
        prompt = int(min(max(rng.lognormvariate(math.log(700), 0.9), 64), 4096))
        output = int(min(max(rng.lognormvariate(math.log(110), 0.6), 16), 384))
        requests.append(Req(len(requests), at_s * clock, prompt, output))


def module_metrics(requests: Sequence[Req], end_ms: float) -> dict[str, float]:
    """Return the module's metrics of finished requests: percentiles in ms, tokens/s, duration in s."""
    done = [
        (req, req.first_tok, req.finish) for req in requests if req.first_tok is not None and req.finish is not None
    ]
    ttft = [first - req.arrival for req, first, _ in done]
    tpot = [(finish - first) / (req.out_len - 1) for req, first, finish in done if req.out_len > 1]
    found = {
        f"{name}_p{q}": float(np.percentile(values, q))
        for name, values in (("ttft", ttft), ("tpot", tpot))
        for q in (50, 95)
    }
    tokens = sum(req.out_len for req in requests)
    return {**found, "tok_s": tokens / (end_ms / MS_PER_S), "wall_s": end_ms / MS_PER_S}


def own_figures() -> dict[str, dict[str, dict[str, float]]]:
    """Return the output of the module's program, from `simulate`, which agrees to 1e-9: clock -> policy -> metrics."""
    return {
        clock: {
            name: module_metrics(*simulate(policy, module_traffic(clock=scale), chunk=chunk))
            for name, (policy, chunk) in RUNS.items()
        }
        for clock, scale in CLOCKS.items()
    }
