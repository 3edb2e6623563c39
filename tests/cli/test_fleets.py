"""Fleets on the command line: the list of routers, what `explain` and `validate` show, and the lines of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simqueue.cli import run_command
from simqueue.routing import ROUTERS
from simqueue.routing.registry import versions

Capture = pytest.CaptureFixture[str]

SCENARIO = """\
model: llama-3.1-8b
gpu: h100-sxm
workload: {requests: [{arrival_s: 0, prompt_tokens: 10, output_tokens: 5}]}
policies:
  alone: {scheduler: chunked}
  equal:
    scheduler: chunked
    fleet: {replicas: 3, router: least_kv, signals: {every_s: 0.5}}
  mixed:
    engine: vllm
    version: "0.33.0"
    fleet:
      groups:
        big: {replicas: 2, gpu: h200-sxm, tensor_parallel: 2}
        small: {weight: 0.5, max_model_len: 8000}
      events: [{at_s: 3, replica: big-1, event: fail, repair_s: 5}]
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Write the scenario."""
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return str(path)


def told(capsys: Capture, *arguments: str) -> Any:
    """Return the JSON that a command prints."""
    assert run_command([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def words_after(text: str, title: str) -> list[list[str]]:
    """Return the words of the lines below a line with these words, down to the next empty one."""
    below = text.partition(title)[2].split("\n\n")[0]
    return [line.split() for line in below.splitlines()[1:]]


def test_every_router_is_listed_with_its_keys(capsys: Capture) -> None:
    """The list has each registered router with what it does, its keys and versions."""
    rows = {row["router"]: row for row in told(capsys, "list", "routers")}
    assert list(rows) == sorted(ROUTERS)
    for kind, router in ROUTERS.items():
        row = rows[kind]
        assert row["what it does"] == router.summary
        keys = [field.alias or key for key, field in router.Settings.model_fields.items()]
        assert row["its keys"].split(", ") == (keys or [""])
        assert row["checked against"] == router.checked
        for version in row["versions"].split(", ") if row["versions"] else ():
            router.Settings.model_validate({"version": version})
    assert run_command(["list", "routers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["router", *sorted(ROUTERS)]


def test_versions_are_the_choices_of_a_key() -> None:
    """A router has versions if its key `version` is a choice."""
    assert versions(ROUTERS["round_robin"]) == []
    assert versions(ROUTERS["dynamo"]) == ["1.6.1"]


def test_explain_shows_the_fleets_of_a_scenario(file: str, capsys: Capture) -> None:
    """Groups with their hardware, the signals and whether the router reads them, keys with their origin, and events."""
    assert run_command(["explain", file]) == 0
    text = capsys.readouterr().out
    assert "alone: one replica, without a router" in text
    assert f"equal: 3 replicas behind least_kv: {ROUTERS['least_kv'].summary}" in text
    mixed = text.partition("mixed: 3 replicas behind round_robin")[2]
    big, small = words_after(mixed, "longest request (tokens)")[-2:]
    assert (big[:3], big[-5:-2]) == (["big", "2", "1"], ["2", "x", "h200-sxm"])
    assert (small[:3], small[-1]) == (["small", "1", "0.5"], "8,000")
    signals = {words[0]: words[1:] for words in words_after(text, "signal ")}
    assert signals["kv_used"] == ["yes", "0.5", "0", "policy", "and", "default"]
    assert signals["running"][0] == "no"
    assert "\n  router.kind" in mixed
    assert words_after(mixed, "at (s)") == [["3", "big-1", "fail", "5", "-"]]


def test_explain_gives_the_fleets_as_json(file: str, capsys: Capture) -> None:
    """The JSON has the same tables; a policy without a fleet has null."""
    found = told(capsys, "explain", file, "--set", "policies.equal.fleet.replicas=4")
    assert found["alone"] is None
    assert found["equal"]["replicas"][0]["replicas"] == 4
    assert [row["group"] for row in found["mixed"]["replicas"]] == ["big", "small"]
    assert found["mixed"]["events"][0]["replica"] == "big-1"
    origins = {row["key"]: row["from"] for row in found["equal"]["keys"]}
    assert (origins["router.kind"], origins["in_flight"]) == ("policy", "default")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "explain: give --model and --gpu for a step, or a scenario for its fleets"),
        (["--model", "llama-3.1-8b"], "explain: give --model and --gpu for a step, or a scenario for its fleets"),
        (
            ["vllm-versions"],
            "vllm-versions: no policy has a fleet; give one with fleet: {replicas: N}, or --model and ",
        ),
        (
            ["FILE", "--decode", "3"],
            "explain: give a scenario for its fleets, or --model and --gpu for a step; not both",
        ),
        (["FILE", "--set", "fleet.replica=3"], "--set fleet.replica=3: unknown key 'replica'; did you mean 'replicas'"),
    ],
)
def test_what_cannot_be_explained(arguments: list[str], line: str, file: str, capsys: Capture) -> None:
    """What is missing or too much is one line."""
    assert run_command(["explain", *(file if word == "FILE" else word for word in arguments)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {line}")


def test_validate_shows_the_room_of_each_group(file: str, capsys: Capture) -> None:
    """The table of values has those of the fleet, and what each group has room for."""
    assert run_command(["validate", file]) == 0
    rows = {line.partition("  ")[0]: line.split("  ") for line in capsys.readouterr().out.splitlines()}
    assert rows["fleet.groups.big.gpu"][-1].strip() == "h200-sxm (group)"
    assert rows["small: longest request (tokens)"][-1].strip() == "8,000"
    assert rows["gpu"][-1].strip() == "by group"
    assert rows["version"][-1].strip() == "0.33.0 (file)"  # what groups have in common is in one row
    assert "fleet.groups.big.version" not in rows
    assert "fleet.router.ties" in rows


def test_a_run_names_the_engine_of_each_group(file: str, tmp_path: Path, capsys: Capture) -> None:
    """A run prints one line for the engine of each group."""
    assert run_command(["run", file, "--out", str(tmp_path / "out"), "--no-figures", "--quiet"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("mixed")]
    assert [line.partition(" = ")[0] for line in lines[:2]] == ["mixed, big", "mixed, small"]
