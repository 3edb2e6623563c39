"""Completion in a shell, and lists for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simqueue.cli import run_command
from simqueue.cli.app import application
from simqueue.cli.options import scenarios_from


def completed(words: str) -> list[str]:
    """Return what bash would offer for the last word."""
    variables = {"_SIMQUEUE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    return CliRunner().invoke(application(None), [], prog_name="simqueue", env=variables).output.split()


def test_commands_and_options_are_completed() -> None:
    """The first word is a command, a word with dashes an option of the command."""
    assert completed("simqueue comp") == ["compare"]
    assert completed("simqueue run --exp") == ["--export-trace"]


def test_scenarios_are_packaged_names_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of the package, or YAML files and folders below the current one."""
    (tmp_path / "azures").mkdir()
    (tmp_path / "azures" / "one.yaml").touch()
    (tmp_path / "azure.yml").touch()
    (tmp_path / "azure.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert scenarios_from("az") == ["azure-2023-conversation", "azure.yml", "azures/"]
    assert scenarios_from("azures/") == ["azures/one.yaml"]
    assert scenarios_from("nowhere/x") == []


@pytest.mark.parametrize("what", ["policies", "engines", "models", "gpus", "presets", "traces", "scenarios"])
def test_lists_as_json_have_all_rows_and_columns(capsys: pytest.CaptureFixture[str], what: str) -> None:
    """A list for programs has one object per line of the table below its head."""
    assert run_command(["list", what, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert run_command(["list", what]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [next(iter(row.values())) for row in rows]
    assert all(row.keys() == rows[0].keys() for row in rows)
