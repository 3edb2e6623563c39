"""What is asked of a policy: not what it refuses, cuts or has in its prefix cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.experiment.build import build_all
from simqueue.experiment.demand import asked_of, offered
from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.experiment.rates import saturation_throughput
from simqueue.scenario import from_mapping

A, B, C = 0.01, 1e-4, 2e-5
"""Seconds per step, decode and prompt token of `LINEAR`."""
LINEAR = {"kind": "linear", "overhead_s": A, "per_decode_s": B, "per_prefill_token_s": C}
STEPS_OF_10_MS = {"kind": "constant", "seconds": 0.01}
CHUNKED = {"scheduler": "chunked", "max_num_seqs": 64, "max_num_batched_tokens": 512}
SYSTEM = 1600
"""Tokens of the system prompt: 100 blocks of 16."""


def constant(value: int) -> dict[str, Any]:
    """Return a distribution of one length."""
    return {"distribution": "constant", "value": value}


def loads(**keys: Any) -> dict[str, PolicyLoad]:
    """Return the loads of a scenario without a run."""
    return policy_loads(from_mapping({"kv_cache": {"blocks": 100_000}, **keys}).resolve())


def run_row(**keys: Any) -> dict[str, Any]:
    """Return the summary of the only policy of a run."""
    return sq.run({"kv_cache": {"blocks": 100_000}, **keys}).summary_rows[0]


def one_every(gap_s: float, lengths: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Return listed requests, one each `gap_s` seconds."""
    return [
        {"arrival_s": gap_s * i, "prompt_tokens": prompt, "output_tokens": output}
        for i, (prompt, output) in enumerate(lengths)
    ]


def test_a_curve_from_a_file_has_a_load(tmp_path: Path) -> None:
    """Its rate is the mean of the used windows, 10 and 30 requests a second for 10 s each."""
    (tmp_path / "curve.csv").write_text("category,window_start_s,total_rate_rps\na,0,10\na,10,30\n")
    arrivals = {"process": "curve", "category": "a", "path": str(tmp_path / "curve.csv")}
    row = run_row(
        step_time=STEPS_OF_10_MS,
        policies={"p": CHUNKED},
        workload={
            "arrivals": arrivals,
            "arrivals_for_s": 20,
            "prompt_tokens": constant(64),
            "output_tokens": constant(8),
        },
    )
    assert row["load"] == pytest.approx(20 * 71 / 51_200)


# -- refused -----------------------------------------------------------------------------------------------------------


def small_and_large() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return 200 small requests among 200 large ones, one each 10 ms, and the small ones alone."""
    every = one_every(0.01, [(32, 8) if i % 2 else (2000, 8) for i in range(400)])
    return every, [one for one in every if one["prompt_tokens"] == 32]


UNCHUNKED = {"enable_chunked_prefill": False, "max_num_batched_tokens": 512, "max_num_seqs": 64}
REFUSALS = {
    "max_model_len": (CHUNKED, {"max_model_len": 1024}),
    "pool": (CHUNKED, {"kv_cache": {"blocks": 100}}),
    "pool of waves": ({"scheduler": "static", "max_num_seqs": 8}, {"kv_cache": {"blocks": 100}}),
    "budget of V0": ({"engine": "vllm", "version": "0.7.3", **UNCHUNKED}, {"max_model_len": 512}),
    "budget of V1": ({"engine": "vllm", "version": "0.33.0", **UNCHUNKED}, {}),
}


@pytest.mark.parametrize("kind", list(REFUSALS))
def test_refused_requests_ask_for_nothing(kind: str) -> None:
    """Load and capacity with requests that are refused are those without them, with and without a run."""
    policy, more = REFUSALS[kind]
    every, small = small_and_large()
    keys = {"step_time": STEPS_OF_10_MS, "policies": {"p": policy}, **more}
    mixed, alone = (loads(workload={"requests": listed}, **keys)["p"] for listed in (every, small))
    assert mixed.capacity is not None
    assert alone.capacity is not None
    assert mixed.capacity.max_rate_rps == pytest.approx(alone.capacity.max_rate_rps)
    assert mixed.load == pytest.approx(alone.load)
    row = run_row(workload={"requests": every}, **keys)
    assert row["rejected"] == 200
    assert row["load"] == pytest.approx(alone.load)


def test_one_giant_that_is_refused_is_no_overload() -> None:
    """400 requests of 64 + 8 tokens, 20 a second: each takes 71 of 512 x 100 tokens a second, so the load is 0.0277."""
    giant = {"arrival_s": 5.001, "prompt_tokens": 2_000_000, "output_tokens": 8}
    listed = [*one_every(0.05, [(64, 8)] * 400), giant]
    row = run_row(step_time=STEPS_OF_10_MS, max_model_len=4096, policies={"p": CHUNKED}, workload={"requests": listed})
    assert row["load"] == pytest.approx(20 * 71 / 51_200)
    assert row["overloaded"] is False


def test_a_policy_that_refuses_all_has_no_load() -> None:
    """Nothing is asked of it, and the table says so."""
    found = loads(
        step_time=STEPS_OF_10_MS,
        max_model_len=16,
        workload={"requests": one_every(0.1, [(64, 8)] * 30)},
        policies={"p": CHUNKED},
    )["p"]
    assert (found.capacity, found.load, found.why_not) == (None, None, "every request is refused")


def test_what_is_left_of_a_renewal_process() -> None:
    """Of 20 requests a second with gaps of SCV 4, half are refused: 10 remain, and their gaps have SCV 1/2 + 4/2."""
    half = {"distribution": "mixture", "components": [{"weight": 1, "law": constant(n)} for n in (100, 9000)]}
    scenario = from_mapping(
        {
            "step_time": STEPS_OF_10_MS,
            "kv_cache": {"blocks": 10_000},
            "max_model_len": 4096,
            "policies": {"p": CHUNKED},
            "workload": {
                "arrivals": {"process": "gamma", "rate_rps": 20, "cv": 2},
                "num_requests": 100,
                "prompt_tokens": half,
                "output_tokens": constant(8),
            },
        }
    ).resolve()
    load = offered(scenario)
    assert load is not None
    asked = asked_of(build_all(scenario)["p"], load)
    assert asked.rate_rps == pytest.approx(10, rel=0.02)
    assert asked.gap_scv == pytest.approx(2.5, rel=0.02)
    assert asked.lengths.prompt == 100


# -- cut ---------------------------------------------------------------------------------------------------------------


def test_outputs_count_as_they_are_cut() -> None:
    """Prompts of 100 in a model of 200 tokens get 100 tokens, not 4,000: load and verdict are those of 100."""
    keys: dict[str, Any] = {
        "step_time": STEPS_OF_10_MS,
        "kv_cache": {"blocks": 100},
        "max_model_len": 200,
        "policies": {"v": {"engine": "vllm", "version": "0.33.0"}},
    }
    traffic = {"arrivals": {"process": "poisson", "rate_rps": 2}, "num_requests": 300, "prompt_tokens": constant(100)}
    asked, made = (loads(workload={**traffic, "output_tokens": constant(n)}, **keys)["v"] for n in (4000, 100))
    assert made.load is not None
    assert asked.load == pytest.approx(made.load)
    row = run_row(workload={**traffic, "output_tokens": constant(4000)}, warmup_s=10.0, **keys)
    assert row["load"] == pytest.approx(made.load)
    assert row["overloaded"] is False
    assert row["mean_tpot_ms"] is not None


# -- found in the prefix cache -----------------------------------------------------------------------------------------


def law_load(rate_rps: float, new_tokens: float, output: int, seats: int) -> float:
    """Return rate x (w + a g) of whole prompts: seats are the limit, one step for the prompt."""
    return rate_rps * (B * (output - 1) + C * new_tokens + A * output / seats)


SHARED = {"engine": "vllm", "version": "0.33.0", "max_num_seqs": 8, "async_scheduling": False}
GENERIC = {"scheduler": "continuous", "max_num_seqs": 8, "max_num_batched_tokens": 8192}
N = 40
"""Requests of each source, so far apart that each finds what it has in common with the one before."""


def system_prompts(_folder: Path) -> dict[str, Any]:
    """Return requests with a system prompt."""
    arrivals = {"process": "constant", "rate_rps": 1.0}
    own = {"prompt_tokens": constant(100), "output_tokens": constant(10)}
    return {"arrivals": arrivals, "num_requests": N, "system_prompt": {"tokens": SYSTEM}, **own}


def listed_prompts(_folder: Path) -> dict[str, Any]:
    """Return listed requests that begin with the same tokens."""
    return {
        "requests": [
            {"arrival_s": 1.0 * (i + 1), "prompt": [[0, 0, SYSTEM], [1 + i, 0, 100]], "output_tokens": 10}
            for i in range(N)
        ]
    }


def hash_ids(folder: Path) -> dict[str, Any]:
    """Return a trace whose requests have 100 hash ids of 16 tokens in common."""
    shared = list(range(SYSTEM // 16))
    rows = [
        {
            "timestamp": 1000 * (i + 1),
            "input_length": SYSTEM + 100,
            "output_length": 10,
            "hash_ids": [*shared, *range(1000 * (i + 1), 1000 * (i + 1) + 7)],
        }
        for i in range(N)
    ]
    (folder / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"trace": {"format": "mooncake", "path": str(folder / "trace.jsonl"), "block_tokens": 16}}


@pytest.mark.parametrize("source", [system_prompts, listed_prompts, hash_ids])
@pytest.mark.parametrize("policy", [SHARED, GENERIC], ids=["vllm", "generic"])
def test_hits_are_no_load(source: Callable[[Path], Any], policy: dict[str, Any], tmp_path: Path) -> None:
    """All but the first of the prompts find 1,600 of their 1,700 tokens: the load is that of the other 100."""
    caching = {"enable_prefix_caching": True} if "engine" in policy else {}
    rules = {} if "engine" in policy else {"prefix_caching": True}
    row = run_row(
        step_time=LINEAR,
        kv_cache={"blocks": 100_000, **rules},
        workload=source(tmp_path),
        policies={"p": {**policy, **caching}},
    )
    new_tokens = (SYSTEM + 100) - SYSTEM * (N - 1) / N
    # One step for the prompt; the law of chunks has it 100 / 8185 steps longer.
    assert row["load"] == pytest.approx(law_load(1.0, new_tokens, 10, 8), rel=0.01)


def test_without_a_cache_whole_prompts_are_load(tmp_path: Path) -> None:
    """The same requests on a policy without a prefix cache: 1,700 tokens each."""
    row = run_row(step_time=LINEAR, workload=hash_ids(tmp_path), policies={"p": GENERIC})
    assert row["load"] == pytest.approx(law_load(1.0, SYSTEM + 100, 10, 8), rel=1e-6)


SHARED_SYSTEM_PROMPT: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 40},
        "num_requests": 600,
        "system_prompt": {"tokens": 8000},
        "prompt_tokens": constant(100),
        "output_tokens": {"distribution": "geometric", "mean": 50},
    },
    "policies": {
        "on": {"engine": "vllm", "version": "0.33.0"},
        "off": {"engine": "vllm", "version": "0.33.0", "enable_prefix_caching": False},
    },
}


def test_capacity_counts_the_hits_that_are_certain() -> None:
    """A system prompt of 8,000 tokens on an H100: some 60 requests a second with a prefix cache, 5.3 without."""
    found = policy_loads(from_mapping(SHARED_SYSTEM_PROMPT).resolve())
    capacities = {name: one.capacity.max_rate_rps for name, one in found.items() if one.capacity}
    assert capacities["on"] == pytest.approx(60.3, rel=0.05)
    assert capacities["off"] == pytest.approx(5.3, rel=0.02)


def test_a_warm_up_hides_no_latencies_of_a_policy_whose_cache_keeps_up() -> None:
    """With whole prompts the load would be 7.4; with the hits it is 2/3, so latencies are shown."""
    keys = {**SHARED_SYSTEM_PROMPT, "policies": {"on": SHARED_SYSTEM_PROMPT["policies"]["on"]}}
    row = sq.run(
        {**keys, "workload": {**keys["workload"], "num_requests": 3000}, "warmup_s": 10.0}, check=False
    ).summary_rows[0]
    assert row["load"] == pytest.approx(40 / 60.3, rel=0.07)
    assert row["overloaded"] is False
    assert row["p99_ttft_ms"] is not None


def test_shared_blocks_are_held_once() -> None:
    """The pool of 300 blocks limits: 100 for the system prompt, the others for what requests have of their own."""
    scenario = from_mapping(
        {
            "step_time": STEPS_OF_10_MS,
            "kv_cache": {"blocks": 300, "prefix_caching": True},
            "policies": {"p": {"scheduler": "chunked", "max_num_seqs": 500, "max_num_batched_tokens": 8192}},
            "workload": {
                "arrivals": {"process": "poisson", "rate_rps": 1},
                "num_requests": 100,
                "system_prompt": {"tokens": SYSTEM},
                "prompt_tokens": {"distribution": "uniform", "low": 50, "high": 150},
                "output_tokens": {"distribution": "geometric", "mean": 50},
            },
        }
    ).resolve()
    found = policy_loads(scenario)["p"].capacity
    assert found is not None
    assert found.binding == "kv"
    simulated = saturation_throughput(scenario, "p", requests=1500, replications=1)
    assert found.max_rate_rps == pytest.approx(simulated.value, rel=0.05)


def test_hits_that_are_not_certain_are_not_guessed() -> None:
    """Of 1,000 system prompts the pool holds a few: before a run there is no capacity, and the reason is said."""
    made = {
        "step_time": STEPS_OF_10_MS,
        "kv_cache": {"blocks": 1000, "prefix_caching": True},
        "policies": {"p": CHUNKED},
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 5},
            "num_requests": 400,
            "system_prompt": {"tokens": 800, "variants": 1000},
            "prompt_tokens": constant(50),
            "output_tokens": constant(20),
        },
    }
    found = policy_loads(from_mapping(made).resolve())["p"]
    assert found.capacity is None
    assert "only after a run" in found.why_not
    result = sq.run(made)
    row, requests = result.summary_rows[0], result.requests
    hit = requests["cached_tokens"].sum() / len(requests)
    assert 0 < hit < 800
    # The budget limits: (850 - hits + 19) tokens of 512 in steps of 10 ms.
    assert row["load"] == pytest.approx(5 * (850 - hit + 19) / 512 * 0.01, rel=0.1)


def test_own_tokens_are_no_hits() -> None:
    """A prefix cache without anything in common changes nothing: the load is that of the distributions."""
    found = loads(
        step_time=LINEAR,
        kv_cache={"blocks": 100_000, "prefix_caching": True},
        policies={"p": GENERIC},
        workload={"requests": one_every(1.0, [(500, 10)] * 30)},
    )["p"]
    assert found.load == pytest.approx(law_load(1.0, 500, 10, 8))


def test_the_sample_decides_what_is_refused_of_a_distribution() -> None:
    """99 % of 100 tokens and 1 % that is refused: the capacity is that of the 99 %."""
    kinds = [{"weight": weight, "law": constant(n)} for weight, n in ((0.99, 100), (0.01, 100_000))]
    mixture = {"distribution": "mixture", "components": kinds}
    traffic = {"arrivals": {"process": "poisson", "rate_rps": 20}, "num_requests": 100, "output_tokens": constant(8)}
    keys: dict[str, Any] = {"step_time": LINEAR, "max_model_len": 8192, "policies": {"p": CHUNKED}}
    mixed, alone = (loads(workload={**traffic, "prompt_tokens": one}, **keys)["p"] for one in (mixture, constant(100)))
    assert mixed.capacity is not None
    assert alone.capacity is not None
    assert alone.load is not None
    assert mixed.capacity.max_rate_rps == pytest.approx(alone.capacity.max_rate_rps)
    assert mixed.load == pytest.approx(0.99 * alone.load, rel=0.002)
    assert np.isfinite(mixed.capacity.max_rate_rps)
