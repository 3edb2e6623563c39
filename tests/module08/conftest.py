"""The course module's own results and traffic."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simqueue.module08 import Req

REFERENCE = Path(__file__).parents[1] / "data" / "module08" / "reference.json"
CLOCKS = {"arrivals_in_milliseconds": 1000.0, "arrival_seconds_read_as_milliseconds": 1.0}
"""Milliseconds of the simulator's clock per second of the traffic, in each part of the reference."""

Row = tuple[float, int, int]
"""Arrival in seconds, prompt tokens, output tokens."""


@pytest.fixture(scope="session")
def reference() -> dict[str, Any]:
    """Return the output of the module's program."""
    found: dict[str, Any] = json.loads(REFERENCE.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="session")
def recipe() -> Callable[[int], list[Row]]:
    """Return a function that draws the module's traffic from a seed, by its own recipe."""

    def drawn(seed: int) -> list[Row]:
        rng = random.Random(seed)  # the module's generator: the same bits
        at_s, rows = 0.0, list[Row]()
        while True:
            at_s += rng.expovariate(16)
            if at_s >= 30:
                return rows
            prompt = int(min(max(rng.lognormvariate(math.log(700), 0.9), 64), 4096))
            output = int(min(max(rng.lognormvariate(math.log(110), 0.6), 16), 384))
            rows.append((at_s, prompt, output))

    return drawn


@pytest.fixture(scope="session")
def as_requests() -> Callable[[list[Row], str], list[Req]]:
    """Return a function that makes new requests from rows, on the clock of one part of the reference."""

    def made(rows: list[Row], clock: str) -> list[Req]:
        return [Req(rid, at_s * CLOCKS[clock], prompt, output) for rid, (at_s, prompt, output) in enumerate(rows)]

    return made


@pytest.fixture
def asked(reference: dict[str, Any], as_requests: Any) -> Callable[[str], list[Req]]:
    """Return a function that makes new requests from the reference's traffic, on the clock of one of its parts."""
    traffic = reference["traffic"]
    rows = list(zip(traffic["arrival_s"], traffic["prompt_tokens"], traffic["output_tokens"], strict=True))
    return lambda clock: as_requests(rows, clock)


@pytest.fixture
def measured() -> Callable[[list[Req], float], dict[str, float]]:
    """Return a function for the module's metrics: percentiles by linear interpolation, tokens per second."""

    def found(requests: list[Req], end_ms: float) -> dict[str, float]:
        ttft = [req.first_tok - req.arrival for req in requests if req.first_tok is not None]
        tpot = [
            (req.finish - req.first_tok) / (req.out_len - 1)
            for req in requests
            if req.finish is not None and req.first_tok is not None and req.out_len > 1
        ]
        latencies = {
            f"{name}_p{q}": float(np.percentile(values, q))
            for name, values in (("ttft", ttft), ("tpot", tpot))
            for q in (50, 95)
        }
        tokens = sum(req.out_len for req in requests)
        return {**latencies, "tok_s": tokens / (end_ms / 1000), "wall_s": end_ms / 1000}

    return found
