"""`scenario.json` of a saved result: every value filled in, and it runs again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import simqueue as sq
from simqueue.scenario.library import packaged_scenarios
from simqueue.scenario.load import from_mapping

SMALL = {
    "seed": 5,
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 20},
        "num_requests": 40,
        "prompt_tokens": {"distribution": "constant", "value": 300},
        "output_tokens": {"distribution": "geometric", "mean": 20},
    },
    "policies": {
        "chunked": {"scheduler": "chunked"},
        "vllm": {"engine": "vllm", "version": "0.33.0"},
        "old": {"engine": "vllm", "version": "0.6.3", "max_model_len": 4096},
    },
}
FILES = """
model: parts/llama
gpu: parts/card.yaml
workload:
  arrivals: {process: poisson, rate_rps: 20}
  num_requests: 30
  prompt_tokens: {distribution: empirical, path: parts/lengths.csv}
  output_tokens: {distribution: constant, value: 5}
policies: {a: {scheduler: chunked}, b: {engine: vllm, version: "0.33.0"}}
"""
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_attention_heads": 32,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": True,
}
CARD = "{memory_mib: 24000, bandwidth_bytes_per_s: 9.0e+11, flops_per_s: 1.0e+14}"


def same_tables(one: Any, other: Any) -> None:
    """Check that two results have the same requests and steps."""
    pd.testing.assert_frame_equal(one.requests, other.requests, check_exact=True)
    pd.testing.assert_frame_equal(one.steps, other.steps, check_exact=True)


def test_it_has_the_pool_and_the_longest_request_that_policies_got(tmp_path: Path) -> None:
    """What said `auto`, or nothing, has the value that was used."""
    result = sq.run(SMALL)
    result.save(tmp_path / "r", figures=False)
    policies = json.loads((tmp_path / "r" / "scenario.json").read_text(encoding="utf-8"))["policies"]
    pools = {run.policy: run.recording.blocks_total for run in result.runs}
    assert {name: policy["kv_cache"]["blocks"] for name, policy in policies.items()} == pools
    assert {name: policy["max_model_len"] for name, policy in policies.items()} == {
        "chunked": 131072,
        "vllm": 131072,
        "old": 4096,
    }


def test_it_runs_again_with_the_same_tables(tmp_path: Path) -> None:
    """The saved file and the result's own mapping give the same run."""
    result = sq.run(SMALL)
    result.save(tmp_path / "r", figures=False)
    same_tables(sq.run(tmp_path / "r" / "scenario.json"), result)
    same_tables(sq.run(result.scenario), result)


def test_relative_paths_are_those_of_the_folder(tmp_path: Path) -> None:
    """A scenario that reads files runs again from its result, wherever that is."""
    parts = tmp_path / "project" / "parts"
    (parts / "llama").mkdir(parents=True)
    (parts / "llama" / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    (parts / "card.yaml").write_text(CARD, encoding="utf-8")
    (parts / "lengths.csv").write_text("tokens\n100\n200\n400\n", encoding="utf-8")
    file = tmp_path / "project" / "mine.yaml"
    file.write_text(FILES, encoding="utf-8")
    result = sq.run(file)
    result.save(tmp_path / "elsewhere" / "deep" / "r", figures=False)
    same_tables(sq.run(tmp_path / "elsewhere" / "deep" / "r" / "scenario.json"), result)


@pytest.mark.parametrize("name", sorted(packaged_scenarios()))
def test_packaged_scenarios_with_every_value_resolve_to_themselves(name: str) -> None:
    """The values of a packaged scenario are a scenario that has the same values."""
    file = packaged_scenarios()[name]
    values = sq.load_scenario(file).resolve().values
    assert from_mapping(json.loads(json.dumps(values)), base_dir=file.parent).resolve().values == values
