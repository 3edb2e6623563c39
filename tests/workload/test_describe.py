"""Promises of the description of a workload, on paper and as a figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simqueue.cli import run_command
from simqueue.request import Request
from simqueue.workload import WorkloadSettings
from simqueue.workload.describe import describe
from simqueue.workload.reuse import prefix_reuse


def constant(value: int) -> dict[str, Any]:
    """Return a distribution of one length."""
    return {"distribution": "constant", "value": value}


def described(**keys: Any) -> Any:
    """Return the description of a workload."""
    return describe("w", WorkloadSettings.model_validate(keys), seed=1, base_dir=Path())


def test_numbers_are_those_of_the_requests_and_of_the_distributions() -> None:
    """Rate, CV and lengths as drawn are given beside those of the distributions."""
    found = described(
        arrivals={"process": "gamma", "rate_rps": 20.0, "cv": 2.0},
        num_requests=20_000,
        prompt_tokens={"distribution": "uniform", "low": 1, "high": 99},
        output_tokens=constant(7),
        system_prompt={"tokens": 50},
    )
    assert (found.law_rate_rps, found.law_cv, found.law_dispersion) == (20, 2, 4)
    assert found.rate_rps == pytest.approx(20, rel=0.06)
    assert found.cv == pytest.approx(2, rel=0.06)
    assert found.prompt.law_mean == 100
    assert found.prompt.mean == pytest.approx(100, abs=1)
    assert (found.output.law_mean, found.output.mean, found.output.longest) == (7, 7, 7)
    assert found.prompt.percentiles[50] == np.percentile(found.prompt.tokens, 50)
    # every request but the first begins with the 50 tokens of all
    assert found.prefix_reuse == pytest.approx(50 * 19_999 / found.prompt.tokens.sum(), rel=1e-12)


def test_users_have_no_rate_before_they_are_served() -> None:
    """Users have lengths, and no arrivals."""
    found = described(
        users={"count": 3, "think_s": 2.0}, num_requests=40, prompt_tokens=constant(5), output_tokens=constant(6)
    )
    assert (found.rate_rps, found.cv, found.span_s) == (None, None, None)
    assert found.requests == 40
    assert found.prefix_reuse is None


def test_conversations_find_what_was_said() -> None:
    """With n turns of 10 new tokens and 10 answered, all but the new tokens have been seen before."""
    found = described(
        sessions={"arrivals": {"process": "constant", "rate_rps": 1.0}, "num_sessions": 4, "turns": constant(3)},
        prompt_tokens=constant(10),
        output_tokens=constant(10),
    )
    assert found.prompt.tokens.tolist() == [10, 30, 50] * 4
    assert found.prefix_reuse == pytest.approx((20 + 40) / 90)
    assert found.rate_rps == 1


def test_reuse_stops_where_prompts_part() -> None:
    """Leading tokens count up to the first that differs, also in the middle of a piece, and answers count."""

    def asked(*pieces: tuple[int, int, int], answer: int | None = None) -> Request:
        return Request("r", 0.0, sum(n for _, _, n in pieces), 5, prompt=pieces, output_stream=answer)

    first = asked((1, 0, 100), answer=9)
    assert prefix_reuse([first, asked((1, 0, 100), (9, 0, 5), (2, 0, 10))]) == 105 / 215
    assert prefix_reuse([first, asked((1, 0, 60), (2, 0, 40))]) == 60 / 200
    assert prefix_reuse([first, asked((1, 0, 150))]) == 100 / 250
    assert prefix_reuse([first, asked((2, 0, 100), (1, 0, 100))]) == 0
    assert prefix_reuse([Request("r", 0.0, 5, 5)]) is None


@pytest.mark.parametrize(
    ("name", "reuse", "prompt", "output"),
    [("mooncake-synthetic", 0.640, (15_325, 11_587, 48_904), (149, 69, 519))],
)
def test_a_published_trace_is_described_as_published(
    name: str, reuse: float, prompt: tuple[int, ...], output: tuple[int, ...]
) -> None:
    """Mean, median and p95 of the lengths, and the share of prompts seen before (published in blocks of 512)."""
    found = described(trace={"name": name})
    for lengths, published in ((found.prompt, prompt), (found.output, output)):
        known = (lengths.mean, lengths.percentiles[50], lengths.percentiles[95])
        assert known == pytest.approx(published, abs=1)
    assert found.prefix_reuse == pytest.approx(reuse, abs=0.02)


SCENARIO = {
    "name": "two",
    "step_time": {"kind": "constant", "seconds": 0.01},
    "kv_cache": {"block_size": 16, "blocks": 100},
    "policies": {"chunked": {"scheduler": "chunked"}},
    "workloads": {
        "chat": {
            "arrivals": {"process": "poisson", "rate_rps": 5.0},
            "num_requests": 200,
            "prompt_tokens": {"distribution": "lognormal", "median": 100, "sigma": 1.0},
            "output_tokens": {"distribution": "geometric", "mean": 3},
        },
        "loop": {
            "users": {"count": 2},
            "num_requests": 5,
            "prompt_tokens": constant(5),
            "output_tokens": constant(1),
        },
    },
}


def test_the_command_prints_a_table_and_draws_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One column per workload; the files of the figure are listed and have no date, so they are always the same."""
    file = tmp_path / "two.json"
    file.write_text(json.dumps(SCENARIO))
    written = []
    for out in ("a", "b"):
        assert run_command(["workload", str(file), "--out", str(tmp_path / out)]) == 0
        shown = capsys.readouterr().out
        assert "chat" in shown
        assert "2 users" in shown
        assert f"{tmp_path / out / 'workload.png'}" in shown.replace("\n", "")
        written.append([(tmp_path / out / f"workload.{kind}").read_bytes() for kind in ("png", "svg")])
    assert written[0] == written[1]


def test_the_command_prints_strict_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints one object per workload with null for what is undefined, and draws nothing."""
    file = tmp_path / "two.json"
    file.write_text(json.dumps(SCENARIO))
    assert run_command(["workload", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["chat"]["law_rate_rps"] == 5
    assert found["chat"]["requests"] == 200
    assert (found["loop"]["rate_rps"], found["loop"]["law_mean_prompt_tokens"]) == (None, 5)
    assert run_command(["workload", str(file), "--set", "workloads.chat.num_requests=0"]) == 2


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--out", "taken"], "taken/workload.png: taken is a file, not a folder"),
        (["--out", "taken/inner"], "taken/inner/workload.png: taken is a file, not a folder"),
        (["--out", "new", "--json"], "--out cannot be used with --json"),
    ],
)
def test_a_folder_that_cannot_be_written_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], extra: list[str], said: str
) -> None:
    """An output folder that is a file, or that --json would ignore, exits with 2 and one line, and prints nothing."""
    monkeypatch.chdir(tmp_path)
    Path("two.json").write_text(json.dumps(SCENARIO))
    Path("taken").write_text("")
    assert run_command(["workload", "two.json", *extra]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    assert said in line
    assert not Path("new").exists()


def test_a_burst_of_one_instant_can_be_drawn() -> None:
    """Workloads without an arrival curve, or without requests, still have a figure."""
    from simqueue.figures.canvas import image
    from simqueue.figures.workload import workload_figure

    at_once = described(
        arrivals={"process": "all_at_once"}, num_requests=3, prompt_tokens=constant(5), output_tokens=constant(1)
    )
    empty = described(requests=[])
    for one in (at_once, empty):
        assert image(workload_figure([one]), "png").startswith(b"\x89PNG")


def test_constant_lengths_have_readable_ticks() -> None:
    """Prompts of 500 tokens stand at 500 on an axis of whole numbers, of which there are at least two."""
    from simqueue.figures.canvas import settle
    from simqueue.figures.workload import workload_figure

    same = described(
        arrivals={"process": "all_at_once"}, num_requests=9, prompt_tokens=constant(500), output_tokens=constant(7)
    )
    figure = workload_figure([same])
    settle(figure)
    axis = figure.axes[1].xaxis
    texts = axis.get_major_formatter().format_ticks(axis.get_majorticklocs())
    assert "500" in texts
    assert len(texts) >= 2
    assert all(text.replace(",", "").isdigit() for text in texts)
