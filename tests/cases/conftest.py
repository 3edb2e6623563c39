"""What the public cases share: the toy engine, a run that is checked in two ways, and the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

import simqueue as sq
from simqueue.cli import run_command
from simqueue.results.result import Result

Asked = tuple[str, float, int, int]
"""Id, arrival in seconds, prompt tokens, output tokens."""

Toy = Callable[..., dict[str, Any]]
Play = Callable[[Mapping[str, Any]], Result]


@pytest.fixture
def toy() -> Toy:
    """Return a maker of toy scenarios: every step takes 10 ms, blocks of 16 tokens, 256 seats, 2048 tokens a step."""

    def made(
        requests: Iterable[Asked],
        policies: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        blocks: int = 100_000,
        step_s: float = 0.01,
        **more: Any,
    ) -> dict[str, Any]:
        names = ("id", "arrival_s", "prompt_tokens", "output_tokens")
        vllm_like = {"scheduler": "chunked", "max_num_seqs": 256, "max_num_batched_tokens": 2048}
        return {
            "step_time": {"kind": "constant", "seconds": step_s},
            "kv_cache": {"layout": "paged", "block_size": 16, "blocks": blocks},
            "workload": {"requests": [dict(zip(names, asked, strict=True)) for asked in requests]},
            "policies": {"chunked": vllm_like} if policies is None else dict(policies),
            **more,
        }

    return made


@pytest.fixture
def play() -> Play:
    """Return a run that folds equal steps and plans each of them: both must give the same tables, to the last bit."""

    def played(scenario: Mapping[str, Any]) -> Result:
        folded, stepped = (sq.run({**scenario, "fast": fast}) for fast in (True, False))
        for name in ("requests", "steps", "summary"):
            pd.testing.assert_frame_equal(getattr(folded, name), getattr(stepped, name), check_exact=True)
        return folded

    return played


@pytest.fixture
def by_id() -> Callable[..., pd.DataFrame]:
    """Return a view of one policy's requests by their ids."""

    def view(result: Result, policy: str = "chunked") -> pd.DataFrame:
        requests = result.requests
        return requests[requests["policy"] == policy].set_index("request_id")

    return view


@pytest.fixture
def summary_of() -> Callable[..., dict[str, Any]]:
    """Return a view of one policy's summary row: plain values, None where undefined."""

    def view(result: Result, policy: str = "chunked") -> dict[str, Any]:
        return next(row for row in result.summary_rows if row["policy"] == policy)

    return view


class Shown(NamedTuple):
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Shown]:
    """Return the command line, called in this process as ``simqueue ARGUMENTS...``."""

    def called(*arguments: str | Path) -> Shown:
        capsys.readouterr()
        code = run_command([str(argument) for argument in arguments])
        return Shown(code, *capsys.readouterr())

    return called


@pytest.fixture
def scenario_file(tmp_path: Path) -> Callable[..., Path]:
    """Return a writer of scenario files: text as it is, a mapping as JSON, which is YAML too."""

    def written(content: str | Mapping[str, Any], name: str = "case.yaml") -> Path:
        file = tmp_path / name
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
        return file

    return written
