"""Random configurations of a server, by which the capacity law is judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from simqueue.scenario import from_mapping
from simqueue.scenario.resolved import ResolvedScenario

SEED = 14
MANY = 72
MODELS = (
    ("llama-3.1-8b", "h100-sxm"),
    ("llama-3.1-8b", "l4"),
    ("qwen3-8b", "rtx-4090"),
    ("qwen2.5-7b", "a100-40gb"),
    ("phi-4", "a100-80gb"),
    ("qwen3-32b", "h200-sxm"),
    ("qwen3-30b-a3b", "h100-sxm"),
)
PRESSURES = ("plenty", "moderate", "tight")


@dataclass(frozen=True, slots=True)
class Configuration:
    """One random configuration.

    Attributes
    ----------
    name : str
    policy, steps, pressure, prompts, outputs : str
        Of which kind it is.
    values : dict
        The keys of its scenario, with one policy named ``p``.
    """

    name: str
    policy: str
    steps: str
    pressure: str
    prompts: str
    outputs: str
    values: dict[str, Any]


def configurations(seed: int = SEED, many: int = MANY) -> Iterator[Configuration]:
    """Yield random configurations: eight kinds of policies in turn, everything else drawn."""
    for number in range(many):
        rng = np.random.default_rng([seed, number])
        yield _configuration(number, rng)


def _configuration(number: int, rng: Generator) -> Configuration:
    kinds = list(_POLICIES)
    policy = kinds[number % len(kinds)]
    steps = _choice(rng, ("linear", "roofline"))
    prompt_kind, prompt, longest_prompt = _lengths(rng, _log_uniform(rng, 60, 4000), 16_000)
    output_kind, output, longest_output = _lengths(rng, _log_uniform(rng, 20, 500), 2000)
    pressure = _choice(rng, PRESSURES)
    longest = longest_prompt + longest_output
    blocks = -(-int(longest * _pool_factor(rng, pressure)) // 16)
    budget = int(2 ** rng.integers(8, 14))
    seats = int(2 ** rng.integers(2, 10))
    flags = _POLICIES[policy](budget, seats, longest_prompt)
    values = {
        "name": f"law-{number}",
        "seed": number,
        **(_linear(rng) if steps == "linear" else _roofline(rng)),
        "kv_cache": {"blocks": blocks},
        "max_model_len": longest,
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 1.0},
            "prompt_tokens": prompt,
            "output_tokens": output,
            "num_requests": 100,
        },
        "policies": {"p": flags},
    }
    return Configuration(f"{number:02d}", policy, steps, pressure, prompt_kind, output_kind, values)


def _vllm(version: str) -> Any:
    def flags(budget: int, seats: int, _longest_prompt: int) -> dict[str, Any]:
        chosen = {"max_num_seqs": min(seats, budget), "max_num_batched_tokens": budget}
        return {"engine": "vllm", "version": version, "enable_prefix_caching": False, **chosen}

    return flags


def _own(scheduler: str, *keys: str) -> Any:
    def flags(budget: int, seats: int, longest_prompt: int) -> dict[str, Any]:
        budget = max(budget, longest_prompt) if scheduler == "continuous" else budget
        return {"scheduler": scheduler, "max_num_seqs": seats, **dict.fromkeys(keys, budget)}

    return flags


_POLICIES = {
    "vllm 0.11": _vllm("0.11.0"),
    "vllm 0.19": _vllm("0.19.0"),
    "vllm 0.33": _vllm("0.33.0"),
    "chunked": _own("chunked", "max_num_batched_tokens"),
    "continuous": _own("continuous", "max_num_batched_tokens"),
    "static": _own("static"),
    "apart": lambda *sizes: {**_own("continuous", "max_num_batched_tokens")(*sizes), "prefill": "separate"},
    "one slot": lambda *sizes: {**_own("chunked", "max_num_batched_tokens")(*sizes), "max_num_seqs": 1},
}


def _choice(rng: Generator, among: tuple[Any, ...]) -> Any:
    return among[int(rng.integers(len(among)))]


def _log_uniform(rng: Generator, low: float, high: float) -> float:
    return float(low * (high / low) ** rng.random())


def _lengths(rng: Generator, mean: float, most: int) -> tuple[str, dict[str, Any], int]:
    """Return the kind of a distribution, its settings, and the longest length."""
    kind = _choice(rng, ("constant", "geometric", "lognormal", "uniform", "pareto"))
    if kind == "constant":
        value = round(mean)
        return kind, {"distribution": "constant", "value": value}, value
    if kind == "uniform":
        low, high = max(1, round(mean * rng.uniform(0.1, 0.9))), 0
        high = round(2 * mean - low)
        return kind, {"distribution": "uniform", "low": low, "high": high}, high
    most = min(most, round(12 * mean))
    if kind == "pareto":
        alpha = float(rng.uniform(1.1, 2.2))
        scale = max(2, round(mean * (alpha - 1) / alpha))
        return kind, {"distribution": "pareto", "alpha": round(alpha, 2), "scale": scale, "max": most}, most
    if kind == "geometric":
        return kind, {"distribution": "geometric", "mean": round(mean, 1), "max": most}, most
    sigma = float(rng.uniform(0.4, 1.3))
    median = mean / np.exp(sigma**2 / 2)
    return kind, {"distribution": "lognormal", "median": round(median, 1), "sigma": round(sigma, 2), "max": most}, most


def _pool_factor(rng: Generator, pressure: str) -> float:
    """Return the tokens of the pool over those of the longest request."""
    ranges = {"plenty": (200, 1000), "moderate": (4, 40), "tight": (1.1, 4)}
    return _log_uniform(rng, *ranges[pressure])


def _linear(rng: Generator) -> dict[str, Any]:
    names = ("overhead_s", "per_decode_s", "per_prefill_token_s", "per_context_token_s")
    ranges = ((0.004, 0.04), (1e-5, 1e-3), (1e-5, 2e-4), (1e-9, 1e-6))
    drawn = {name: float(f"{_log_uniform(rng, *one):.3g}") for name, one in zip(names, ranges, strict=True)}
    return {"step_time": {"kind": "linear", **drawn}}


def _roofline(rng: Generator) -> dict[str, Any]:
    model, gpu = _choice(rng, MODELS)
    return {"model": model, "gpu": gpu}


def resolved(configuration: Configuration) -> ResolvedScenario:
    """Return the scenario of a configuration, with every value decided."""
    return from_mapping(configuration.values).resolve()
