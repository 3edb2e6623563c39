"""Whole runs of a size that people play: the three ways leave the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from simqueue.request import Request
from simqueue.scenario.load import from_mapping
from simqueue.steptime.linear import LinearStepTime
from simqueue.workload.generate import generate

from .three_ways import Case, Pool, assert_three_ways_agree

STEP_TIME = LinearStepTime(0.006, 5.0e-5, 0.0, 3.0e-5, 4.0e-8)


def lognormal_requests(number: int, rate_rps: float) -> list[Request]:
    """Poisson arrivals; prompts of 1024 tokens and outputs of 192 on average, both lognormal with cv 0.6."""
    draw = np.random.default_rng(7)
    arrivals_s = np.cumsum(draw.exponential(1 / rate_rps, number))
    sigma = np.sqrt(np.log(1 + 0.6**2))
    prompts, outputs = (
        np.clip(draw.lognormal(np.log(mean) - sigma**2 / 2, sigma, number), low, high).astype(int)
        for mean, low, high in ((1024, 16, 3072), (192, 8, 896))
    )
    columns = zip(arrivals_s.tolist(), prompts.tolist(), outputs.tolist(), strict=True)
    return [Request(str(i), at_s, prompt, output) for i, (at_s, prompt, output) in enumerate(columns)]


def azure_requests() -> Sequence[Request]:
    """The hour that Azure recorded."""
    scenario = from_mapping(
        {
            "name": "azure",
            "step_time": {"kind": "constant", "seconds": 0.01},
            "kv_cache": {"blocks": 1},
            "workload": {"trace": {"name": "azure-2023-conversation"}},
            "policies": {"chunked": {"scheduler": "chunked"}},
        }
    )
    traffic = generate(scenario.workload, seed=1, base_dir=Path())
    return list(traffic.requests)


CHUNKED = ("chunked", {"max_num_batched_tokens": 512, "max_num_seqs": 128})
ASYNC_VLLM = ("vllm", {"max_num_batched_tokens": 2048, "max_num_seqs": 128, "async_scheduling": True})


@pytest.mark.parametrize(("policy", "layout"), [(CHUNKED, "paged"), (ASYNC_VLLM, "prefix")])
@pytest.mark.parametrize("blocks", [6886, 900])
def test_a_thousand_requests_leave_the_same_bytes(policy: tuple[str, dict[str, int]], layout: str, blocks: int) -> None:
    """A steady load, in a pool that is large enough and in one that thrashes."""
    requests = lognormal_requests(1000, 8.6)
    assert_three_ways_agree(Case(requests, *policy, Pool(layout, blocks, 16), STEP_TIME), check=False)  # type: ignore[arg-type] # one of the layouts


@pytest.mark.slow
def test_the_benchmark_leaves_the_same_bytes() -> None:
    """All ten thousand requests of the benchmark's main workload."""
    case = Case(lognormal_requests(10_000, 8.6), *CHUNKED, Pool("paged", 6886, 16), STEP_TIME)
    assert_three_ways_agree(case, check=False)


@pytest.mark.slow
def test_azure_trace_leaves_the_same_bytes() -> None:
    """The hour of real traffic as a whole."""
    requests = azure_requests()
    assert len(requests) == 19_366
    assert_three_ways_agree(Case(requests, *CHUNKED, Pool("paged", 6886, 16), STEP_TIME), check=False)
