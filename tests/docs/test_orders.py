"""What `order: shortest_prompt` costs: the table of the semantics page, measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import simqueue

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "semantics.md").read_text(encoding="utf-8")
SECTION = PAGE.split("### What an order costs")[1].split("\n## ")[0]


def scenario() -> dict[str, Any]:
    """Return the scenario of the section."""
    (text,) = re.findall(r"```yaml\n(.*?)```", SECTION, flags=re.DOTALL)
    keys: dict[str, Any] = YAML(typ="safe").load(text)
    return keys


def measured(keys: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Return mean TTFT and the longest wait of a long prompt by policy, in seconds."""
    requests = simqueue.run(keys).requests
    requests["wait_s"] = requests["first_scheduled_s"] - requests["arrival_s"]
    found = {}
    for policy, mine in requests.groupby("policy"):
        assert (mine["status"] == "finished").all()
        found[str(policy)] = mine["ttft_ms"].mean() / 1000, mine[mine["prompt_tokens"] == 1024]["wait_s"].max()
    return found


def test_the_table_is_what_the_scenario_gives() -> None:
    """The mean falls, and the longest wait of the long prompts rises by more."""
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) s \| ([\d.]+) s \|$", SECTION, flags=re.MULTILINE)
    table = {name: (float(mean_s), float(longest_s)) for name, mean_s, longest_s in rows}
    assert {name: tuple(round(value, 2) for value in pair) for name, pair in measured(scenario()).items()} == table
    (mean_s, longest_s), (mean_short_s, longest_short_s) = table["fcfs"], table["shortest_prompt"]
    assert mean_short_s < mean_s
    assert longest_short_s - longest_s > mean_s - mean_short_s


def test_with_equal_steps_the_mean_stays_and_the_longest_wait_grows() -> None:
    """Every request takes ten steps, so who goes first changes no sum of waits, only whose they are."""
    keys = scenario() | {"step_time": {"kind": "constant", "seconds": 0.0253}}
    found = measured(keys)
    assert found["shortest_prompt"][0] == pytest.approx(found["fcfs"][0], rel=1e-9)
    assert found["shortest_prompt"][1] > found["fcfs"][1]
