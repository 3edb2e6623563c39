"""The guide to a policy of one's own: its script runs, its text shows that script, its advice holds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from simqueue.schedulers import Chunked, Draft, Later, Plan

from .playing import make_policy, seen, simulate

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scenarios" / "own_policy.py"
GUIDE = (ROOT / "docs" / "guides" / "own-policy.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the guide's code blocks in a language."""
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, flags=re.DOTALL)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the script prints, run as a user runs it, away from the source tree."""
    command = [sys.executable, "-W", "error", str(SCRIPT)]
    environment = os.environ | {"PYTHONSAFEPATH": "1"}
    folder = tmp_path_factory.mktemp("elsewhere")
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=True)
    assert not done.stderr
    return done.stdout


def test_script_shows_what_the_policy_is_for(printed: str) -> None:
    """Smaller chunks beside decodes: shorter pauses between tokens, later first tokens, everybody served."""
    header, *lines = (line.split() for line in printed.splitlines())
    table = {line[0]: dict(zip(header[1:], map(float, line[1:]), strict=True)) for line in lines}
    assert list(table) == ["chunked", "gentle"]
    assert table["chunked"]["completed"] == table["gentle"]["completed"] == 400
    assert table["gentle"]["p99_itl_ms"] < table["chunked"]["p99_itl_ms"]
    assert table["gentle"]["p99_ttft_ms"] > table["chunked"]["p99_ttft_ms"]


def test_guide_shows_the_script_and_its_output(printed: str) -> None:
    """The first block of code is the script's text, under 40 lines, and the block below is what it prints."""
    code = blocks("python")[0]
    assert code == SCRIPT.read_text(encoding="utf-8")
    assert len(code.splitlines()) < 40
    assert blocks("text") == [printed]


class LimitedSettings(Chunked.Settings):
    """Keys of chunked and a share of the pool."""

    share: float = Field(0.8, gt=0, le=1)


class Limited(Chunked):
    """The guide's rule: newcomers only while less than a share of the pool is in use."""

    Settings = LimitedSettings

    def __init__(self, settings: LimitedSettings, *parts: Any) -> None:
        super().__init__(settings, *parts)
        self.share = settings.share

    def admit(self, draft: Draft) -> None:
        """Seat newcomers only below the share."""
        if not self.running or self.kv.used < self.share * self.kv.total:
            super().admit(draft)


class Anew(Limited):
    """The same, decided anew in every step, as the guide advises for rules that move."""

    def plan(self, now_s: float) -> Plan | Later | None:  # type: ignore[override] # wider than needed
        """Decide one step."""
        plan = super().plan(now_s)
        if plan is not None:
            plan.repeat = 1
        return plan


@pytest.mark.parametrize("policy_class", [Limited, Anew])
@pytest.mark.parametrize("fast", [True, False])
def test_admission_rule_of_ones_own_holds(policy_class: type[Chunked], fast: bool) -> None:
    """With half of 8 blocks as the limit the third request waits until a departure brings the use below it."""
    policy = make_policy(policy_class, {"share": 0.5}, blocks=8, block_size=1)
    recording = simulate(policy, [(0.0, 2, 3), (1.0, 1, 3), (2.0, 1, 1)], fast=fast)
    # decodes take their blocks first. 1 s: a has 3, below 4, b enters; 2 s: a has 4 and b 2, c is kept out;
    # 3 s: a has left and b has 3, c enters
    assert seen(recording) == {"a": (1.0, 3.0), "b": (2.0, 4.0), "c": (4.0, 4.0)}
    assert recording.steps["blocks_used"].tolist() == [2, 4, 6, 4]


def test_the_guide_says_what_the_tests_use() -> None:
    """The two short pieces of the guide are the methods tried out above."""
    rule, anew = (re.sub(r"\s+", " ", block) for block in blocks("python")[1:])
    assert "if not self.running or self.kv.used < 0.8 * self.kv.total: super().admit(draft)" in rule
    assert "plan = super().plan(now_s) if plan is not None: plan.repeat = 1 return plan" in anew
