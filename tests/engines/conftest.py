"""Toy scenarios for one engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


@pytest.fixture
def toy() -> Callable[..., dict[str, Any]]:
    """Return a maker of scenarios for vLLM: every step takes 10 ms, blocks of 16 tokens, 256 seats, 2048 tokens."""

    def made(requests: Iterable[tuple[Any, ...]], *, blocks: int = 100_000, **flags: Any) -> dict[str, Any]:
        names = ("id", "arrival_s", "prompt_tokens", "output_tokens")
        engine = {"engine": "vllm", "version": "0.33.0", "max_num_seqs": 256, "max_num_batched_tokens": 2048}
        listed = [asked if isinstance(asked, dict) else dict(zip(names, asked, strict=True)) for asked in requests]
        return {
            "step_time": {"kind": "constant", "seconds": 0.01},
            "kv_cache": {"block_size": 16, "blocks": blocks},
            "workload": {"requests": listed},
            "policies": {"vllm": {**engine, "async_scheduling": False, **flags}},
        }

    return made
