"""Mistakes that are found when files are read and versions looked up name file and line, or the flag, as well."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import simqueue
from simqueue.errors import FileError, InputError, Problem, about, inside, naming
from simqueue.scenario import from_mapping, load
from simqueue.scenario.overrides import apply, parse_override
from simqueue.scenario.traffic import make_traffic

SCENARIO = """\
model: llama-3.1-8b
gpu: h100-sxm
workload:
  trace:
    path: t.csv
    format: csv
  num_requests: 4
policies:
  real:
    engine: vllm
    version: "0.33.0"
  chunked: {scheduler: chunked}
"""
ROWS = "arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,10,5\n2,10,5\n3,10,5\n"
LENGTHS = """\
  arrivals: {process: poisson, rate_rps: 1}
  num_requests: 4
  prompt_tokens: {distribution: empirical, path: nope.csv}
  output_tokens: {distribution: constant, value: 5}
"""
TRACE = "  trace:\n    path: t.csv\n    format: csv\n  num_requests: 4\n"


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Write the scenario with one change, and its trace, and return the file."""

    def written(old: str = "", new: str = "", rows: bytes = ROWS.encode()) -> Path:
        (tmp_path / "t.csv").write_bytes(rows)
        file = tmp_path / "s.yaml"
        assert old in SCENARIO
        file.write_text(SCENARIO.replace(old, new, 1) if old else SCENARIO, encoding="utf-8")
        return file

    return written


def complaint(file: Path, *flags: str) -> str:
    """Return the only line of the error of loading a scenario or making its requests, without the folder."""
    with pytest.raises(InputError) as caught:
        make_traffic(load(file, flags).resolve())
    (line,) = str(caught.value).splitlines()
    return line.replace(f"{file.parent}{os.sep}", "")


def test_the_scenario_itself_is_fine(write: Any) -> None:
    """Without a change there is no error."""
    assert len(make_traffic(load(write()).resolve()).requests) == 4


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            '"0.33.0"',
            '"0.33.1"',
            "s.yaml:11: policies.real.version = '0.33.1': unknown version of vllm; nearest known: ",
        ),
        ('"0.33.0"', '"0.33.0"\n    use_v1: false', "s.yaml:12: policies.real.use_v1 = false: vllm 0.33.0 has only V1"),
        (
            '"0.33.0"',
            '"0.6.3"\n    watermark: 0.1',
            "s.yaml:12: policies.real.watermark = 0.1: V0 of vllm 0.6.3 has no",
        ),
        (
            '"0.33.0"',
            '"0.33.0"\n    max_num_batched_tokens: 8\n    max_num_seqs: 9',
            "s.yaml:12: policies.real.max_num_batched_tokens = 8: must be at least max_num_seqs = 9",
        ),
        (
            "num_requests: 4",
            "num_requests: 100",
            "s.yaml:7: workload.num_requests = 100: 100 requests are needed, t.",
        ),
        (
            "format: csv",
            "format: csv\n    limit: 5",
            "s.yaml:7: workload.trace.limit = 5: 5 requests are needed, t.c",
        ),
        (
            "path: t.csv",
            "path: u.csv",
            "s.yaml:5: workload.trace.path = 'u.csv': u.csv: no such file",
        ),
        (TRACE, LENGTHS, "s.yaml:6: workload.prompt_tokens.path = 'nope.csv': nope.csv: no such file"),
        ("llama-3.1-8b", "own.json", "s.yaml:1: model = 'own.json': own.json: cannot be read"),
        ("h100-sxm", "own.yaml", "s.yaml:2: gpu = 'own.yaml': own.yaml: cannot be read"),
        (
            "{scheduler: chunked}",
            "{scheduler: chunked, gpu: own.yaml}",
            "s.yaml:12: policies.chunked.gpu = 'own.yaml': ",
        ),
        (
            "workload:",
            "step_time: {kind: roofline, preset: p.yaml}\nworkload:",
            "s.yaml:3: step_time.preset = 'p.yaml': ",
        ),
    ],
)
def test_file_line_and_full_path(write: Any, old: str, new: str, line: str) -> None:
    """A file that cannot be read and a flag that a version lacks are reported at the key that names them."""
    assert complaint(write(old, new)).startswith(line)


@pytest.mark.parametrize(
    ("flag", "rest"),
    [
        ("policies.real.version=0.33.1", "unknown version of vllm"),
        ("workload.num_requests=9", "9 requests are needed, t.csv has 4 rows"),
        ("workload.trace.path=u.csv", "u.csv: no such file"),
        ("policies.chunkd.max_num_seqs=4", "unknown policy 'chunkd'; did you mean 'chunked'? known: real, chunked"),
        (
            "policies.chunked.step_time.seconds=1",
            "policies.chunked.step_time.kind: this key is missing; it must be con",
        ),
    ],
)
def test_the_flag_is_named_where_it_gave_the_value(write: Any, flag: str, rest: str) -> None:
    """A wrong value of a flag is reported with the flag, also if a file or a version shows that it is wrong."""
    assert complaint(write(), flag).startswith(f"--set {flag}: {rest}")


def test_each_workload_has_its_own_path(write: Any) -> None:
    """With several workloads the error names the workload."""
    file = write()
    text = SCENARIO.replace(TRACE, f"  a:\n{TRACE}".replace("\n  ", "\n    ").rstrip(" "), 1)
    file.write_text(text.replace("workload:", "workloads:").replace("num_requests: 4", "num_requests: 9"), "utf-8")
    assert complaint(file).startswith("s.yaml:8: workloads.a.num_requests = 9: 9 requests are needed")


def test_rows_of_a_trace_are_located_in_the_trace(write: Any) -> None:
    """A wrong row of a trace is reported with the file and line of the trace."""
    assert complaint(write(rows=f"{ROWS}x,1,1\n".encode())) == "t.csv:6: arrival_s 'x' is not a number"


@pytest.mark.parametrize(("before", "where"), [(b"", ""), (ROWS.encode() * 400, r" (after line ")])
def test_a_binary_file_is_no_text(write: Any, before: bytes, where: str) -> None:
    """A binary file is reported as such, with the last line that could be read."""
    line = complaint(write(rows=before + b"\xff\xfe\x00" * 9000))
    assert line.startswith(f"s.yaml:5: workload.trace.path = 't.csv': t.csv: not a UTF-8 text file{where}")
    assert "line 0" not in line


def test_python_has_paths_without_lines(tmp_path: Path) -> None:
    """In Python the same mistakes are reported with the full path."""
    data = {
        "model": "llama-3.1-8b",
        "gpu": "h100-sxm",
        "workload": {"trace": {"format": "csv", "path": "u.csv"}},
        "policies": {"a": {"engine": "vllm", "version": "0.33.1"}},
    }
    with pytest.raises(simqueue.InputError, match=r"^policies\.a\.version = '0\.33\.1': unknown version of vllm"):
        from_mapping(data, base_dir=tmp_path)
    with pytest.raises(simqueue.InputError, match=r"^workload\.trace\.path = 'u\.csv': u\.csv: no such file"):
        make_traffic(from_mapping(data, ["policies.a.version='0.33.0'"], base_dir=tmp_path).resolve())


def test_a_key_of_the_default_step_time_may_be_set_alone(write: Any) -> None:
    """Without a step time the default is the roofline; a flag can set one of its keys, for all policies or for one."""
    for flag in ("step_time.mfu=0.5", "policies.chunked.step_time.mfu=0.5"):
        scenario = load(write(), [flag])
        step_time = scenario.value_for("chunked", "step_time")
        assert (step_time.kind, step_time.mfu) == ("roofline", 0.5)
    kinds, _ = apply({}, [parse_override("step_time.mfu=0.5"), parse_override("step_time.kind=linear")])
    assert kinds == {"step_time": {"mfu": 0.5, "kind": "linear"}}


def test_flags_may_make_a_whole_new_policy(write: Any) -> None:
    """Flags can make a new policy if they say which scheduler it has, in any order."""
    scenario = load(write(), ["policies.new.max_num_seqs=3", "policies.new.scheduler=continuous"])
    assert list(scenario.policies) == ["real", "chunked", "new"]


def test_keys_are_put_together_from_inside_out() -> None:
    """Each level adds its keys to the path; an error without a key is not changed."""
    with pytest.raises(InputError, match=r"^a\.b\.c = 5: too much$") as caught, inside("a"), inside("b"):
        raise InputError("too much", "c", value=5)
    assert caught.value.problems == (Problem(("a", "b", "c"), "too much", "5"),)
    with pytest.raises(InputError, match=r"^too much$"), inside("a"):
        raise InputError("too much")
    with pytest.raises(InputError, match=r"^a: no file$"), naming("a"):
        raise FileError("no file")
    with pytest.raises(InputError, match=r"^gpu: unknown$") as caught, about("gpu"):
        raise InputError("unknown")
    assert caught.value.problems[0].path == ("gpu",)
