"""What the tests of engines share: toy scenarios for one engine, played folded and step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd
import pytest

import simqueue as sq
from simqueue.results.result import Result


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


@pytest.fixture
def play() -> Callable[[Mapping[str, Any]], Result]:
    """Return a run that folds equal steps and plans each of them: both must give the same tables, to the last bit."""

    def played(scenario: Mapping[str, Any]) -> Result:
        folded, stepped = (sq.run({**scenario, "fast": fast}) for fast in (True, False))
        for name in ("requests", "steps", "summary"):
            pd.testing.assert_frame_equal(getattr(folded, name), getattr(stepped, name), check_exact=True)
        return folded

    return played


@pytest.fixture
def by_id() -> Callable[[Result], pd.DataFrame]:
    """Return a view of the requests by their ids."""
    return lambda result: result.requests.set_index("request_id")


@pytest.fixture
def summary_of() -> Callable[[Result], dict[str, Any]]:
    """Return the summary of a scenario with one policy."""
    return lambda result: result.summary_rows[0]
