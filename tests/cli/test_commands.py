"""The command line: its output, and its exit codes."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simqueue.cli import run_command
from simqueue.errors import RunError

WriteToy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]


def _process(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, as a shell does."""
    return subprocess.run(
        [sys.executable, "-m", "simqueue", *arguments], check=False, capture_output=True, encoding="utf-8", cwd=cwd
    )


def _refused(capsys: Capture, *arguments: str) -> list[str]:
    """Return the lines on stderr of a command that exits with 2 and prints nothing on stdout."""
    assert run_command(list(arguments)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    lines = printed.err.splitlines()
    assert all(line.startswith("error: ") for line in lines)
    return lines


@pytest.mark.parametrize("command", ["run", "validate"])
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("scheduler", "shedulr", ":11: policies.vllm.shedulr: unknown key 'shedulr'; did you mean 'scheduler'?"),
        ("max_num_seqs", "max_seq", ":11: policies.vllm.max_seq: unknown key 'max_seq'; did you mean 'max_num_seqs'?"),
        ("seed: 3", "seed: 3\nseed: 4", ":3: the key 'seed' occurs twice"),
        ("rate_rps: 5", 'rate_rps: "10"', ":6: workload.arrivals.rate_rps = '10': must be a number > 0"),
        ("block_size: 16", "block_size: 16.5", ":4: kv_cache.block_size = 16.5: must be a whole number >= 1"),
        ("rate_rps: 5", "rate_rps: 0", ":6: workload.arrivals.rate_rps = 0: must be > 0"),
        ("rate_rps: 5", "rate_rps: .nan", ":6: workload.arrivals.rate_rps = .nan: must be a finite number > 0"),
        ("max_num_seqs: 8", "max_num_seqs: -1", ":11: policies.vllm.max_num_seqs = -1: must be >= 1"),
    ],
)
def test_bad_scenarios(toy: WriteToy, capsys: Capture, command: str, old: str, new: str, words: str) -> None:
    """A mistake in the file gives one line on stderr and exit code 2, before anything runs."""
    file = toy((old, new))
    (line,) = _refused(capsys, command, str(file))
    assert line.startswith(f"error: {file}{words}")


def test_set_overrides_the_file(toy: WriteToy, capsys: Capture) -> None:
    """The horizon of the file is used unless --set gives another one."""
    file = str(toy(("seed: 3", "horizon_s: 10")))
    for arguments, horizon_s in (([], 10), (["--set", "horizon_s=20"], 20)):
        assert run_command(["run", file, "--json-summary", *arguments]) == 0
        assert json.loads(capsys.readouterr().out)["scenario"]["horizon_s"] == horizon_s


def test_all_mistakes_of_all_files(toy: WriteToy, capsys: Capture, tmp_path: Path) -> None:
    """All files are checked before the first one runs."""
    other = tmp_path / "other.yaml"
    other.write_text("[]\n")
    file = toy(("seed: 3", "seed: x"), ("value: 10", "value: 0"))
    lines = _refused(capsys, "run", str(file), str(other))
    assert [line.split(":")[2] for line in lines] == ["2", "9", "1"]


def test_run_prints_table_and_files(toy: WriteToy, tmp_path: Path) -> None:
    """A run prints the comparison and the files it wrote, all on stdout, and they are there."""
    done = _process("run", str(toy()), "--no-figures", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    table, _, files = done.stdout.partition("written:\n")
    assert "vllm" in table
    assert re.search(r"completed\s+10\b", table)
    assert [Path(line.strip()).parent for line in files.splitlines()] == [Path("results/toy")] * len(files.splitlines())
    assert all((tmp_path / line.strip()).is_file() for line in files.splitlines())


def test_run_json_is_one_object_a_line(toy: WriteToy, tmp_path: Path) -> None:
    """With --json, stdout is one strict JSON object per scenario, and no file is written."""
    first = toy()
    second = tmp_path / "second.yaml"
    second.write_text(first.read_text().replace("name: toy", "name: second"))
    done = _process("run", str(first), str(second), "--json", "--seed", "5", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    objects = [json.loads(line, parse_constant=pytest.fail) for line in done.stdout.splitlines()]
    assert [found["scenario"]["name"] for found in objects] == ["toy", "second"]
    assert [found["seed"] for found in objects] == [5, 5]
    assert [len(found["requests"]) for found in objects] == [10, 10]
    assert not (tmp_path / "results").exists()


def test_json_summary_leaves_requests_out(toy: WriteToy, capsys: Capture, tmp_path: Path) -> None:
    """--json-summary has no requests; with --out, files are written and stdout stays JSON."""
    out = tmp_path / "kept"
    assert run_command(["run", str(toy()), "--json-summary", "--no-figures", "--out", str(out)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "requests" not in found
    assert found["summary"][0]["completed"] == 10
    assert any(out.iterdir())


def test_scenarios_of_the_same_name_are_an_error(toy: WriteToy, capsys: Capture, tmp_path: Path) -> None:
    """Two scenarios of the same name would overwrite each other's results."""
    copy = tmp_path / "copy.yaml"
    copy.write_text(toy().read_text())
    (line,) = _refused(capsys, "run", str(tmp_path / "toy.yaml"), str(copy))
    assert "the name 'toy' is used by another scenario" in line


def test_warnings_come_first(toy: WriteToy, capsys: Capture, tmp_path: Path) -> None:
    """A run in which no request finishes warns above the table and exits with 0."""
    file = str(toy(("seed: 3", "horizon_s: 0.001"), ("process: poisson, rate_rps: 5", "process: all_at_once")))
    assert run_command(["run", file, "--no-figures", "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("warning: ")


def test_packaged_scenario_by_name(capsys: Capture) -> None:
    """A packaged scenario runs by its name."""
    assert run_command(["run", "module08", "--json-summary", "--set", "horizon_s=1"]) == 0
    assert json.loads(capsys.readouterr().out)["scenario"]["name"] == "module08"


def test_a_scenario_from_standard_input(toy: WriteToy, tmp_path: Path) -> None:
    """`-` reads the scenario from a pipe; its paths start at the current folder, and its name is the default one."""
    lengths = "{distribution: exponential, mean: 800, min: 50, max: 100}"
    text = toy((lengths, "{distribution: empirical, path: lengths.csv}"), ("name: toy\n", "")).read_text()
    (tmp_path / "lengths.csv").write_text("tokens\n100\n")
    done = subprocess.run(
        [sys.executable, "-m", "simqueue", "run", "-", "--json-summary"],
        input=text,
        check=False,
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["scenario"]["name"] == "scenario"


def test_init_validate_run(tmp_path: Path) -> None:
    """The file that init writes is valid and can be run; an existing file is not overwritten."""
    first = _process("init", cwd=tmp_path)
    assert first.returncode == 0
    assert _process("validate", "scenario.yaml", cwd=tmp_path).returncode == 0
    done = _process("run", "scenario.yaml", "--no-figures", "--set", "workload.arrivals_for_s=2", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    before = (tmp_path / "scenario.yaml").read_bytes()
    again = _process("init", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == "error: scenario.yaml: exists already and is not overwritten; give another file name\n"
    assert (tmp_path / "scenario.yaml").read_bytes() == before
    (modeline, _, _) = before.decode().partition("\n")
    schema = tmp_path / modeline.removeprefix("# yaml-language-server: $schema=")
    assert json.loads(schema.read_text())["title"] == "simqueue scenario"


def test_init_keeps_a_foreign_file_of_the_schemas_name(capsys: Capture, tmp_path: Path) -> None:
    """A file that is no schema of simqueue is not replaced, and nothing is written beside it."""
    (tmp_path / "simqueue.schema.json").write_text("{}")
    (line,) = _refused(capsys, "init", str(tmp_path / "first.yaml"))
    assert "exists already and is no schema of simqueue" in line
    assert [path.name for path in tmp_path.iterdir()] == ["simqueue.schema.json"]


def test_init_where_nothing_can_be_written(capsys: Capture, tmp_path: Path) -> None:
    """A path below a file is bad input."""
    (tmp_path / "file").write_text("")
    (line,) = _refused(capsys, "init", str(tmp_path / "file" / "scenario.yaml"))
    assert line.endswith("file is a file, not a folder")


def test_validate_prints_resolved_values(toy: WriteToy, capsys: Capture) -> None:
    """validate prints OK and every policy's values with their origin."""
    assert run_command(["validate", str(toy()), "--set", "policies.vllm.order=priority"]) == 0
    out = capsys.readouterr().out
    assert "toy.yaml: OK (vllm)" in out
    assert re.search(r"max_num_seqs\s+8 \(file\)", out)
    assert re.search(r"order\s+priority \(--set\)", out)
    assert re.search(r"kv_cache\.watermark\s+0\.0 \(default\)", out)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("policies", ["static", "continuous", "chunked", "max_num_batched_tokens"]),
        ("models", ["llama-3.1-8b", "llama-3.1-70b", "qwen3-8b"]),
        ("gpus", ["h100-sxm", "h200-sxm", "a100-80gb"]),
        ("presets", ["ideal"]),
        ("traces", ["azure-2023-conversation"]),
        ("scenarios", ["module08"]),
    ],
)
def test_list(capsys: Capture, what: str, words: list[str]) -> None:
    """Each list has the names that a scenario can use."""
    assert run_command(["list", what]) == 0
    out = capsys.readouterr().out
    assert [word for word in words if word not in out] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "x.yaml", "--sed", "5"], "--seed"),
        (["frobnicate"], "frobnicate"),
        (["run"], "Missing argument"),
        (["run", "x.yaml", "--seed", "five"], "--seed"),
        (["run", "no-such-file.yaml"], "no-such-file.yaml: there is no such file"),
        (["run", "modul08"], "unknown scenario 'modul08'; did you mean 'module08'?"),
        (["run", "module08", "--workers", "0"], "Invalid value for '--workers'"),
        (["run", "module08", "--replications", "0"], "Invalid value for '--replications'"),
        (["run", "module08", "--set", "seed"], "--set seed: write it as KEY=VALUE"),
        (["run", "module08", "--json", "--json-summary"], "--json and --json-summary: only one of them can be given"),
    ],
)
def test_usage_errors(capsys: Capture, arguments: list[str], words: str) -> None:
    """A wrong command line gives one line and exit code 2."""
    (line,) = _refused(capsys, *arguments)
    assert words in line


def _raise(error: BaseException) -> Callable[..., None]:
    def run(*_: object, **__: object) -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (RunError("nothing can ever run"), 1, "error: nothing can ever run\n"),
        (
            ZeroDivisionError("division\nby zero"),
            1,
            "error: unexpected ZeroDivisionError: division by zero (for the traceback, run again with --debug)\n",
        ),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
    ],
)
def test_failures(
    toy: WriteToy, capsys: Capture, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, line: str
) -> None:
    """A failed run exits with 1 and an interrupted run with 130, each with one line and no traceback."""
    monkeypatch.setattr("simqueue.cli.actions.run.run_scenario", _raise(error))
    assert run_command(["run", str(toy())]) == code
    assert capsys.readouterr() == ("", line)


def test_debug_shows_the_traceback(toy: WriteToy) -> None:
    """With --debug, an error comes with its traceback and the same exit code."""
    done = _process("validate", str(toy(("value: 10", "value: 0"))), "--debug")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")


def test_version() -> None:
    """--version prints the name, the version, and whether the engine is compiled."""
    done = _process("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"simqueue \S+, (compiled|pure Python)\n", done.stdout)


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], [], ["list"], ["run", "-h"], ["list", "gpus", "-h"]])
def test_help(arguments: list[str]) -> None:
    """Help goes to stdout with exit code 0; without a command, help is shown too."""
    done = _process(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: simqueue")


@pytest.mark.parametrize("group", [[], ["list"]])
def test_summaries_are_not_cut(group: list[str]) -> None:
    """The summary of each command fits on its line in the list of commands."""
    _, _, summaries = _process(*group, "--help").stdout.partition("Commands:\n")
    assert summaries
    assert "..." not in summaries


def _errors_without_a_reader(module: str, *arguments: str) -> str:
    """Return what a command prints on stderr if the reader of its stdout goes away at once."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        return process.stderr.read()


def test_closed_pipe_is_no_traceback(toy: WriteToy) -> None:
    """A reader that closes its pipe early, as `head` does, causes no traceback."""
    assert _errors_without_a_reader("simqueue", "run", str(toy()), "--json") == ""


@pytest.mark.parametrize("arguments", [["simqueue.conformance", "--help"], ["simqueue", "list", "models"]])
def test_closed_pipe_in_other_commands(arguments: list[str]) -> None:
    """A closed pipe causes no traceback in commands that print without a table either."""
    assert _errors_without_a_reader(*arguments) == ""


def test_interrupted_while_loading() -> None:
    """Ctrl-C while modules are being imported gives one line and exit code 130."""
    code = (
        "import builtins, sys; real = builtins.__import__\n"
        "def slow(name, *rest, **more):\n"
        "    if name == 'typer': raise KeyboardInterrupt\n"
        "    return real(name, *rest, **more)\n"
        "builtins.__import__ = slow\n"
        "from simqueue.cli import main; main(['list', 'gpus'])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            "path: rows.csv}\n  num_requests: 3",
            ":7: workload.num_requests = 3: 3 requests are needed, rows.csv has 2 r",
        ),
        ("path: gone.csv}", ":6: workload.trace.path = 'gone.csv': gone.csv: no such file"),
        ("path: rows.csv, columns: {prompt_tokens: who}}", "rows.csv: column 'who' is missing, columns found: 'arr"),
    ],
)
def test_validate_reads_the_trace(toy: WriteToy, capsys: Capture, change: str, words: str) -> None:
    """Errors in a trace are reported by validate, run and workload in the same words."""
    file = toy()
    kept, _, _ = file.read_text().partition("  arrivals")
    policies = "policies:\n  vllm: {scheduler: chunked}\n"
    file.write_text(f"{kept}  trace: {{format: csv, {change}\n{policies}")
    (file.parent / "rows.csv").write_text("arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,10,5\n")
    (line,) = _refused(capsys, "validate", str(file))
    assert words in line
    assert _refused(capsys, "run", str(file), "--no-figures", "--quiet") == [line]
    assert _refused(capsys, "workload", str(file)) == [line]


def test_rejections_are_explained(toy: WriteToy, capsys: Capture, tmp_path: Path) -> None:
    """If the pool is too small for all requests, a warning gives their number and the sizes of the first."""
    file = toy(("blocks: 49", "blocks: 2"), ("num_requests: 10", "num_requests: 40"))
    assert run_command(["run", str(file), "--no-figures", "--quiet", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    why = r"prompt \d+ \+ output 10 needs \d blocks, the pool has 2$"
    assert re.search(rf"^warning: vllm: 40 of 40 requests rejected; first reason: {why}", out, re.MULTILINE)
    assert "low load" not in out
    assert "overloaded (" not in out
