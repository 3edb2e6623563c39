"""Promises of export and replay: the requests of any run, replayed, give the same run to the last digit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import simqueue as sq
from simqueue.cli import run_command
from simqueue.errors import InputError

from .conftest import MANY_SEATS, constant

STEP = 0.01
LENGTHS = {
    "prompt_tokens": {"distribution": "lognormal", "median": 60, "sigma": 1.0, "max": 500},
    "output_tokens": {"distribution": "geometric", "mean": 15},
}
OPEN = {"arrivals": {"process": "gamma", "rate_rps": 30.0, "cv": 2.0}, "num_requests": 150, **LENGTHS}
TALK = {
    "sessions": {
        "arrivals": {"process": "poisson", "rate_rps": 4.0},
        "num_sessions": 12,
        "turns": constant(3),
        "think_s": {"distribution": "exponential", "mean_s": 0.3},
    },
    "system_prompt": {"tokens": 40, "variants": 2},
    **LENGTHS,
}
KINDS: dict[str, dict[str, Any]] = {
    "open": {"workload": OPEN},
    "listed": {
        "workload": {
            "requests": [
                {"id": "a", "arrival_s": 0.1, "prompt": [[7, 0, 64]], "output_tokens": 9, "output_stream": 8},
                {"id": "b", "arrival_s": 0.1, "prompt": [[7, 0, 64], [8, 0, 9]], "output_tokens": 9, "priority": -2},
                {"id": "c", "arrival_s": 0.3, "prompt_tokens": 9, "output_tokens": 60, "timeout_s": 0.2, "class": "x"},
            ]
        }
    },
    "users": {"workload": {"users": {"count": 9, "think_s": 0.1}, "num_requests": 120, **LENGTHS}},
    "zero think": {"workload": {"users": {"count": 9}, "num_requests": 120, **LENGTHS}},
    "sessions": {"workload": TALK},
    "gate": {"workload": {**OPEN, "max_concurrency": 3, "timeout_s": 0.7}},
    "retries": {"workload": {**OPEN, "timeout_s": 0.4, "retry": {"limit": 2, "backoff_s": 0.1, "jitter": 1.0}}},
    "mixed": {
        "workloads": {
            "chat": {**TALK, "slo": {"ttft_ms": 100}, "priority": -1},
            "batch": {**OPEN, "classes": {"gold": {"weight": 1, "timeout_s": 0.5}, "free": {"weight": 3}}},
        }
    },
    "horizon": {"workload": OPEN, "horizon_s": 2.5},
}
POLICIES = {
    "chunked": {**MANY_SEATS, "max_num_seqs": 6, "order": "priority"},
    "vllm": {"engine": "vllm", "version": "0.33.0", "max_num_seqs": 6, "max_num_batched_tokens": 256},
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_played_again_is_the_same_run(kind: str, policy: str, tmp_path: Path) -> None:
    """For any source: the exported requests give byte-identical tables of requests, steps and summary."""
    base = {
        "step_time": {"kind": "linear", "overhead_s": 0.004, "per_prefill_token_s": 1e-5, "decode_base_s": 0.0}
        | {"per_decode_s": 3e-4, "per_context_token_s": 1e-7},
        "kv_cache": {"layout": "paged", "block_size": 16, "blocks": 300},
        "policies": {policy: POLICIES[policy]},
        "seed": 5,
    }
    first = sq.run({**base, **KINDS[kind]}, check=True)
    trace = tmp_path / "trace.jsonl"
    assert first.export_trace(trace) == len(first.requests)
    played = {"trace": {"format": "jsonl", "path": str(trace), "origin": "file"}}
    again = sq.run({**base, "workload": played, "horizon_s": KINDS[kind].get("horizon_s")}, check=True)
    pd.testing.assert_frame_equal(first.requests, again.requests, check_exact=True)
    pd.testing.assert_frame_equal(first.steps, again.steps, check_exact=True)
    # the offered load is known for distributions and not for recorded requests; limits are not part of a trace
    ignored = {"load", "binding", "overloaded", "request_goodput", "good_share"}
    summaries = [made.summary.drop(columns=list(ignored & {*made.summary})) for made in (first, again)]
    pd.testing.assert_frame_equal(*summaries, check_exact=True)


def test_export_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--export-trace writes the file and names it; a scenario file beside it can replay it."""
    scenario = {
        "step_time": {"kind": "constant", "seconds": STEP},
        "kv_cache": {"layout": "paged", "block_size": 16, "blocks": 300},
        "workload": {"users": {"count": 2}, "num_requests": 7, **LENGTHS},
        "policies": {"chunked": MANY_SEATS},
    }
    file, trace = tmp_path / "first.yaml", tmp_path / "asked.jsonl"
    file.write_text(json.dumps(scenario))
    arguments = ["run", str(file), "--out", str(tmp_path / "out"), "--no-figures", "--export-trace", str(trace)]
    assert run_command(arguments) == 0
    assert str(trace) in capsys.readouterr().out
    rows = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [row["request_id"] for row in rows][:2] == ["user-0.0", "user-1.0"]
    assert len(rows) == 7
    scenario["workload"] = {"trace": {"format": "jsonl", "path": "asked.jsonl", "origin": "file"}}
    file.write_text(json.dumps(scenario))
    assert run_command(["run", str(file), "--json-summary"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"][0]["completed"] == 7


def test_export_of_a_run_that_is_not_there(tmp_path: Path) -> None:
    """A policy or replication that was not run is an error that lists the policies, and a bad path one line."""
    result = sq.run(
        {
            "step_time": {"kind": "constant", "seconds": STEP},
            "kv_cache": {"layout": "paged", "block_size": 16, "blocks": 300},
            "workload": {"requests": [{"arrival_s": 0, "prompt_tokens": 3, "output_tokens": 2}]},
            "policies": {"chunked": MANY_SEATS},
        }
    )
    with pytest.raises(InputError, match=r"unknown policy 'static'; known: chunked"):
        result.export_trace(tmp_path / "x.jsonl", policy="static")
    with pytest.raises(InputError, match=r"policy 'chunked' has no replication 1; known: 0"):
        result.export_trace(tmp_path / "x.jsonl", replication=1)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file, not a folder"):
        result.export_trace(tmp_path / "file" / "x.jsonl")
