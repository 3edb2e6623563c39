"""Fleets in files: what is wrong is reported with file and line, whatever stands anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.datafiles.yamlfile import parse
from simqueue.errors import InputError
from simqueue.scenario import load
from simqueue.scenario.fleet import FleetSettings, GroupSettings
from simqueue.scenario.recovery import RetriesSettings

from ..helpers.profiles import examples
from .fleets import scenario

SCENARIO = """\
model: llama-3.1-8b
gpu: h100-sxm
workload: {requests: [{arrival_s: 0, prompt_tokens: 10, output_tokens: 5}]}
fleet:
  groups:
    big: {replicas: 2, gpu: h200-sxm, weight: 2}
    small:
      max_num_batched_tokens: 512
      kv_cache: {blocks: 900}
  router: {kind: least_kv, ties: random}
  router_order: [small-0, big-1, big-0]
  router_time: {request_ms: 1, latency_ms: 2}
  signals: {every_s: 1, kv_used: {delay_s: 3}}
  events:
    - {at_s: 1, replica: big-0, event: fail, repair_s: 2}
    - {at_s: 2, replica: small-0, event: drain, deadline_s: 3}
  failures: {mtbf_s: 9, repair_s: 2}
  in_flight: resume
  retries: {limit: 3, wait_ms: 50, factor: 2, longest_ms: 100, jitter: 0.5, refused: true}
  health: {every_s: 1, timeout_s: 1, failures: 1, successes: 1}
  breaker: {failures: 3, window_s: 1, open_s: 1, successes: 1}
policies:
  real:
    engine: vllm
    version: "0.33.0"
    max_num_seqs: 256
"""


def _paths(value: Any, path: str) -> Iterator[str]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from _paths(below, f"{path}.{key}")


PATHS = list(_paths(parse(SCENARIO, "s.yaml").data["fleet"], "fleet"))
ODD = ["null", "true", "0", "-1", "1e308", ".nan", "x", "'10'", "[]", "{}", "[{}]", "{x: 1}", "at once"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write the scenario."""
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def complaint(file: Path, *flags: str) -> str:
    """Return the error of loading the file, without its folder; empty if there is none."""
    try:
        load(file, flags)
    except InputError as error:
        return str(error).replace(f"{file.parent}/", "")
    return ""


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("h200-sxm", "h200-smx", "s.yaml:6: fleet.groups.big.gpu = 'h200-smx': unknown gpu 'h200-smx'; did you mean "),
        ("weight: 2", "wait: 2", "s.yaml:6: fleet.groups.big.wait: unknown key 'wait'"),
        (
            ": 512",
            ": 5.5",
            "s.yaml:8: fleet.groups.small.max_num_batched_tokens = 5.5: must be a whole number >= 1 and",
        ),
        (": 512", ": 128", "s.yaml:8: fleet.groups.small.max_num_batched_tokens = 128: must be at least max_num_seqs "),
        ("blocks: 900", "block_size: 0", "s.yaml:9: fleet.groups.small.kv_cache.block_size = 0: must be >= 1"),
        ("blocks: 900", "blocks: 10", ""),
        ("least_kv", "least_vk", "s.yaml:10: fleet.router.kind = 'least_vk': unknown router 'least_vk'; did you mean "),
        ("[small-0, ", "[small-1, ", "s.yaml:11: fleet.router_order.0 = 'small-1': unknown replica 'small-1'; did you"),
        (
            "replica: big-0",
            "replica: big-2",
            "s.yaml:15: fleet.events.0.replica = 'big-2': unknown replica 'big-2'; di",
        ),
        ("at_s: 2, replica: small-0", "at_s: 2, replica: big-0", "s.yaml:16: fleet.events.1.event = 'drain': big-0 is"),
        ('"0.33.0"', '"0.33.1"', "s.yaml:25: policies.real.version = '0.33.1': unknown version of vllm; nearest known"),
    ],
)
def test_mistakes_have_their_line(file: Path, old: str, new: str, line: str) -> None:
    """One mistake is one line, at the place where it was written: the fleet, a group, or the policy."""
    assert old in SCENARIO
    file.write_text(SCENARIO.replace(old, new, 1), encoding="utf-8")
    (found,) = complaint(file).splitlines() or [""]
    assert found.startswith(line)
    assert bool(found) is bool(line)


@examples(80, 3200)
@given(st.sampled_from(PATHS), st.sampled_from(ODD))
def test_whatever_stands_anywhere_in_a_fleet_is_a_scenario_or_a_line(path: str, value: str) -> None:
    """Any value at any path of a fleet gives a scenario, or errors that name the flag or a place in the file."""
    flag = f"{path}={value}"
    with TemporaryDirectory() as folder:
        file = Path(folder, "s.yaml")
        file.write_text(SCENARIO, encoding="utf-8")
        found = complaint(file, flag)
    assert [line for line in found.splitlines() if not line.startswith(("--set ", "s.yaml:"))] == []
    assert "Input should" not in found


def test_fleets_made_in_python() -> None:
    """Models can be given instead of mappings, also inside each other."""
    groups = {"a": GroupSettings(replicas=2, max_num_seqs=3), "b": {"weight": 2.0}}
    made = FleetSettings(groups=groups, router={"kind": "least_kv", "ties": "first"}, retries=RetriesSettings(limit=1))
    written = {
        "groups": {"a": {"replicas": 2, "max_num_seqs": 3}, "b": {"weight": 2.0}},
        "router": {"kind": "least_kv", "ties": "first"},
        "retries": {"limit": 1},
    }
    one, other = scenario(made).resolve(), scenario(written).resolve()
    assert one.values == other.values
    assert one.origins == other.origins
