"""The engine as it is installed, compiled where it can be, against the same Python files uncompiled."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import simqueue

ROOT = Path(__file__).parents[2]
HERE = Path(simqueue.__file__).parents[1]
SCENARIO = """\
name: both-ways
seed: 3
step_time: {kind: linear, overhead_s: 0.004, per_prefill_token_s: 2.0e-5, per_decode_s: 5.0e-5,
            per_context_token_s: 1.0e-7}
kv_cache: {layout: paged, block_size: 16, blocks: 400}
horizon_s: 30
workload:
  sessions: {arrivals: {process: poisson, rate_rps: 20}, num_sessions: 200, think_s: 0.5,
             turns: {distribution: uniform, low: 1, high: 4}}
  prompt_tokens: {distribution: lognormal, median: 200, sigma: 0.9, min: 4, max: 1500}
  output_tokens: {distribution: geometric, mean: 60}
  timeout_s: 2
  retry: {limit: 1, backoff_s: 0.25}
policies:
  static: {scheduler: static, max_num_seqs: 16}
  continuous: {scheduler: continuous, max_num_seqs: 16, max_num_batched_tokens: 2048, prefill: separate}
  chunked: {scheduler: chunked, max_num_seqs: 32, max_num_batched_tokens: 256, order: shortest_prompt,
            kv_cache: {layout: contiguous, block_size: 16, blocks: 400}}
  slots: {scheduler: llamacpp, n_parallel: 8}
  v0: {engine: vllm, version: "0.6.3", max_num_seqs: 32, max_num_batched_tokens: 4096, max_model_len: 4096}
  v1: {engine: vllm, version: "0.33.0", max_num_seqs: 32, max_num_batched_tokens: 512, max_model_len: 4096,
       async_scheduling: true, enable_prefix_caching: true}
"""


def run(code: str, *arguments: str, path: Path) -> str:
    """Run Python code in a process of its own, with `path` before what is installed; return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(path), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sources_and_installed_package_leave_the_same_bytes(tmp_path: Path) -> None:
    """Sessions that wait, give up and ask again, through every scheduler: the same requests and summary to a byte."""
    scenario = tmp_path / "both.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    code = "import sys; from simqueue.cli import run_command; sys.exit(run_command(sys.argv[1:]))"
    asked = ("run", str(scenario), "--json", "--quiet")
    installed, sources = (json.loads(run(code, *asked, path=path)) for path in (HERE, ROOT))
    for row in installed["summary"]:
        assert min(row["completed"], row["timed_out"]) > 10, row["policy"]
    for part in ("scenario", "summary", "requests", "warnings"):
        assert json.dumps(installed[part]) == json.dumps(sources[part]), part


def test_the_sources_run_uncompiled() -> None:
    """What the installed package is compared with is Python."""
    code = "import simqueue; print(simqueue.__compiled__, simqueue.__file__)"
    assert run(code, path=ROOT).split() == ["False", str(ROOT / "simqueue" / "__init__.py")]


def test_the_installed_engine_is_compiled_where_there_is_a_compiler() -> None:
    """A wheel holds the compiled loop if it was built where a C compiler and Python's headers are."""
    installed = not Path(simqueue.__file__).is_relative_to(ROOT / "simqueue")
    compiler = shutil.which("gcc") is not None and Path(sysconfig.get_path("include"), "Python.h").exists()
    wanted = not os.environ.get("SIMQUEUE_PURE")
    assert simqueue.__compiled__ is (installed and compiler and wanted)
