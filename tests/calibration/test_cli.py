"""The commands `explain` and `calibrate`."""

import json
from pathlib import Path

import pytest

from simqueue.cli import run_command
from simqueue.hardware import load_gpu, load_model
from simqueue.steptime import Batch, RooflineSettings, load_preset

MODEL = ["--model", "llama-3.1-8b", "--gpu", "h100-sxm"]


def decode_rows(prices: object) -> str:
    """Return a table of decode steps as these step times give them."""
    rows = ["ms,decode_seqs,context_tokens"]
    for n in (1, 4, 16, 64):
        for context in (128, 1024, 4096):
            ms = 1e3 * prices.seconds(Batch(n, n, n * context, (), n))  # type: ignore[attr-defined]
            rows.append(f"{ms},{n},{context}")
    return "\n".join(rows) + "\n"


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a table of decode steps that the preset vllm-h100-kernels made, in the current folder."""
    monkeypatch.chdir(tmp_path)
    prices = RooflineSettings(preset="vllm-h100-kernels").build(
        load_model("llama-3.1-8b", Path()), load_gpu("h100-sxm", Path()), 1
    )
    file = tmp_path / "own.csv"
    file.write_text(decode_rows(prices))
    return file


def test_explain_shows_terms_that_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON of a mixed step has its terms with bytes and FLOPs, and those that count add up to the step."""
    command = [
        "explain",
        *MODEL,
        "--preset",
        "vllm-h100",
        "--decode",
        "16",
        "--context",
        "2000",
        "--prefill",
        "512:256",
    ]
    assert run_command([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(term["ms"] for term in told["terms"] if term["counts"]) == pytest.approx(told["step_ms"])
    terms = {term["term"]: term for term in told["terms"]}
    assert terms["keys and values of decodes"]["bytes"] == 16 * 2000 * 131_072
    assert terms["attention of prompts"]["flops"] == 4 * 32 * 32 * 128 * (256 * 512 + 256 * 257 // 2)
    assert told["warnings"] == [
        "step_time: preset vllm-h100 was fitted for tensor_parallel 2, 4, 8; here it is 1",
        "step_time: preset vllm-h100 was fitted for models of 32.6 to 70.6 B parameters; llama-3.1-8b has 8.03 B",
    ]


def test_explain_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """For people the ideal terms stand in a table, in GB, GFLOP and ms, with the side that decides marked."""
    assert run_command(["explain", *MODEL, "--decode", "32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (weights,) = [line.split() for line in lines if line.strip().startswith("weights")]
    assert weights == ["weights", "15.010", "-", "4.481", "*", "memory"]
    assert lines[-1].startswith("step: 5.763 ms")


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ([], "nothing runs; give --decode, --prefill, or both"),
        (["--prefill", "1:x"], "--prefill: '1:x' must be NEW or PAST:NEW"),
        (["--decode", "1", "--preset", "vllm-h10"], "did you mean 'vllm-h100'"),
        (["--decode", "1", "--weights", "int3"], "weights: unknown format 'int3'; known: fp32, bf16, fp8, fp4"),
        (["--decode", "1", "--tensor-parallel", "3"], "tensor_parallel: 3 does not share out"),
    ],
)
def test_explain_refuses_in_one_line(capsys: pytest.CaptureFixture[str], extra: list[str], said: str) -> None:
    """What cannot be explained ends with exit code 2 and one line."""
    assert run_command(["explain", *MODEL, *extra]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_calibrate_writes_a_preset_that_prices_the_same(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From a table of steps comes a preset that gives their times back and works as `preset: FILE`."""
    command = [
        "calibrate",
        str(measured),
        *MODEL,
        "--base",
        "vllm-h100-kernels",
        "--free",
        "kv_bandwidth_share,layer_us",
    ]
    assert run_command([*command, "--out", "own.yaml"]) == 0
    told = capsys.readouterr().out
    assert "use it with: step_time: {kind: roofline, preset: own.yaml}" in told
    found, truth = load_preset("own.yaml").coefficients, load_preset("vllm-h100-kernels").coefficients
    assert found.layer_us == pytest.approx(truth.layer_us, rel=0.01)
    assert found.kv_bandwidth_share == pytest.approx(truth.kv_bandwidth_share, rel=0.01)
    assert found.bandwidth_share == truth.bandwidth_share


def test_calibrate_says_what_it_cannot_know(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps of one GPU say nothing about the link: table and preset name the value as not identified."""
    assert (
        run_command(["calibrate", str(measured), *MODEL, "--out", "own.yaml", "--free", "bandwidth_share,link_share"])
        == 0
    )
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("link_share")]
    assert "no: no row depends on it" in line
    assert load_preset("own.yaml").card.not_identified == ["link_share: no row depends on it"]


def test_bad_rows_end_the_command_or_are_named(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bad row ends with exit code 2 and its place; with --drop-bad-rows it is named on stdout and left out."""
    measured.write_text(measured.read_text() + "0.5,8,1000\n")
    command = ["calibrate", str(measured), *MODEL, "--out", "own.yaml", "--base", "vllm-h100-kernels"]
    assert run_command(command) == 2
    told = capsys.readouterr().err
    assert "own.csv, line 14: 0.5 ms is faster than the peaks of h100-sxm allow" in told
    assert "1 bad rows of 13; --drop-bad-rows skips them" in told
    assert not Path("own.yaml").exists()
    assert run_command([*command, "--drop-bad-rows"]) == 0
    assert "left out: own.csv, line 14: 0.5 ms is faster" in capsys.readouterr().out


def test_a_preset_must_be_named_as_one(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An output that scenarios would not take for a preset file is refused before anything is fitted."""
    assert run_command(["calibrate", str(measured), *MODEL, "--out", "own.txt"]) == 2
    assert "must end in .yaml" in capsys.readouterr().err
