"""Hardware that cannot hold the model, and scenario files with mistakes in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import simqueue as sq


def one_gpu(model: str, *requests: tuple[int, int]) -> dict[str, Any]:
    """Return a scenario on one H100 with requests of (prompt, output) tokens, all at time 0."""
    listed = [{"arrival_s": 0.0, "prompt_tokens": prompt, "output_tokens": output} for prompt, output in requests]
    return {
        "model": model,
        "gpu": "h100-sxm",
        "step_time": {"kind": "roofline"},
        "workload": {"requests": listed},
        "policies": {"chunked": {"scheduler": "chunked"}},
    }


def test_case_53_a_model_that_does_not_fit_is_an_error_with_both_numbers(command: Any, scenario_file: Any) -> None:
    """405 billion parameters on one 80 GB GPU: exit code 2, 812 GB against what there is, and no latencies.

    Origin: ai-dynamo/aiconfigurator#509, #437, where TTFT and TPOT were printed all the same. The figure is
    2 bytes for each of 405.85e9 stored parameters (the report rounds to 810 GB).
    """
    shown = command("run", scenario_file(one_gpu("llama-3.1-405b", (100, 10))))
    assert (shown.code, shown.out) == (2, "")
    (said,) = shown.err.splitlines()
    assert "llama-3.1-405b does not fit h100-sxm" in said
    assert "weights 812 GB >" in said
    assert "of 85.5 GB reported" in said


def test_case_53_latencies_keep_the_roofline_bound() -> None:
    """A decode step is no faster than reading 15 GB of weights, a prefill no faster than its FLOPs at peak.

    Origin: inference-sim/inference-sim#561, #436. 15.0 GB / 3.35 TB/s is 4.4 ms; 2 * 7e9 * 2048 FLOP at
    989.4 TFLOP/s are 28 ms.
    """
    decode = sq.run(one_gpu("llama-3.1-8b", (1, 50))).requests
    assert decode["tpot_ms"].item() >= 4.4
    prefill = sq.run(one_gpu("llama-3.1-8b", (2048, 1))).requests
    assert prefill["ttft_ms"].item() >= 28.0


def test_case_53_weights_are_read_once_a_step_and_not_once_a_request() -> None:
    """At short context 64 decodes take less than twice the step of one (same reports)."""
    longest = {
        n: sq.run(one_gpu("llama-3.1-8b", *[(1, 20)] * n)).steps.query("prefill_tokens == 0")["last_step_s"].max()
        for n in (1, 64)
    }
    assert longest[1] < longest[64] < 2 * longest[1]


VALID = """\
step_time: {kind: constant, seconds: 0.01}
kv_cache: {block_size: 16, blocks: 100}
workload:
  arrivals: {process: poisson, rate_rps: 10}
  prompt_tokens: {distribution: constant, value: 64}
  output_tokens: {distribution: constant, value: 8}
  num_requests: 5
policies:
  chunked: {scheduler: chunked, max_num_seqs: 8}
"""


UNKNOWN_KEYS = [
    ("scheduler: chunked", "shedulr: chunked", 9, "policies.chunked.shedulr", "scheduler"),
    ("max_num_seqs: 8", "max_seq: 8", 9, "policies.chunked.max_seq", "max_num_seqs"),
    ("policies:", "horizon: 10\npolicies:", 8, "horizon", "horizon_s"),
    ("seconds: 0.01", "secnds: 0.01", 1, "step_time.secnds", "seconds"),
    ("block_size: 16", "block_sise: 16", 2, "kv_cache.block_sise", "block_size"),
]


@pytest.mark.parametrize(("good", "bad", "line", "path", "nearest"), UNKNOWN_KEYS, ids=[row[3] for row in UNKNOWN_KEYS])
def test_case_55_an_unknown_key_is_refused_with_the_nearest_name(
    good: str, bad: str, line: int, path: str, nearest: str, command: Any, scenario_file: Any
) -> None:
    """A misspelt key ends with exit code 2 and one line: file, line, path and the name that was meant.

    Origin: inference-sim/inference-sim#362, #172, #1402, skypilot-org/skypilot#674, ROCm/aorta#251, where such keys
    were accepted and ignored.
    """
    file = scenario_file(VALID.replace(good, bad, 1))
    shown = command("run", file)
    assert (shown.code, shown.out) == (2, "")
    (said,) = shown.err.splitlines()
    assert said.startswith(f"error: {file}:{line}: {path}: unknown key")
    assert f"did you mean '{nearest}'" in said


WRONG_VALUES = [
    ("scheduler: chunked", "scheduler: chunkd", 9, "policies.chunked.scheduler = 'chunkd'", "did you mean 'chunked'"),
    ("rate_rps: 10", 'rate_rps: "10"', 4, "workload.arrivals.rate_rps = '10'", "must be a number > 0"),
    ("block_size: 16", "block_size: 16.5", 2, "kv_cache.block_size = 16.5", "must be a whole number >= 1"),
    ("num_requests: 5", "num_requests: true", 7, "workload.num_requests = true", "must be a whole number >= 1"),
]


@pytest.mark.parametrize(("good", "bad", "line", "what", "allowed"), WRONG_VALUES, ids=[row[3] for row in WRONG_VALUES])
def test_case_55_a_wrong_value_is_refused_with_what_is_allowed(
    good: str, bad: str, line: int, what: str, allowed: str, command: Any, scenario_file: Any
) -> None:
    """Nothing is converted in silence: exit code 2, one line with the value and what is allowed (same reports)."""
    file = scenario_file(VALID.replace(good, bad, 1))
    shown = command("run", file)
    assert (shown.code, shown.out) == (2, "")
    (said,) = shown.err.splitlines()
    assert said.startswith(f"error: {file}:{line}: {what}: ")
    assert allowed in said


def test_case_55_a_key_given_twice_is_refused(command: Any, scenario_file: Any) -> None:
    """A duplicate key is an error that names its line, not a silent last one (same reports)."""
    file = scenario_file(VALID.replace("policies:", "seed: 1\nseed: 2\npolicies:"))
    shown = command("run", file)
    assert (shown.code, shown.out) == (2, "")
    (said,) = shown.err.splitlines()
    assert f"{file}:9" in said
    assert "seed" in said


def test_case_55_every_mistake_is_told_at_once(command: Any, scenario_file: Any) -> None:
    """Two mistakes in one file are two lines, in the order of the file (same reports)."""
    file = scenario_file(VALID.replace("block_size: 16", "block_size: 16.5").replace("max_num_seqs", "max_seq"))
    shown = command("run", file)
    assert shown.code == 2
    assert [line.split(": ")[1] for line in shown.err.splitlines()] == [f"{file}:2", f"{file}:9"]


def test_case_55_the_file_beats_the_default_and_a_flag_beats_the_file(command: Any, scenario_file: Any) -> None:
    """No flag: the file's horizon holds, not the command line's default; with a flag the flag holds (same reports)."""
    file = scenario_file(VALID.replace("policies:", "horizon_s: 10\npolicies:"))
    plain = scenario_file(VALID, "plain.yaml")

    def resolved(*arguments: Any) -> tuple[Any, str]:
        said = json.loads(command("run", *arguments, "--json-summary").out)
        return said["scenario"]["horizon_s"], said["origins"]["horizon_s"]

    assert resolved(plain) == (None, "default")
    assert resolved(file) == (10.0, "file")
    assert resolved(file, "--set", "horizon_s=20") == (20.0, "--set")


LAWS = [
    "{distribution: constant, value: 8000, min: 500, max: 1000}",
    "{distribution: uniform, low: 1, high: 8000, min: 500, max: 1000}",
    "{distribution: exponential, mean: 8000, min: 500, max: 1000}",
    "{distribution: geometric, mean: 800, min: 500, max: 1000}",
    "{distribution: lognormal, median: 700, sigma: 2, min: 500, max: 1000}",
    "{distribution: empirical, values: [1, 700, 8000], min: 500, max: 1000}",
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.split(",")[0].split()[1])
def test_case_55_bounds_hold_for_every_length_law(law: str, scenario_file: Any) -> None:
    """min and max bound the outputs whatever the law (same reports: they were ignored for one of them)."""
    text = VALID.replace("{distribution: constant, value: 8}", law).replace("num_requests: 5", "num_requests: 200")
    outputs = sq.run(scenario_file(text.replace("blocks: 100", "blocks: 100000"))).requests["output_tokens"]
    assert outputs.between(500, 1000).all()
    assert outputs.max() > 500
