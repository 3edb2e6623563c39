"""The commands `explain` and `calibrate`."""

import json
from pathlib import Path

import numpy as np
import pytest

from simqueue.calibration import ErrorRow, Fit
from simqueue.calibration.choice import doubts
from simqueue.cli import run_command
from simqueue.hardware import load_gpu, load_model
from simqueue.steptime import Batch, Coefficients, RooflineSettings, load_preset
from simqueue.steptime.build import build

MODEL = ["--model", "llama-3.1-8b", "--gpu", "h100-sxm"]


def decode_rows(prices: object) -> str:
    """Return a table of decode steps with the durations of this model."""
    rows = ["ms,decode_seqs,context_tokens"]
    for n in (1, 4, 16, 64):
        for context in (128, 1024, 4096):
            ms = 1e3 * prices.seconds(Batch(n, n, n * context, (), n))  # type: ignore[attr-defined]
            rows.append(f"{ms},{n},{context}")
    return "\n".join(rows) + "\n"


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a table of decode steps with the durations of vllm-h100-kernels, in the current folder."""
    monkeypatch.chdir(tmp_path)
    prices = build(
        RooflineSettings(preset="vllm-h100-kernels"),
        load_model("llama-3.1-8b", Path()),
        load_gpu("h100-sxm", Path()),
        1,
    )
    file = tmp_path / "own.csv"
    file.write_text(decode_rows(prices))
    return file


def test_explain_shows_terms_that_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON of a mixed step has terms with bytes and FLOPs; those with `counts` add up to the step."""
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
    """The ideal terms are printed as a table in GB, GFLOP and ms; the terms of the limiting side are marked."""
    assert run_command(["explain", *MODEL, "--decode", "32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (weights,) = [line.split() for line in lines if line.strip().startswith("weights")]
    assert weights == ["weights", "15.010", "-", "4.481", "*", "memory"]
    assert lines[-2].startswith("step: 5.763 ms")


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ([], "the step is empty; give --decode, --prefill, or both"),
        (["--prefill", "1:x"], "--prefill: '1:x' must be NEW or PAST:NEW"),
        (
            ["--decode", "1", "--preset", "vllm-h10"],
            "error: --preset: unknown preset 'vllm-h10'; did you mean 'vllm-h100'",
        ),
        (
            ["--decode", "1", "--weights", "int3"],
            "error: --weights: unknown format 'int3'; known: fp32, bf16, fp8, fp4",
        ),
        (["--decode", "1", "--tensor-parallel", "3"], "error: --tensor-parallel: the 32 heads and 8 KV heads of"),
        (["--decode", "1", "--model", "llama-9"], "error: --model: unknown model 'llama-9'"),
        (["--decode", "1", "--gpu", "h1000"], "error: --gpu: unknown gpu 'h1000'"),
    ],
)
def test_explain_rejects_in_one_line(capsys: pytest.CaptureFixture[str], extra: list[str], said: str) -> None:
    """Bad input exits with 2 and one line, which names the flag and gives the value once."""
    assert run_command(["explain", *MODEL, *extra]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "llama-3.1-405b", "--decode", "4"], "llama-3.1-405b does not fit h100-sxm"),
        # 80 GB hold some 530,000 tokens of 131,072 bytes beside 16 GB of weights; 256 times 8,000 are 2,048,000.
        (["--model", "llama-3.1-8b", "--decode", "256", "--context", "8000"], "keys and values of 2,048,000 tokens"),
        (["--model", "llama-3.1-8b", "--prefill", "600000:8"], "keys and values of 600,008 tokens"),
    ],
)
def test_explain_warns_of_what_does_not_fit(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """A step whose weights or KV exceed the memory is explained, with a warning that names both sizes."""
    assert run_command(["explain", "--gpu", "h100-sxm", *arguments, "--json"]) == 0
    (warning,) = json.loads(capsys.readouterr().out)["warnings"]
    assert warning.startswith("this step cannot run: ")
    assert said in warning


def test_explain_is_silent_about_what_fits(capsys: pytest.CaptureFixture[str]) -> None:
    """A batch that fits into the memory has no warning, also if the model fits on eight GPUs only."""
    for fitting in (
        ["llama-3.1-8b", "--context", "8000"],
        ["llama-3.1-405b", "--tensor-parallel", "8", "--weights", "fp8"],
    ):
        assert run_command(["explain", "--gpu", "h100-sxm", "--decode", "25", "--model", *fitting, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["warnings"] == []


def test_calibrate_writes_a_preset_that_prices_the_same(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The preset fitted to a table of steps reproduces their durations and works as `preset: FILE`."""
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
    assert "to use it: step_time: {kind: roofline, preset: own.yaml}" in told
    assert "warning" not in told
    found, truth = load_preset("own.yaml").coefficients, load_preset("vllm-h100-kernels").coefficients
    assert found.layer_us == pytest.approx(truth.layer_us, rel=0.01)
    assert found.kv_bandwidth_share == pytest.approx(truth.kv_bandwidth_share, rel=0.01)
    assert found.bandwidth_share == truth.bandwidth_share


def test_calibrate_says_what_it_cannot_know(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps on one GPU do not determine the link: output and preset list the value as not identified."""
    assert (
        run_command(["calibrate", str(measured), *MODEL, "--out", "own.yaml", "--free", "bandwidth_share,link_share"])
        == 0
    )
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("link_share")]
    assert "no: no row depends on it" in line
    assert load_preset("own.yaml").card.not_identified == ["link_share: no row depends on it"]


def test_bad_rows_end_the_command_or_are_named(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bad row exits with 2 and its place; with --drop-bad-rows it is listed on stdout and left out."""
    measured.write_text(measured.read_text() + "0.5,8,1000\n")
    command = ["calibrate", str(measured), *MODEL, "--out", "own.yaml", "--base", "vllm-h100-kernels"]
    assert run_command(command) == 2
    told = capsys.readouterr().err
    assert "own.csv:14: 0.5 ms is faster than the peaks of h100-sxm allow" in told
    assert "1 of 13 rows is bad; --drop-bad-rows leaves it out" in told
    assert not Path("own.yaml").exists()
    assert run_command([*command, "--drop-bad-rows"]) == 0
    assert "left out: own.csv:14: 0.5 ms is faster" in capsys.readouterr().out


def test_a_preset_must_be_named_as_one(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An output file without the suffix of a preset is rejected before anything is fitted."""
    assert run_command(["calibrate", str(measured), *MODEL, "--out", "own.txt"]) == 2
    assert "must end in .yaml" in capsys.readouterr().err


def test_a_fit_that_describes_nothing_is_doubted_loudly(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Durations unrelated to the batches give warnings about values and error, before the line about the preset."""
    measured.write_text(
        "ms,decode_seqs,context_tokens\n7.9,32,1024\n61.3,3,1024\n9,32,1000\n33,4,20\n12,8,100\n50,2,100\n"
    )
    assert run_command(["calibrate", str(measured), *MODEL, "--out", "own.yaml"]) == 0
    undecided, error, written, use = capsys.readouterr().out.splitlines()[-4:]
    assert undecided.startswith("warning: the data determines none of the 4 fitted values")
    assert error.startswith("warning: the mean error on the fitted rows is ")
    assert written == "written: own.yaml"
    assert use.startswith("to use it in spite of the warnings: step_time: ")
    # A time a sequence that the search pushed against its bound is stated as the bound.
    assert load_preset("own.yaml").coefficients.seq_us == 0


def test_too_few_rows_point_to_a_base(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fewer rows than values exit with 2; the error says how many can be fitted and names --free and --base."""
    measured.write_text("ms,decode_seqs,context_tokens\n7.9,32,1024\n9.1,64,1024\n")
    assert run_command(["calibrate", str(measured), *MODEL, "--out", "own.yaml"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "2 rows cannot determine 4 values" in line
    assert line.endswith("fit at most 2 with --free and take the others from a preset with --base")


def test_advice_names_no_base_if_one_is_given() -> None:
    """One value that the rows do not determine is told as one value, and --base is advised only if it is not given."""
    found = Fit(Coefficients(bandwidth_share=1.0, mfu=1.0), ("mfu",), {}, {"mfu": "no row depends on it"}, np.zeros(4))
    small = ErrorRow("all", 4, 1.0, 1.0, 0.0, 1.0)
    (line,) = doubts(found, small, "vllm-h100-kernels")
    assert line == (
        "the data does not determine the fitted value mfu; do not use it for other batches: fit fewer values with "
        "--free, or add more varied rows"
    )
    (line,) = doubts(found, small)
    assert line.endswith("fit fewer values with --free, give --base, or add more varied rows")


@pytest.mark.parametrize(
    ("mape", "shown"), [(12.34, "12.3 %, above 10"), (10.04, "10.04 %, above 10"), (10.0001, "slightly above 10")]
)
def test_a_mean_error_above_the_limit_is_shown_above_it(mape: float, shown: str) -> None:
    """Rounding never makes the warning compare a number with itself."""
    errors = ErrorRow("all", 4, mape, mape, 0.0, mape)
    (line,) = doubts(Fit(Coefficients(bandwidth_share=1.0, mfu=1.0), (), {}, {}, np.zeros(4)), errors)
    assert f"is {shown} %: " in line
    assert "is 10.0 %" not in line
