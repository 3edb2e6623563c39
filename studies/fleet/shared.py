"""A published comparison of routers on prompts with shared prefixes, repeated with the step times of presets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import simqueue as sq

GROUPS: Final = 150
PROMPTS: Final = 750
"""Different prompts, five of each group; every stage of the benchmark sends them again."""
PROMPT_TOKENS: Final = 7576
"""Mean prompt in the published report, whose texts are cut again; 6,000 + 1,200 were asked for."""
_SHARED_BLOCKS: Final = 5
_BLOCK: Final = -(-PROMPT_TOKENS // (_SHARED_BLOCKS + 1))
"""Tokens in a sixth of a prompt: five sixths are the prefix."""
OUTPUT_TOKENS: Final = 1000
WARM_UP_RPS: Final = 15.0
START_S: Final = 400.0
"""When the stage begins: the warm-up has long ended."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the benchmark after its warm-up, in which each prompt is sent once.

    Attributes
    ----------
    rate_rps : float
    requests : int
    """

    rate_rps: float
    requests: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What clients saw of one stage.

    Attributes
    ----------
    throughput_rps : float
        Requests over the time from the first arrival to the last token.
    output_tokens_per_s : float
    ttft_s, tpot_ms : float
        Means over requests.
    """

    throughput_rps: float
    output_tokens_per_s: float
    ttft_s: float
    tpot_ms: float


def measured(
    stage: Stage,
    routers: Mapping[str, Any],
    engine: Mapping[str, Any],
    preset: str,
    *,
    prompts: int = PROMPTS,
    start_s: float = START_S,
    workers: int = 1,
) -> dict[str, Outcome]:
    """Simulate the warm-up and one stage behind each router.

    Parameters
    ----------
    stage : Stage
    routers : mapping of str to str or mapping
        Name -> router as in a scenario.
    engine : mapping
        Engine, version and flags of the servers.
    preset : str
        Step times.
    prompts : int
        Number of different prompts. Fewer are only for tests.
    start_s : float
        When the stage begins.
    workers : int
        Number of processes. The results are the same.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "requests.jsonl")
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows(stage, prompts, start_s)), encoding="utf-8")
        result = sq.run(_scenario(path, routers, engine, preset), check=False, workers=workers)
    return {run.policy: outcome_of(run.recording.requests, start_s) for run in result.runs}


def rows(stage: Stage, prompts: int = PROMPTS, start_s: float = START_S) -> Iterator[dict[str, Any]]:
    """Yield the requests of the warm-up and of a stage, in a random order of the prompts."""
    rng = np.random.default_rng(1)
    for from_s, part in ((0.0, Stage(WARM_UP_RPS, prompts)), (start_s, stage)):
        arrivals_s = from_s + np.cumsum(rng.exponential(1 / part.rate_rps, part.requests))
        order = chain.from_iterable(rng.permutation(prompts).tolist() for _ in range(-(-part.requests // prompts)))
        for arrival_s, prompt in zip(arrivals_s.tolist(), order, strict=False):
            first = _SHARED_BLOCKS * (prompt % GROUPS)
            yield {
                "timestamp": round(1000 * arrival_s),
                "input_length": PROMPT_TOKENS,
                "output_length": OUTPUT_TOKENS,
                "hash_ids": [*range(first, first + _SHARED_BLOCKS), _SHARED_BLOCKS * GROUPS + prompt],
            }


def outcome_of(requests: Mapping[str, Any], from_s: float) -> Outcome:
    """Return what clients saw of the requests that arrived from a time on."""
    columns = ("arrival_s", "first_token_s", "last_token_s", "output_tokens")
    arrival_s, first_s, last_s, tokens = (np.asarray(requests[name], dtype=float) for name in columns)
    counts: NDArray[np.bool_] = arrival_s >= from_s
    took_s = float(last_s[counts].max() - arrival_s[counts].min())
    return Outcome(
        throughput_rps=int(counts.sum()) / took_s,
        output_tokens_per_s=float(tokens[counts].sum()) / took_s,
        ttft_s=float((first_s - arrival_s)[counts].mean()),
        tpot_ms=1000 * float(((last_s - first_s) / (tokens - 1))[counts].mean()),
    )


def _scenario(path: Path, routers: Mapping[str, Any], engine: Mapping[str, Any], preset: str) -> dict[str, Any]:
    return {
        "seed": 1,
        "model": "qwen3-32b",
        "gpu": "h100-sxm",
        "tensor_parallel": 2,
        "step_time": {"kind": "roofline", "preset": preset},
        "workload": {
            "trace": {"path": str(path), "format": "mooncake", "block_tokens": _BLOCK, "origin": "file"},
        },
        "policies": {name: {**engine, "fleet": {"replicas": 8, "router": router}} for name, router in routers.items()},
    }
