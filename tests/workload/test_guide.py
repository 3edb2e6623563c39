"""The guide on traffic against the program: every scenario in it is one."""

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
    """The blocks are found: a guide without any would pass the next test in silence."""
    assert len(BLOCKS) >= 8


@pytest.mark.parametrize("block", BLOCKS)
def test_every_example_loads_and_has_requests(block: str, tmp_path: Path) -> None:
    """Each YAML block is a workload that loads and makes requests."""
    (tmp_path / "log.jsonl").write_text(LOG)
    file = tmp_path / "example.yaml"
    file.write_text(block + MACHINE)
    traffic = make_traffic(load(file).resolve())
    assert len(traffic.requests) or any(group.sessions for group in traffic.session_groups)
