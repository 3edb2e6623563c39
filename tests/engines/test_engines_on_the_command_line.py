"""What the command line says of engines: the versions that are known, resolved flags, and where each comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simqueue.cli import run_command
from simqueue.engines.vllm_facts import vllm_versions
from simqueue.scenario import load
from simqueue.scenario.library import find

SCENARIO = """\
name: engines
step_time: {kind: constant, seconds: 0.01}
kv_cache: {blocks: 100}
max_model_len: 1000
workload: {requests: [{id: a, arrival_s: 0, prompt_tokens: 10, output_tokens: 2}]}
policies:
  new: {engine: vllm, version: "0.33.0", max_num_seqs: 7}
  old: {engine: vllm, version: "0.6.3"}
  own: {scheduler: chunked}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a scenario with two versions and a scheduler."""
    path = tmp_path / "engines.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: Any, code: int = 0) -> str:
    """Run a command and return what it printed."""
    assert run_command([str(argument) for argument in arguments]) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


def test_list_engines_names_every_version(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each known version has a row with its source."""
    monkeypatch.setenv("COLUMNS", "250")
    lines = shown(capsys, "list", "engines").splitlines()
    for version in vllm_versions():
        assert sum(line.split()[:2] == ["vllm", version] for line in lines) == 1


def test_run_prints_the_resolved_flags_of_each_engine(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is one line per policy with an engine, above the comparison, and none for other policies.

    On a terminal that is wide enough: other lines are broken.
    """
    monkeypatch.setenv("COLUMNS", "400")
    out = shown(capsys, "run", file, "--no-figures", "--quiet", "--out", tmp_path / "out")
    (new,) = [line for line in out.splitlines() if line.startswith("new = vllm 0.33.0 (V1, server): ")]
    (old,) = [line for line in out.splitlines() if line.startswith("old = vllm 0.6.3 (V0, server): ")]
    for flag in ("max_num_seqs 7", "scheduler_reserve_full_isl true", "async_scheduling true", "watermark 0.0"):
        assert flag in new
    assert "max_num_batched_tokens 2048" in old
    assert "async_scheduling" not in old
    assert "own =" not in out


def test_validate_says_where_each_flag_comes_from(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The origin of a flag is the file or the version, and the sources of the versions are below."""
    monkeypatch.setenv("COLUMNS", "250")
    out = shown(capsys, "validate", file)
    assert "7 (file)" in out
    assert "256 (vllm 0.6.3)" in out
    assert "  from vllm 0.33.0: vllm/engine/arg_utils.py" in out


def test_an_unknown_version_is_one_line_with_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown version is rejected before anything runs, with the nearest known versions and exit code 2."""
    path = tmp_path / "wrong.yaml"
    path.write_text(SCENARIO.replace("0.33.0", "0.32.0"), encoding="utf-8")
    err = shown(capsys, "run", path, code=2)
    assert len(err.splitlines()) == 1
    assert "0.31.0 and 0.33.0" in err


def test_packaged_scenario_plays_different_engines() -> None:
    """The packaged scenario has four versions, with V0 and V1, both modes and two budgets among them."""
    scenario = load(find("vllm-versions"))
    resolved = [policy.engine for policy in scenario.resolve().policies]
    values = [engine.values for engine in resolved if engine is not None]
    assert len(values) == 4
    assert {value["use_v1"] for value in values} == {True, False}
    assert {bool(value.get("async_scheduling")) for value in values} == {True, False}
    assert {value["max_num_batched_tokens"] for value in values} == {2048, 8192}


@pytest.mark.parametrize("written", ["0.33", "0.10"])
def test_a_version_that_reads_as_a_number_is_to_be_quoted(
    written: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """YAML reads 0.10 as the number 0.1; the error says that a version must be in quotes."""
    file.write_text(SCENARIO.replace('"0.33.0"', written), encoding="utf-8")
    line = shown(capsys, "validate", file, code=2)
    assert "policies.new.version = " in line
    assert "must be text, written in quotes" in line
