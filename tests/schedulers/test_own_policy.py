"""The guide to a policy of one's own: its script runs, its text shows that script, its other pieces work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

import simqueue as sq
from simqueue.schedulers import SCHEDULERS, Chunked, Step

from ..helpers.playing import make_policy, rows, seen, simulate

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
    """Smaller chunks beside decodes: shorter pauses between tokens, later first tokens, all requests served."""
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


@pytest.fixture
def short_first() -> type[Chunked]:
    """The guide's second policy, made by the text of the guide."""
    code = blocks("python")[1]
    assert len(code.splitlines()) < 30
    made: dict[str, Any] = {"__name__": "guide"}
    exec(compile(code, "guide", "exec"), made)  # noqa: S102 - the project's own guide
    assert SCHEDULERS.pop("short-first") is made["ShortFirst"]
    return made["ShortFirst"]  # type: ignore[no-any-return]


def test_own_order_chunk_and_victim(short_first: type[Chunked]) -> None:
    """Worked out by hand: the short prompt goes first, in chunks of 256; without blocks the longest output goes."""
    policy = make_policy(short_first, {"max_num_seqs": 1}, blocks=100)
    recording = simulate(policy, [(0.0, 300, 1), (0.0, 600, 1), (0.5, 16, 1)])
    # a: 256 and 44; then c, which is shorter than b; then b: 256, 256 and 88
    assert seen(recording) == {"a": (2.0, 2.0), "b": (6.0, 6.0), "c": (3.0, 3.0)}
    # blocks of one token, a pool of 10. a and b hold 4 + 2 at 0 s, 5 + 3 at 1 s, 6 + 4 at 2 s; at 3 s both need one
    # more, so b goes with 3 tokens made. a ends at 5 s; then b computes its 5 tokens again and makes the other 5.
    policy = make_policy(short_first, {}, blocks=10, block_size=1)
    recording = simulate(policy, [(0.0, 4, 5), (0.0, 2, 8)])
    assert seen(recording) == {"a": (1.0, 5.0), "b": (1.0, 10.0)}
    columns = ("start_s", "decode_seqs", "prefill_tokens", "preempted", "blocks_used")
    assert rows(recording, *columns) == [
        (0.0, 0, 6, 0, 6),
        (1.0, 2, 0, 0, 8),  # twice
        (3.0, 1, 0, 1, 7),
        (4.0, 1, 0, 0, 8),
        (5.0, 0, 5, 0, 5),
        (6.0, 1, 0, 0, 6),
    ]
    assert not recording.warnings


class LimitedSettings(Chunked.Settings):
    """Keys of chunked and a share of the pool."""

    share: float = Field(0.8, gt=0, le=1)


class Limited(Chunked):
    """The guide's rule: requests are admitted only while less than a share of the pool is in use."""

    Settings = LimitedSettings

    def may_admit(self, job: Any, step: Step) -> bool:
        """Admit only below the share."""
        return not self.running or self.kv.used < self.settings.share * self.kv.total  # type: ignore[attr-defined]


class Declared(Limited):
    """The same, declared."""

    steady_rules = ("may_admit",)

    def may_admit(self, job: Any, step: Step) -> bool:
        """Admit only below the share."""
        return super().may_admit(job, step)


@pytest.mark.parametrize("policy_class", [Limited, Declared])
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
    """The short pieces of the guide are the rule tried out above and the step of `continuous`."""
    rule, step = (re.sub(r"\s+", " ", block) for block in blocks("python")[2:])
    assert "return not self.running or self.kv.used < 0.8 * self.kv.total" in rule
    assert "step.admit_waiting() if not step.admitted: step.decode_all()" in step


class Pairs(Chunked):
    """Admits two waiting requests together."""

    summary = "pairs"

    def compose(self, step: Step) -> None:
        """Wait for a pair unless nothing runs."""
        step.decode_all()
        step.continue_prefills()
        if len(self.waiting) >= 2 or not self.running:
            step.admit_waiting()


SCENARIO = {
    "step_time": {"kind": "linear", "overhead_s": 0.008, "per_prefill_token_s": 4e-5, "per_decode_s": 5e-5},
    "kv_cache": {"blocks": 8000},
    "workload": {
        "num_requests": 60,
        "arrivals": {"process": "poisson", "rate_rps": 8},
        "prompt_tokens": {"distribution": "constant", "value": 400},
        "output_tokens": {"distribution": "constant", "value": 30},
    },
    "policies": {"pairs": {"scheduler": "pairs"}, "chunked": {"scheduler": "chunked"}},
}


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register `Pairs` for one test."""
    monkeypatch.setitem(SCHEDULERS, "pairs", Pairs)


@pytest.mark.usefixtures("registered")
def test_an_undeclared_rule_gives_the_same_numbers_folded_and_says_so_once() -> None:
    """Folded and stepped runs agree; the folded one says which rule kept its steps apart, and how to declare it."""
    folded, stepped = (sq.run({**SCENARIO, "fast": fast}) for fast in (True, False))
    assert folded.requests.equals(stepped.requests)
    assert folded.steps.equals(stepped.steps)
    said = [warning for warning in folded.warnings if "not declared as steady" in warning]
    assert len(said) == 1
    assert "Pairs.compose" in said[0]
    assert "steady_rules = ('compose',)" in said[0]
    assert not any("steady" in warning for warning in stepped.warnings)


@pytest.mark.usefixtures("registered")
def test_no_capacity_is_claimed_for_a_policy_that_does_not_describe_itself() -> None:
    """The base's law is not inherited: no load for the policy of one's own, one for the policy it changes."""
    table = sq.run(SCENARIO).summary.set_index("policy")
    assert table["load"].isna().to_dict() == {"pairs": True, "chunked": False}
