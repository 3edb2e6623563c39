"""The toy engine of the public cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

Asked = tuple[str, float, int, int]
"""Id, arrival in seconds, prompt tokens, output tokens."""

Toy = Callable[..., dict[str, Any]]


@pytest.fixture
def toy() -> Toy:
    """Return a maker of toy scenarios: every step takes 10 ms, blocks of 16 tokens, 256 seats, 2048 tokens a step."""

    def made(
        requests: Iterable[Asked],
        policies: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        blocks: int = 100_000,
        step_s: float = 0.01,
        **more: Any,
    ) -> dict[str, Any]:
        names = ("id", "arrival_s", "prompt_tokens", "output_tokens")
        vllm_like = {"scheduler": "chunked", "max_num_seqs": 256, "max_num_batched_tokens": 2048}
        return {
            "step_time": {"kind": "constant", "seconds": step_s},
            "kv_cache": {"layout": "paged", "block_size": 16, "blocks": blocks},
            "workload": {"requests": [dict(zip(names, asked, strict=True)) for asked in requests]},
            "policies": {"chunked": vllm_like} if policies is None else dict(policies),
            **more,
        }

    return made
