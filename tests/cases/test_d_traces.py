"""Trace files as they are found in the wild."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.results.result import Result

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
FOUR_ROWS = (
    "2023-11-16 18:15:46.6805900,374,44",
    "2023-11-16 18:15:46.6815900,396,109",
    "2023-11-16 18:15:46.6885900,879,55",
    "2023-11-16 18:15:46.6905900,91,16",
)
OFFSETS_S = [0.0, 0.001, 0.008, 0.010]

Replayed = Callable[..., Result]


@pytest.fixture
def replayed(toy: Any, scenario_file: Any, tmp_path: Path) -> Replayed:
    """Return a run of a scenario file whose trace lies beside it."""

    def run(content: str | bytes, trace_format: str = "azure", num_requests: int | None = None, **keys: Any) -> Result:
        (tmp_path / "trace.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        scenario = toy([])
        scenario["workload"] = {"trace": {"format": trace_format, "path": "trace.csv", **keys}}
        if num_requests is not None:
            scenario["workload"]["num_requests"] = num_requests
        return sq.run(scenario_file(scenario))

    return run


def azure(*rows: str, header: str = HEADER, line_end: str = "\r\n") -> str:
    """Return a file as published: CRLF between lines and none after the last."""
    return line_end.join([header, *rows])


def test_case_25_seven_digits_of_fraction_are_all_read(replayed: Replayed) -> None:
    """Offsets of 0, 1, 8 and 10 ms come out to well below a microsecond, with CRLF and no newline at the end.

    Origin: kubernetes-sigs/inference-perf#782, #151, where a cut fraction made bursts of distinct arrivals.
    """
    requests = replayed(azure(*FOUR_ROWS)).requests
    assert requests["arrival_s"].tolist() == pytest.approx(OFFSETS_S, abs=1e-9)
    assert requests["prompt_tokens"].tolist() == [374, 396, 879, 91]
    assert requests["output_tokens"].tolist() == [44, 109, 55, 16]
    assert (requests["status"] == "finished").all()


def test_case_25_the_seventh_digit_counts(replayed: Replayed) -> None:
    """Two rows 100 ns apart arrive 100 ns apart, across a change of day too (same reports)."""
    rows = ("2023-11-16 23:59:59.9999999,10,1", "2023-11-17 00:00:00.0000000,10,1", "2023-11-17 00:00:01.0000001,10,1")
    requests = replayed(azure(*rows)).requests
    assert requests["arrival_s"].tolist() == pytest.approx([0.0, 1e-7, 1.0000002], abs=1e-15)


ZEROS = (FOUR_ROWS[0], "2023-11-16 18:15:46.6815900,396,0", FOUR_ROWS[2], "2023-11-16 18:15:46.6895900,0,16",
         "2023-11-16 18:15:46.6905900,91,0")  # fmt: skip


def test_case_27_rows_without_tokens_are_dropped_and_counted(replayed: Replayed) -> None:
    """Two rows without output and one without prompt: two requests play, the count is told, and nothing is NaN.

    Origin: HPMLL/BurstGPT#11, vllm-project/vllm#13063, #3397, #3400, AI-Hypercomputer/JetStream#61, where such
    rows (failed calls) divided by zero or never ended.
    """
    result = replayed(azure(*ZEROS))
    assert result.requests["arrival_s"].tolist() == pytest.approx([0.0, 0.008], abs=1e-9)
    assert result.requests["prompt_tokens"].tolist() == [374, 879]
    (line,) = result.warnings
    assert line.startswith("trace.csv: dropped 3 of 5 rows because they have 0 prompt or 0 output tokens")
    assert "line 3" in line
    printed = json.loads(result.to_json(), parse_constant=pytest.fail)
    assert printed["warnings"] == [line]
    assert printed["summary"][0]["completed"] == 2


def test_case_27_a_strict_reader_refuses_rows_without_tokens(replayed: Replayed) -> None:
    """With zero_token_rows: fail the first such row is an error that names its line (same reports)."""
    with pytest.raises(InputError, match=r"^trace\.csv:3: prompt 396 and output 0 tokens; both must be at least 1"):
        replayed(azure(*ZEROS), zero_token_rows="fail")


def ten_rows() -> str:
    """Return an Azure file with ten rows, one a second."""
    return azure(*(f"2023-11-16 18:15:{i:02d}.0000000,100,10" for i in range(10)))


@pytest.mark.parametrize("asked", [{"num_requests": 100}, {"limit": 100}], ids=["num_requests", "trace.limit"])
def test_case_34_more_requests_than_rows_is_an_error(asked: dict[str, int], replayed: Replayed) -> None:
    """Asking a file of 10 rows for 100 requests is refused with both numbers, never answered with 10.

    Origin: vllm-project/vllm#13063 (review), where sampling raised deep inside a library.
    """
    with pytest.raises(InputError, match=r"100 requests are needed, trace\.csv has 10 rows"):
        replayed(ten_rows(), **asked)


def test_case_34_exactly_as_many_as_there_are_is_fine(replayed: Replayed) -> None:
    """Ten of ten play, and fewer are the first ones (same report)."""
    assert len(replayed(ten_rows(), num_requests=10).requests) == 10
    assert replayed(ten_rows(), num_requests=3).requests["arrival_s"].tolist() == pytest.approx([0, 1, 2], abs=1e-9)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + azure(*FOUR_ROWS).encode(),
        azure(*FOUR_ROWS, header=f"{HEADER} ").encode(),
        azure(*FOUR_ROWS, header="TIMESTAMP, ContextTokens , GeneratedTokens").encode(),
        azure(*FOUR_ROWS, line_end="\n").encode(),
        b"\xef\xbb\xbf" + azure(*FOUR_ROWS, header=f"{HEADER} ").encode() + b"\r\n",
    ],
    ids=["BOM", "trailing space", "spaces around names", "LF", "all of them"],
)
def test_case_35_a_byte_order_mark_and_spaces_in_the_header_change_nothing(content: bytes, replayed: Replayed) -> None:
    """However a spreadsheet saved the file, the same four requests come out.

    Origin: MainfluxLabs/mainflux#1268, awdeorio/mailmerge#93, where the first column was not found or time was
    replaced without a word.
    """
    requests = replayed(content).requests
    assert requests["arrival_s"].tolist() == pytest.approx(OFFSETS_S, abs=1e-9)
    assert requests["prompt_tokens"].tolist() == [374, 396, 879, 91]


def test_case_35_a_missing_column_is_an_error_that_lists_those_found(replayed: Replayed) -> None:
    """A column that is truly missing is named, with the columns the file has (same reports)."""
    found = "'TIMESTAMP', 'ContextTokens', 'Generated'"
    with pytest.raises(InputError, match=rf"^trace\.csv: .*'GeneratedTokens' is missing.*{found}$"):
        replayed(azure(*FOUR_ROWS, header="TIMESTAMP,ContextTokens,Generated"))
