"""Same scenario, same seed: same bytes, in every process and with every hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import simqueue as sq

SCENARIO = {
    "name": "determinism",
    "seed": 7,
    "step_time": {
        "kind": "linear",
        "overhead_s": 2.1e-3,
        "per_prefill_token_s": 2e-5,
        "decode_base_s": 4e-4,
        "per_decode_s": 3e-5,
        "per_context_token_s": 1e-7,
    },
    "kv_cache": {"blocks": 70, "block_size": 16, "watermark": 0.02},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 40},
        "prompt_tokens": {"distribution": "lognormal", "median": 90, "sigma": 0.9, "min": 1, "max": 600},
        "output_tokens": {"distribution": "lognormal", "median": 40, "sigma": 0.6, "min": 1, "max": 300},
        "num_requests": 120,
    },
    "policies": {
        "static": {"scheduler": "static", "max_num_seqs": 8},
        "mixed": {"scheduler": "continuous", "max_num_seqs": 16, "max_num_batched_tokens": 512},
        "separate": {"scheduler": "continuous", "prefill": "separate", "max_num_seqs": 16},
        "chunked": {"scheduler": "chunked", "chunk_tokens": 64, "max_num_seqs": 16, "max_num_batched_tokens": 128},
        "shortest": {"scheduler": "chunked", "order": "shortest_output", "max_num_seqs": 16},
    },
}
SCRIPT = """
import json, sys
import simqueue as sq
result = sq.run(json.load(sys.stdin))
sys.stdout.buffer.write(result.to_json().encode())
sys.stdout.buffer.write(result.steps.to_csv(index=False, lineterminator="\\n").encode())
"""


def in_a_new_process(hash_seed: str) -> bytes:
    """Run the scenario in a fresh interpreter."""
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        command, input=json.dumps(SCENARIO).encode(), capture_output=True, env=environment, check=True
    )
    return done.stdout


def test_other_processes_and_hash_seeds_give_the_same_bytes() -> None:
    """Two interpreters with different hash seeds, and this one, print the same tables."""
    first, second = in_a_new_process("0"), in_a_new_process("4711")
    assert first == second
    here = sq.run(SCENARIO)
    assert first == here.to_json().encode() + here.steps.to_csv(index=False, lineterminator="\n").encode()
    assert here.requests["preemptions"].sum() > 0  # the pool was small enough to matter
    assert set(here.requests["status"]) == {"finished"}


def test_policies_do_not_disturb_each_other() -> None:
    """A policy's rows are the same alone and beside others: traffic is common, nothing else is shared."""
    together = sq.run(SCENARIO).requests
    for name, policy in SCENARIO["policies"].items():  # type: ignore[attr-defined] # a mapping of policies
        alone = sq.run(SCENARIO | {"policies": {name: policy}}).requests
        beside = together[together["policy"] == name].reset_index(drop=True)
        assert alone.equals(beside), name


def test_seed_decides_the_traffic() -> None:
    """Another seed gives other arrivals and lengths."""
    one, other = sq.run(SCENARIO).requests, sq.run(SCENARIO | {"seed": 8}).requests
    assert (one["arrival_s"] != other["arrival_s"]).any()
    assert (one["prompt_tokens"] != other["prompt_tokens"]).any()
