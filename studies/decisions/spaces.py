"""Spaces that are small enough to be enumerated whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Case:
    """A question to a space.

    Attributes
    ----------
    name : str
    scenario : mapping
        The keys of the scenario.
    space : mapping of str to sequence
    slo : tuple of str
    minimize : str
        ``cost``, or a column of the summary.
    """

    name: str
    scenario: Mapping[str, Any]
    space: Mapping[str, Sequence[Any]]
    slo: tuple[str, ...]
    minimize: str = "cost"


REQUESTS: Final = 1000


def _scenario(model: str, rate_rps: float, prompt: int, output: int, **keys: Any) -> dict[str, Any]:
    return {
        "model": model,
        "gpu": "h100-sxm",
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": rate_rps},
            "num_requests": REQUESTS,
            "prompt_tokens": {"distribution": "lognormal", "mean": prompt, "cv": 1.0},
            "output_tokens": {"distribution": "lognormal", "mean": output, "cv": 0.7},
        },
        "policies": {"served": {"scheduler": "chunked"}},
        **keys,
    }


CASES: Final = (
    Case(
        "seats, budget of a step, tensor parallel",
        _scenario("llama-3.1-70b", 10, 500, 40),
        {
            "tensor_parallel": [2, 4, 8],
            "max_num_seqs": [4, 8, 16, 32, 64, 128, 256],
            "max_num_batched_tokens": [128, 256, 512, 1024, 2048, 4096],
        },
        ("p99_ttft_ms<=1000", "p99_itl_ms<=100"),
    ),
    Case(
        "GPU, tensor parallel, replicas",
        _scenario("llama-3.1-8b", 120, 500, 40),
        {
            "gpu": ["a100-80gb", "h100-sxm", "h200-sxm", "l40s"],
            "tensor_parallel": [1, 2, 4],
            "fleet.replicas": [1, 2, 3, 4, 5, 6, 7, 8, 10, 12],
        },
        ("p99_ttft_ms<=400", "p99_itl_ms<=60"),
    ),
    Case(
        "router, replicas, seats",
        _scenario("llama-3.1-8b", 100, 500, 40, gpu="l40s"),
        {
            "fleet.replicas": [3, 4, 5, 6, 7, 8, 9, 10],
            "fleet.router": ["random", "round_robin", "least_outstanding", "least_tokens", "join_shortest_queue"],
            "max_num_seqs": [4, 12, 128],
        },
        ("p99_ttft_ms<=700",),
    ),
    Case(
        "chunk under a limit on ITL",
        _scenario("llama-3.1-8b", 15, 2000, 40),
        {
            "max_num_batched_tokens": [64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096, 8192],
            "max_num_seqs": [8, 16, 32, 64, 128],
            "tensor_parallel": [1, 2],
        },
        ("p99_itl_ms<=40", "p99_ttft_ms<=1500"),
    ),
    Case(
        "the smallest mean TTFT, whatever it costs",
        _scenario("llama-3.1-8b", 20, 1000, 40),
        {
            "max_num_batched_tokens": [128, 256, 512, 1024, 2048, 4096, 8192],
            "max_num_seqs": [4, 8, 16, 32, 64, 128],
            "tensor_parallel": [1, 2, 4],
        },
        ("p99_itl_ms<=25",),
        "mean_ttft_ms",
    ),
)
