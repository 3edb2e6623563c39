"""Workload generation: bad rates, and results that must not depend on where they were computed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import simqueue as sq

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
ROOFLINE = """\
model: llama-3.1-8b
gpu: {memory_mib: 81559, bandwidth_bytes_per_s: 3.35e12, flops_per_s: 989.4e12}
workload:
  requests: [{arrival_s: 0, prompt_tokens: 64, output_tokens: 8}]
policies:
  chunked: {scheduler: chunked, max_num_seqs: 8}
"""


@pytest.mark.parametrize("text", [VALID, ROOFLINE], ids=["constant steps", "roofline"])
def test_case_49_the_scenarios_are_valid_before_they_are_spoiled(text: str, command: Any, scenario_file: Any) -> None:
    """What the next test spoils one number at a time is fine as it stands."""
    shown = command("run", scenario_file(text), "--json-summary")
    assert (shown.code, shown.err) == (0, "")


@pytest.mark.parametrize("value", ["0", "-1", ".nan", ".inf"])
@pytest.mark.parametrize(
    ("base", "good", "line", "path", "allowed"),
    [
        (VALID, "rate_rps: 10", 4, "workload.arrivals.rate_rps", "> 0"),
        (VALID, "seconds: 0.01", 1, "step_time.seconds", "> 0"),
        (VALID, "block_size: 16", 2, "kv_cache.block_size", ">= 1"),
        (VALID, "max_num_seqs: 8", 9, "policies.chunked.max_num_seqs", ">= 1"),
        (ROOFLINE, "flops_per_s: 989.4e12", 2, "gpu.flops_per_s", ">= 1"),
        (ROOFLINE, "bandwidth_bytes_per_s: 3.35e12", 2, "gpu.bandwidth_bytes_per_s", ">= 1"),
    ],
    ids=["rate", "step", "block size", "seats", "flops", "bandwidth"],
)
def test_case_49_numbers_that_make_no_sense_are_refused_before_anything_runs(
    value: str, base: str, good: str, line: int, path: str, allowed: str, command: Any, scenario_file: Any
) -> None:
    """Zero, negative, NaN and infinity: exit code 2 and one line with file, line, key, value and what is allowed.

    Origin: inference-sim/inference-sim#202, #355, where a rate of 0 looped for ever and NaN spoiled a run in silence.
    """
    key = good.partition(":")[0]
    file = scenario_file(base.replace(good, f"{key}: {value}"))
    shown = command("run", file)
    assert (shown.code, shown.out) == (2, "")
    (said,) = shown.err.splitlines()
    assert said.startswith(f"error: {file}:{line}: {path} = {value}: must be ")
    assert allowed in said


def test_case_49_everybody_at_once_has_a_process_of_its_own(play: Any, toy: Any) -> None:
    """What an infinite rate would mean is asked for by name, and puts all arrivals at one instant."""
    scenario = toy([])
    length = {"distribution": "constant", "value": 4}
    scenario["workload"] = {
        "arrivals": {"process": "all_at_once"},
        "prompt_tokens": length,
        "output_tokens": length,
        "num_requests": 3,
    }
    assert play(scenario).requests["arrival_s"].tolist() == [0.0, 0.0, 0.0]


# Case 3's pool, which is short, with random arrivals at three times what it carries.
RANDOM = """\
seed: 7
step_time: {kind: constant, seconds: 0.01}
kv_cache: {block_size: 16, blocks: 12}
workload:
  arrivals: {process: poisson, rate_rps: 20}
  prompt_tokens: {distribution: uniform, low: 32, high: 96}
  output_tokens: {distribution: geometric, mean: 40, max: 90}
  num_requests: 60
policies:
  chunked: {scheduler: chunked, max_num_seqs: 256, max_num_batched_tokens: 2048}
  continuous: {scheduler: continuous, max_num_seqs: 256, max_num_batched_tokens: 2048}
  static: {scheduler: static, max_num_seqs: 4}
"""


def test_case_52_the_same_seed_gives_the_same_tables(scenario_file: Any) -> None:
    """Two runs of one scenario agree to the last bit, and another seed does not.

    Origin: inference-sim/inference-sim#323, #768, asonnino/mysticeti#260.
    """
    file = scenario_file(RANDOM)
    first, again, other = sq.run(file), sq.run(file), sq.run(file, seed=8)
    for name in ("requests", "steps", "summary"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(again, name), check_exact=True)
    assert first.summary["preemptions"].sum() > 0, "the pool is meant to be short"
    assert first.requests["arrival_s"].tolist() != other.requests["arrival_s"].tolist()


def test_case_52_other_processes_with_other_hash_seeds_write_the_same_bytes(scenario_file: Any, tmp_path: Path) -> None:
    """Every file of a result is byte-identical whatever PYTHONHASHSEED is (same reports)."""
    file = scenario_file(RANDOM)
    written = []
    for hash_seed in ("0", "1"):
        out = tmp_path / f"hash-{hash_seed}"
        arguments = ["run", str(file), "--json", "--no-figures", "--out", str(out)]
        done = subprocess.run(
            [sys.executable, "-m", "simqueue", *arguments],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        )
        files = {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("*.*"))}
        written.append({"stdout": done.stdout, **files})
    assert written[0].keys() == written[1].keys()
    assert {"stdout", "requests.parquet", "steps.parquet", "summary.csv"} <= written[0].keys()
    assert [name for name in written[0] if written[0][name] != written[1][name]] == []


def test_case_52_another_scheduler_leaves_the_traffic_untouched(scenario_file: Any) -> None:
    """All policies see the same arrivals and lengths, alone or in company, in any order (same reports)."""
    traffic = ["request_id", "arrival_s", "prompt_tokens", "output_tokens"]
    together = sq.run(scenario_file(RANDOM)).requests
    alone = RANDOM[: RANDOM.index("  chunked:")] + "  static: {scheduler: static, max_num_seqs: 2}\n"
    expected = sq.run(scenario_file(alone, "alone.yaml")).requests[traffic]
    for policy in ("chunked", "continuous", "static"):
        seen = together.loc[together["policy"] == policy, traffic].reset_index(drop=True)
        pd.testing.assert_frame_equal(seen, expected, check_exact=True)


def test_case_52_a_policy_has_the_same_results_alone_and_in_company(scenario_file: Any) -> None:
    """What stands beside a policy in the file changes nothing about it (same reports)."""
    together = sq.run(scenario_file(RANDOM)).requests
    lines = [line for line in RANDOM.splitlines() if not line.startswith(("  chunked:", "  static:"))]
    alone = sq.run(scenario_file("\n".join(lines) + "\n", "alone.yaml")).requests
    mine = together[together["policy"] == "continuous"].reset_index(drop=True)
    pd.testing.assert_frame_equal(mine, alone, check_exact=True)


def test_case_52_changing_one_length_law_leaves_the_other_draws_alone(scenario_file: Any) -> None:
    """Arrivals, prompts and outputs come from streams of their own: a new output law moves no arrival."""
    base = sq.run(scenario_file(RANDOM)).requests
    changed = RANDOM.replace(
        "{distribution: geometric, mean: 40, max: 90}", "{distribution: uniform, low: 1, high: 50}"
    )
    other = sq.run(scenario_file(changed, "changed.yaml")).requests
    for column in ("arrival_s", "prompt_tokens"):
        assert other[column].tolist() == base[column].tolist()
    assert other["output_tokens"].tolist() != base["output_tokens"].tolist()
