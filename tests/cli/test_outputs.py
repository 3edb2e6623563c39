"""What commands write: checked before the work, on every command alike, and several scenarios in one command."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from simqueue.cli import run_command, streams
from simqueue.cli.actions import run as run_action
from simqueue.cli.actions.common import print_json_text
from simqueue.cli.commands import COMMANDS
from simqueue.errors import RunError
from simqueue.outputs import reserved_folder
from simqueue.results.store import MARKER
from simqueue.scenario import Scenario

from ..helpers.toy_file import WriteToy, write_toy

INPUTS = {("calibrate", "table"), ("sweep", "design")}
WRITERS: dict[tuple[str, str], tuple[list[str], str]] = {
    ("run", "out"): (["run", "toy.yaml", "--no-figures", "--out"], ""),
    ("run", "stream"): (["run", "toy.yaml", "--stream"], ""),
    ("run", "export_trace"): (["run", "toy.yaml", "--json-summary", "--export-trace"], ".jsonl"),
    ("run", "write_baseline"): (["run", "toy.yaml", "--json-summary", "--write-baseline"], ".json"),
    ("compare", "write_baseline"): (["compare", "old.json", "toy.yaml", "--write-baseline"], ".json"),
    ("best", "out"): (["best", "toy.yaml", "--out"], ""),
    ("report", "out"): (["report", "toy.yaml", "-o"], ".html"),
    ("capacity", "figure"): (["capacity", "toy.yaml", "--figure"], ".png"),
    ("sweep", "out"): (["sweep", "toy.yaml", "--grid", "seed=1,2", "--out"], ""),
    ("sweep", "figure"): (["sweep", "toy.yaml", "--grid", "seed=1,2", "--figure"], ".png"),
    ("sensitivity", "out"): (["sensitivity", "toy.yaml", "--over", "tensor_parallel=1,2", "--out"], ""),
    ("sensitivity", "figure"): (["sensitivity", "toy.yaml", "--over", "tensor_parallel=1,2", "--figure"], ".png"),
    ("tune", "out"): (["tune", "toy.yaml", "--space", "max_num_seqs=1,2", "--slo", "p99_ttft_ms<=9", "--out"], ""),
    ("tune", "figure"): (
        ["tune", "toy.yaml", "--space", "max_num_seqs=1,2", "--slo", "p99_ttft_ms<=9", "--figure"],
        ".png",
    ),
    ("workload", "out"): (["workload", "toy.yaml", "--out"], ""),
    ("calibrate", "out"): (["calibrate", "steps.csv", "--kind", "linear", "--out"], ".yaml"),
    ("init", "file"): (["init"], ".yaml"),
}
"""Command and parameter of every output -> a command line that ends with the flag, and the suffix of a file."""
WORK = (
    "simqueue.experiment.runner.all_replications",
    "simqueue.cli.actions.best.select",
    "simqueue.cli.actions.changes.changes",
    "simqueue.cli.actions.tune.search",
    "simqueue.cli.actions.capacity.policy_loads",
    "simqueue.cli.actions.workload.describe",
    "simqueue.cli.actions.calibrate.read_step_means",
)
"""What must not be called before the outputs are checked."""


@pytest.fixture
def here(toy: WriteToy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a scenario the current one."""
    toy()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _fails(*_: Any, **__: Any) -> None:
    pytest.fail("the work has begun")


def _outputs() -> set[tuple[str, str]]:
    """Return the command and name of every parameter that is a path of its own, not a list."""
    found = set()
    for command in COMMANDS:
        for name, kind in get_type_hints(command.declared).items():
            if kind is Path or Path in get_args(kind):
                found.add((command.name, name))
    return found


def test_the_outputs_of_all_commands_are_listed() -> None:
    """A new command that writes a file must be added to `WRITERS`, and so to the tests below."""
    assert _outputs() - INPUTS == set(WRITERS)


@pytest.mark.parametrize("path", ["file/x", "file/deep/x", "/proc/x", "x" * 300])
@pytest.mark.parametrize("writer", WRITERS, ids="-".join)
def test_outputs_that_cannot_be_written_are_bad_input_before_the_work(
    writer: tuple[str, str], path: str, here: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2 and one line, nothing printed and nothing written, whatever the command."""
    (here / "file").write_text("mine")
    for name in WORK:
        monkeypatch.setattr(name, _fails)
    arguments, suffix = WRITERS[writer]
    shown = command(*arguments, f"{path}{suffix}")
    assert (shown.code, shown.out) == (2, "")
    (line,) = shown.err.splitlines()
    assert "is a file, not a folder" in line or "cannot be written: " in line
    assert sorted(one.name for one in here.iterdir()) == ["file", "toy.yaml"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "file"], "file: is a file; must be a new folder"),
        (["--out", "/"], "is the root of a file system"),
        (["--out", "."], "contains the current folder"),
        (["--out", "foreign"], "foreign: contains files that are no result of simqueue, such as toy/thesis"),
        (["--stream", "file"], "file/toy: file is a file, not a folder"),
        (["--stream", "foreign"], "foreign/toy: contains files that are no result of simqueue"),
        (["--out", "x/toy", "--stream", "x"], "x/toy: is x/toy or inside it, which is another output"),
        (["--out", "x", "--export-trace", "x/t.jsonl"], "x/t.jsonl: is x or inside it, which is another output"),
        (["--export-trace", "foreign"], "foreign: is a folder; must be a file"),
        (["--set", "name=" + "n" * 5000], "must be at most 200 characters"),
        (["--set", "policies={" + "p" * 300 + ": {scheduler: chunked}}", "--stream", "x"], "the name of a policy must"),
    ],
)
def test_run_checks_everything_first(
    arguments: list[str], words: str, here: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there already, and names that no folder can have, end a run before it begins, in one line."""
    (here / "file").write_text("mine")
    (here / "foreign" / "toy").mkdir(parents=True)
    (here / "foreign" / "toy" / "thesis").write_text("mine")
    monkeypatch.setattr("simqueue.experiment.runner.all_replications", _fails)
    shown = command("run", "toy.yaml", "--no-figures", *arguments)
    assert (shown.code, shown.out) == (2, "")
    (line,) = shown.err.splitlines()
    assert words in line
    assert sorted(one.name for one in here.iterdir()) == ["file", "foreign", "toy.yaml"]


def test_a_folder_that_another_run_writes_is_refused_at_the_start(here: Path, command: Callable[..., Any]) -> None:
    """The second of two runs into one folder says so; when the first has ended, it can be run."""
    with reserved_folder("results/toy", MARKER):
        shown = command("run", "toy.yaml", "--no-figures", "--quiet")
        assert (shown.code, shown.out) == (2, "")
        assert "results/toy: another run is writing to it (process " in shown.err
    assert command("run", "toy.yaml", "--no-figures", "--quiet").code == 0
    assert sorted(one.name for one in (here / "results").iterdir()) == ["toy"]


def test_missing_folders_are_made(here: Path, command: Callable[..., Any]) -> None:
    """Every output makes the folders around it, `init` and an exported trace too."""
    assert command("init", "a/b/first.yaml").code == 0
    shown = command("run", "toy.yaml", "--json-summary", "--export-trace", "c/d/t.jsonl", "--stream", "e/f")
    assert shown.code == 0
    found = sorted(path.relative_to(here).as_posix() for path in here.glob("[a-f]/**/*.*"))
    tables = [f"e/f/toy/vllm/{table}.parquet" for table in ("gaps", "requests", "steps")]
    assert found == [
        "a/b/first.yaml",
        "a/b/simqueue.schema.json",
        "c/d/t.jsonl",
        "e/f/toy/simqueue-stream.json",
        *tables,
    ]


def _three(here: Path) -> list[str]:
    text = (here / "toy.yaml").read_text()
    for name in ("one", "two", "three"):
        (here / f"{name}.yaml").write_text(text.replace("name: toy", f"name: {name}"))
    return ["one.yaml", "two.yaml", "three.yaml"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RunError("nothing can ever run"), "nothing can ever run"),
        (ZeroDivisionError("by 0"), "unexpected ZeroDivision"),
    ],
)
def test_a_failed_scenario_does_not_stop_the_others(
    error: Exception, words: str, here: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are run and written; there is one line for each failure, and the exit code is 1."""
    real = run_action.run_scenario

    def run(scenario: Scenario, **options: Any) -> Any:
        if scenario.name == "two":
            raise error
        return real(scenario, **options)

    monkeypatch.setattr(run_action, "run_scenario", run)
    shown = command("run", *_three(here), "--json-summary", "--no-figures", "--out", "all")
    assert shown.code == 1
    (line,) = shown.err.splitlines()
    assert line.startswith(f"error: two: {words}")
    assert [json.loads(one)["scenario"]["name"] for one in shown.out.splitlines()] == ["one", "three"]
    assert sorted(one.name for one in (here / "all").iterdir()) == ["one", "three"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seconds: 0.01", "seconds: -1", "seconds = -1"),
        ("  arrivals", "  trace: {format: csv, path: no.csv}\n  arrivals", "three.yaml:"),
        ("blocks: 49", "blocks: auto", "three.yaml"),
    ],
)
def test_all_scenarios_are_checked_before_the_first_runs(
    old: str, new: str, words: str, here: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad input in the last scenario, also what is seen only when values are resolved, ends the command with 2."""
    files = _three(here)
    text = (here / "three.yaml").read_text()
    assert old in text
    (here / "three.yaml").write_text(text.replace(old, new))
    monkeypatch.setattr(run_action, "run_scenario", _fails)
    shown = command("run", *files, "--no-figures")
    assert (shown.code, shown.out) == (2, "")
    assert words in shown.err
    assert not (here / "results").exists()


def test_names_in_other_languages_stay(here: Path, command: Callable[..., Any]) -> None:
    """Results are named after the file, with its letters, also if the file system stores accents apart."""
    text = (here / "toy.yaml").read_text().replace("name: toy\n", "")
    for name in ("été", "e\u0301te\u0301", "試験", "my run"):
        (here / f"{name}.yaml").write_text(text)
        assert command("run", f"{name}.yaml", "--no-figures", "--quiet").code == 0
    assert sorted(one.name for one in (here / "results").iterdir()) == ["my-run", "été", "試験"]


def test_tables_and_json_can_be_printed_in_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sign that stdout cannot encode is replaced, and JSON stays JSON of the same content."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    streams.prepare()
    sys.stdout.write("27.87 ±0 été\n")
    sys.stdout.flush()
    print_json_text(json.dumps({"é": "± 試😀"}, ensure_ascii=False))
    sys.stdout.flush()
    table, printed = raw.getvalue().decode("ascii").splitlines()
    assert table == r"27.87 +-0 \xe9t\xe9"
    assert json.loads(printed) == {"é": "± 試😀"}


@pytest.mark.parametrize(
    ("to", "code", "error"), [(">&-", 0, ""), (">/dev/full", 1, "error: stdout cannot be written: No space left")]
)
def test_a_stdout_that_takes_nothing_is_no_traceback(to: str, code: int, error: str) -> None:
    """Nothing is printed on a closed stdout; a full disk behind stdout is an error of one line."""
    line = f"{sys.executable} -m simqueue list traces {to}"
    done = subprocess.run(line, shell=True, check=False, capture_output=True, encoding="utf-8")  # noqa: S602 - a shell closes it
    assert done.returncode == code
    assert done.stderr.startswith(error)
    assert len(done.stderr.splitlines()) == bool(error)


@pytest.mark.parametrize("name", ["mine.yaml", "lengths.csv", "link.csv"])
def test_an_exported_trace_never_replaces_what_the_command_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The scenario, and the files that it names, stay as they are; a link to one is that file too."""
    lengths = "{distribution: exponential, mean: 800, min: 50, max: 100}"
    toy = write_toy(tmp_path, (lengths, "{distribution: empirical, path: lengths.csv}"))
    scenario = toy.rename(tmp_path / "mine.yaml")
    (tmp_path / "lengths.csv").write_text("tokens\n100\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "lengths.csv")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert run_command(["run", str(scenario), "--json-summary", "--export-trace", str(tmp_path / name)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith("this command reads the file; choose another one\n")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
