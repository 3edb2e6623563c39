"""The calibration command, with steps of a network that is not in the library of models."""

from __future__ import annotations

from pathlib import Path

import pytest

from simqueue.calibration.linear import read_step_means
from simqueue.cli import run_command
from simqueue.errors import InputError
from studies.module08.calibrated import CallTime
from studies.module08.recorded import step_rows


def test_steps_of_the_bench_become_a_linear_step_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Times of 2 ms + 0.01 ms per prompt token, and 3 ms + 0.05 ms per row, give these values."""
    prefills = [CallTime(64 * n, n, 1, 0.002 + 1e-5 * 64 * n) for n in (1, 2, 8)]
    decodes = [CallTime(0, n, 1, 0.003 + 5e-5 * n) for n in (1, 4, 8)]
    table, out = tmp_path / "steps.csv", tmp_path / "step_time.yaml"
    table.write_text(step_rows([*decodes, *prefills]), encoding="utf-8")
    assert run_command(["calibrate", str(table), "--kind", "linear", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "6 rows: mean abs error 0.0 %" in said
    values = dict(line.strip().split(": ") for line in out.read_text(encoding="utf-8").splitlines()[2:])
    expected = {"overhead_s": 0.002, "per_prefill_token_s": 1e-5, "decode_base_s": 0.001, "per_decode_s": 5e-5}
    assert {name: float(value) for name, value in values.items()} == pytest.approx(expected, rel=1e-4)


def test_the_other_kinds_need_a_model_and_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A roofline needs a model and a GPU, and the error says so."""
    (tmp_path / "steps.csv").write_text("decode_seqs,prefill_tokens,ms\n1,0,1\n", encoding="utf-8")
    assert run_command(["calibrate", str(tmp_path / "steps.csv"), "--out", "own.yaml"]) == 2
    assert "--kind steps needs --model and --gpu" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("decode_seqs,ms\n1,2\n", "column 'prefill_tokens' is missing"),
        ("decode_seqs,prefill_tokens,ms\n1,0,0\n", "steps.csv:2: ms '0' is not a finite number above 0"),
        ("decode_seqs,prefill_tokens,ms\n1,x,1\n", "steps.csv:2: prefill_tokens 'x' is not a number"),
    ],
)
def test_a_bad_table_is_named(text: str, said: str, tmp_path: Path) -> None:
    """A missing column or a wrong value is an error that says where."""
    (tmp_path / "steps.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_step_means(tmp_path / "steps.csv")
