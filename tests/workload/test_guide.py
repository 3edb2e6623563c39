"""The guide on workloads: every example in it is a scenario that loads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simqueue.scenario import load
from simqueue.scenario.traffic import make_traffic

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "workloads.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
MACHINE = """
step_time: {kind: constant, seconds: 0.01}
kv_cache: {block_size: 16, blocks: 10000}
policies: {chunked: {scheduler: chunked}}
"""
LOG = "".join(f'{{"ts":{40 * i},"input":{i % 90 + 1},"output":3}}\n' for i in range(6000))


def test_the_guide_has_examples() -> None:
    """The blocks are found: without any, the next test would pass without testing anything."""
    assert len(BLOCKS) >= 8


@pytest.mark.parametrize("block", BLOCKS)
def test_every_example_loads_and_has_requests(block: str, tmp_path: Path) -> None:
    """Each YAML block is a workload that loads and makes requests."""
    (tmp_path / "log.jsonl").write_text(LOG)
    file = tmp_path / "example.yaml"
    file.write_text(block + MACHINE)
    traffic = make_traffic(load(file).resolve())
    assert len(traffic.requests) or any(group.sessions for group in traffic.session_groups)
