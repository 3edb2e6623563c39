"""The pages of docs/: every YAML block runs as (part of) a scenario, every command of a console block runs.

README, tutorial and the guide to policies of one's own have tests of their own, which also compare what is printed.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from ruamel.yaml import YAML

import simqueue as sq
from simqueue.cli import run_command
from simqueue.routing import ROUTERS
from simqueue.scenario import from_mapping
from simqueue.scenario.traffic import make_traffic
from simqueue.schedulers import SCHEDULERS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ELSEWHERE = {"tutorial/README.md"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

ROUND = {"process": "poisson", "rate_rps": 5}
SMALL = {
    "arrivals": ROUND,
    "num_requests": 20,
    "prompt_tokens": {"distribution": "constant", "value": 100},
    "output_tokens": {"distribution": "constant", "value": 10},
}
BASE: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "workload": SMALL,
    "policies": {"chunked": {"scheduler": "chunked"}},
}
"""What a block is completed with: its own keys replace these."""

CONFIG = """{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
"intermediate_size": 8192, "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
"head_dim": 64, "vocab_size": 128256,
"max_position_embeddings": 8192, "torch_dtype": "bfloat16", "tie_word_embeddings": true}"""
SCENARIO = """
step_time: {kind: linear, overhead_s: 0.008, per_prefill_token_s: 4.0e-5}
kv_cache: {blocks: 2000}
workload: {arrivals: {process: poisson, rate_rps: 5}, num_requests: 30,
           prompt_tokens: {distribution: constant, value: 100}, output_tokens: {distribution: geometric, mean: 10}}
policies: {a: {scheduler: chunked}, b: {scheduler: NAME}}
"""
GRID = "decode_seqs,context_tokens,prefill_tokens,ms\n" + "".join(
    f"{seqs},{context},{tokens},{5 + 0.05 * seqs + 0.02 * tokens}\n"
    for seqs in (0, 64)
    for context in (1, 8192)
    for tokens in (0, 16384)
)
H100 = SCENARIO.replace(
    "step_time: {kind: linear, overhead_s: 0.008, per_prefill_token_s: 4.0e-5}",
    "model: llama-3.1-8b\ngpu: h100-sxm\nstep_time: {kind: roofline, preset: vllm-h100}\nreplications: 2",
).replace("NAME", "chunked, max_num_seqs: 1")
FILES = {
    "guides/decisions.md": {"h100.yaml": H100},
    "guides/fleets.md": {
        "fleet.yaml": SCENARIO.replace("b: {scheduler: NAME}", "least: {scheduler: chunked, fleet: {replicas: 2}}"),
        "mine.yaml": SCENARIO.replace("NAME", "chunked, fleet: {replicas: 2, router: {kind: roomy, full: 0.5}}"),
    },
    "guides/hardware.md": {"models/my-model/config.json": CONFIG},
    "guides/how-sure.md": {"scenario.yaml": SCENARIO.replace("NAME", "continuous")},
    "guides/own-policy.md": {"mine.yaml": SCENARIO.replace("NAME", "short-first")},
    "guides/sweeps.md": {"scenario.yaml": SCENARIO.replace("NAME", "continuous")},
    "guides/workloads.md": {
        "log.jsonl": "".join(f'{{"ts":{40 * i},"input":{i % 90 + 1},"output":3}}\n' for i in range(6000)),
        "chat.yaml": SCENARIO.replace("NAME", "continuous"),
    },
    "reference/steptime.md": {"steps.csv": GRID},
}
"""Page -> name -> content of the files of a reader, which its blocks use."""
BASELINES = {"guides/decisions.md": {"baseline.json": "h100.yaml"}}
"""Page -> baseline file -> scenario whose result it is."""


@dataclass(frozen=True)
class Block:
    """A block of code of a page, and the block of the same page before it."""

    page: str
    line: int
    kind: str
    text: str
    before: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(*kinds: str) -> list[Block]:
    """Return all blocks of some kinds, in order."""
    found = []
    for path in sorted(DOCS.rglob("*.md")):
        page, text = path.relative_to(DOCS).as_posix(), path.read_text(encoding="utf-8")
        before = ""
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(page, line, match[1], match[2], before))
            before = match[2]
    return [block for block in found if block.kind in kinds and block.page not in ELSEWHERE]


def prepare(page: str, folder: Path) -> None:
    """Write the files of a reader of this page."""
    for name, content in FILES.get(page, {}).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    for name, scenario in BASELINES.get(page, {}).items():
        sq.write_baseline(sq.run(folder / scenario, workers=1), folder / name)


def commands() -> list[tuple[Block, str]]:
    """Return every line of a console block that begins with a prompt, and every line of a bash block."""
    return [
        (block, line.removeprefix("$ "))
        for block in blocks("console", "bash")
        for line in block.text.splitlines()
        if block.kind == "bash" or line.startswith("$ ")
    ]


def test_every_block_says_what_it_is() -> None:
    """Blocks have a language, so that none escapes these tests; text is what cannot be run."""
    known = {"yaml", "console", "bash", "csv", "python", "text", "json"}
    nameless = [str(block) for block in blocks("", *known) if block.kind not in known]
    assert nameless == []
    assert len(blocks("yaml")) > 15
    assert len(commands()) > 8


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_yaml_runs(block: Block, tmp_path: Path) -> None:
    """A block is a scenario once what it leaves out is added; it has requests and runs, up to an early horizon.

    The design of a sweep, and a question to `tune`, are whole as they are.
    """
    prepare(block.page, tmp_path)
    keys = YAML(typ="safe").load(block.text)
    if "space" in keys:
        (tmp_path / "question.yaml").write_text(block.text, encoding="utf-8")
        assert sq.tune(tmp_path / "question.yaml", workers=1).best is not None
        return
    if "scenario" in keys:
        (tmp_path / "design.yaml").write_text(block.text, encoding="utf-8")
        assert not len(sq.sweep(tmp_path / "design.yaml", workers=1).failures)
        return
    base = {key: value for key, value in BASE.items() if not (key == "workload" and "workloads" in keys)}
    short = {"horizon_s": 3} if "workload" in keys or "workloads" in keys else {}
    scenario = from_mapping({**base, **keys, **short}, base_dir=tmp_path).resolve()
    traffic = make_traffic(scenario)
    assert len(traffic.requests) or any(group.sessions for group in traffic.session_groups)
    assert len(sq.run(scenario, workers=1).summary)


@pytest.mark.parametrize("page", ["guides/sweeps.md"])
def test_python_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of a page runs as it is, beside the files of a reader."""
    prepare(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    (block,) = (block for block in blocks("python") if block.page == page)
    exec(block.text, {"__name__": "page"})  # noqa: S102 - our own guide


@pytest.mark.parametrize(("block", "line"), commands(), ids=lambda value: str(value).partition(" ")[0])
def test_commands_run(
    block: Block, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command exits with 0. A table that it reads is the block before it; one that it writes is there."""
    prepare(block.page, tmp_path)
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(line)
    for word in words:
        if word.endswith(".csv"):
            Path(word).write_text(block.before, encoding="utf-8")
        if word.endswith(".py"):
            Path(word).write_text(policy_block(block.page), encoding="utf-8")
    if program == "python":
        assert words[:2] == ["-m", "simqueue.conformance"]  # tests/golden runs it
        assert list(ROOT.glob(words[2]))
        return
    assert program == "simqueue"
    absolute = [str(ROOT / word) if (ROOT / word).is_file() else word for word in words]
    undrawn = ["--no-figures"] if words[0] in ("run", "workload") else []  # to save time
    with patch.dict(SCHEDULERS), patch.dict(ROUTERS):
        assert run_command([*absolute, *undrawn]) == 0, capsys.readouterr().err
    if "--out" in words:
        assert Path(words[words.index("--out") + 1]).exists()


def policy_block(page: str) -> str:
    """Return the first Python block of a page that only defines a scheduler or a router."""
    return next(block.text for block in blocks("python") if block.page == page and "sq.run" not in block.text)
