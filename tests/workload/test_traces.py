"""Promises of trace reading: what is accepted, what is an error with file and line, and which rows become requests."""

from __future__ import annotations

import csv
import hashlib
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from simqueue.errors import InputError
from simqueue.traffic import Traffic
from simqueue.workload import WorkloadSettings
from simqueue.workload.generate import generate
from simqueue.workload.traces.catalog import packaged_trace, trace_names
from simqueue.workload.traces.summaries import trace_rows

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"
CASE_25 = "\r\n".join(
    [
        AZURE,
        "2023-11-16 18:15:46.0010000,10,5",
        "2023-11-16 18:15:46.0020000,20,6",
        "2023-11-16 18:15:46.0090000,30,7",
        "2023-11-16 18:15:46.0110000,40,8",
    ]
)


def play(folder: Path, text: str | bytes, *, seed: int = 1, num_requests: int | None = None, **keys: Any) -> Traffic:
    """Write a trace file and return the traffic that it gives."""
    data = text.encode() if isinstance(text, str) else text
    (folder / "trace.csv").write_bytes(data)
    trace = {"format": "azure", "path": "trace.csv", **keys}
    workload = WorkloadSettings.model_validate({"trace": trace, "num_requests": num_requests})
    return generate(workload, seed=seed, base_dir=folder)


def arrivals(traffic: Traffic) -> list[float]:
    """Return the arrival times."""
    return [request.arrival_s for request in traffic.requests]


def azure_rows(*rows: tuple[float, int, int]) -> str:
    """Return an Azure file with rows at given seconds below one minute."""
    return "\n".join([AZURE, *(f"2023-11-16 18:15:{at:010.7f},{p},{o}" for at, p, o in rows)])


def plain_rows(times: list[float]) -> str:
    """Return a plain file with rows at given seconds."""
    return "\n".join(["arrival_s,prompt_tokens,output_tokens", *(f"{t!r},{i + 1},1" for i, t in enumerate(times))])


def test_azure_file_as_published(tmp_path: Path) -> None:
    """Case 25: seven digits, CRLF and no last newline give offsets 0, 1, 8, 10 ms and all four requests."""
    traffic = play(tmp_path, CASE_25)
    assert arrivals(traffic) == pytest.approx([0, 0.001, 0.008, 0.010], abs=1e-12)
    assert [(r.prompt_tokens, r.output_tokens) for r in traffic.requests] == [(10, 5), (20, 6), (30, 7), (40, 8)]
    assert (traffic.notes, traffic.dropped_rows) == ((), 0)


def test_bom_and_blanks_in_the_header(tmp_path: Path) -> None:
    """Case 35: a byte order mark, blanks around names and cells and columns in another order change nothing."""
    plain = play(tmp_path, CASE_25)
    assert play(tmp_path, b"\xef\xbb\xbf" + CASE_25.encode()).requests == plain.requests
    assert play(tmp_path, CASE_25.replace("GeneratedTokens", "GeneratedTokens ")).requests == plain.requests
    assert play(tmp_path, CASE_25.replace(",", " , ") + "\r\n\r\n").requests == plain.requests
    turned = "\n".join(",".join(reversed(line.split(","))) for line in CASE_25.split("\r\n"))
    assert play(tmp_path, turned).requests == plain.requests


def test_units_are_the_same_in_every_format(tmp_path: Path) -> None:
    """Case 30: three requests at 0, 1 and 2 s are the same requests, written as dates or as seconds."""
    dated = play(tmp_path, azure_rows((40, 100, 10), (41, 200, 20), (42, 300, 30)))
    plain = "arrival_s,prompt_tokens,output_tokens\n0,100,10\n1.0,200,20\n2e0,300,30\n"
    assert play(tmp_path, plain, format="csv").requests == dated.requests
    assert arrivals(dated) == [0, 1, 2]


def test_rows_without_tokens_are_dropped_and_counted(tmp_path: Path) -> None:
    """Case 27: rows with 0 output or 0 prompt are dropped, counted and noted; ids are still row numbers."""
    text = azure_rows((1, 10, 0), (2, 10, 5), (3, 0, 5), (4, 10, 5), (5, 10, 0))
    traffic = play(tmp_path, text)
    assert arrivals(traffic) == [0, 2]
    assert [r.request_id for r in traffic.requests] == ["1", "3"]
    assert traffic.dropped_rows == 3
    assert traffic.notes == (
        "trace.csv: dropped 3 of 5 rows because they have 0 prompt or 0 output tokens (the first is line 2)",
    )


def test_rows_without_tokens_can_be_rejected(tmp_path: Path) -> None:
    """Case 27, strict: zero_token_rows: fail names file and line."""
    with pytest.raises(InputError, match=r"trace\.csv:3: prompt 0 and output 5 tokens"):
        play(tmp_path, azure_rows((1, 10, 5), (2, 0, 5)), zero_token_rows="fail")


def test_rows_behind_the_limit_are_not_counted(tmp_path: Path) -> None:
    """Empty rows after the last row that is used are neither counted nor an error."""
    text = azure_rows((1, 10, 0), (2, 10, 5), (3, 10, 5), (4, 10, 0))
    assert play(tmp_path, text, limit=1).dropped_rows == 1
    assert play(tmp_path, text, start_s=0.5, limit=1, zero_token_rows="fail").dropped_rows == 0


@pytest.mark.parametrize("key", ["num_requests", "limit"])
def test_more_requests_than_rows(tmp_path: Path, key: str) -> None:
    """Case 34: 100 requests from 10 rows are an error with both numbers."""
    text = azure_rows(*((float(i), 10, 5) for i in range(10)))
    with pytest.raises(InputError, match=rf"{key}: 100 requests are needed, trace\.csv has 10 rows$"):
        play(tmp_path, text, **{key: 100})
    assert len(play(tmp_path, text, **{key: 10}).requests) == 10
    assert arrivals(play(tmp_path, text, **{key: 4})) == [0, 1, 2, 3]
    with pytest.raises(InputError, match=r"10 rows, of which 5 can be used"):
        play(tmp_path, text, start_s=5, **{key: 6})


def test_number_above_the_limit(tmp_path: Path) -> None:
    """num_requests above trace.limit contradicts it, which is an error with both numbers."""
    text = azure_rows(*((float(i), 10, 5) for i in range(10)))
    with pytest.raises(InputError, match=r"num_requests: 5 requests are needed, trace\.limit allows 3"):
        play(tmp_path, text, num_requests=5, limit=3)
    assert len(play(tmp_path, text, num_requests=2, limit=3).requests) == 2


def test_rate_scale_divides_the_gaps(tmp_path: Path) -> None:
    """rate_scale 2 halves every gap and keeps every row; 0.5 doubles them."""
    text = azure_rows((1, 1, 1), (2, 2, 2), (5, 3, 3))
    assert arrivals(play(tmp_path, text, rate_scale=2.0)) == [0, 0.5, 2]
    assert arrivals(play(tmp_path, text, rate_scale=0.5)) == [0, 2, 8]


def test_window_is_in_the_time_of_the_file(tmp_path: Path) -> None:
    """start_s is included, end_s is not, both count from the file's first row; the first kept row is 0."""
    text = azure_rows((10, 1, 0), (11, 2, 2), (12, 3, 3), (15, 4, 4), (20, 5, 5))
    traffic = play(tmp_path, text, start_s=2, end_s=10, rate_scale=2)
    assert [r.request_id for r in traffic.requests] == ["2", "3"]
    assert arrivals(traffic) == [0, 1.5]
    assert traffic.dropped_rows == 0


def test_windows_that_miss_the_file(tmp_path: Path) -> None:
    """A window with no row is an error: there is nothing to simulate. An end after the last row is noted."""
    text = azure_rows((10, 1, 1), (12, 2, 2))
    said = r"trace\.csv: no row is between start_s 100 and end_s inf; "
    with pytest.raises(InputError, match=said + r"its 2 rows are from 0 to 2 s$"):
        play(tmp_path, text, start_s=100)
    with pytest.raises(InputError, match=said + r"the rows read are from 0 to 2 s$"):
        play(tmp_path, text, start_s=100, stream=True)
    late = play(tmp_path, text, end_s=100)
    assert late.notes == ("trace.csv: end_s 100 is after the last row; its 2 rows are from 0 to 2 s",)


def test_thinning_keeps_gaps_and_drops_rows(tmp_path: Path) -> None:
    """thin 0.25 keeps a quarter of the rows (|z| < 4) where they are, and a subset of what 0.5 keeps."""
    text = plain_rows([float(i) for i in range(4000)])
    quarter = play(tmp_path, text, format="csv", thin=0.25, origin="file")
    half = play(tmp_path, text, format="csv", thin=0.5, origin="file")
    assert abs(len(quarter.requests) - 1000) < 4 * np.sqrt(4000 * 0.25 * 0.75)
    assert {r.request_id for r in quarter.requests} < {r.request_id for r in half.requests}
    assert all(r.arrival_s == float(r.request_id) for r in quarter.requests)
    assert play(tmp_path, text, format="csv", thin=0.25, origin="file") == quarter
    assert play(tmp_path, text, format="csv", thin=0.25, origin="file", seed=2).requests != quarter.requests
    assert len(play(tmp_path, text, format="csv", thin=1.0).requests) == 4000
    window = play(tmp_path, text, format="csv", thin=0.25, origin="file", end_s=2000)
    assert window.requests == [r for r in quarter.requests if r.arrival_s < 2000]


def test_first_kept_row_is_time_zero(tmp_path: Path) -> None:
    """With origin: first_row the first row that thinning leaves arrives at 0."""
    traffic = play(tmp_path, plain_rows([float(i) for i in range(100)]), format="csv", thin=0.1)
    first = int(traffic.requests[0].request_id)
    assert [r.arrival_s + first for r in traffic.requests] == [float(r.request_id) for r in traffic.requests]
    assert first > 0


def test_rows_out_of_order_are_sorted_and_noted(tmp_path: Path) -> None:
    """Rows that go back in time are sorted, equal times keep the order of the file, and their number is noted."""
    traffic = play(tmp_path, azure_rows((5, 1, 1), (3, 2, 2), (5, 3, 3), (4, 4, 4), (9, 5, 5)))
    assert [r.request_id for r in traffic.requests] == ["1", "3", "0", "2", "4"]
    assert arrivals(traffic) == [0, 1, 2, 2, 6]
    assert traffic.notes == ("trace.csv: 2 of 5 rows were not in order of time and were sorted (the first is line 3)",)


BURSTGPT = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n"
)


@pytest.mark.parametrize(
    ("text", "keys", "said"),
    [
        ("", {}, r"trace\.csv: the file is empty"),
        ("\n\n", {}, r"trace\.csv: the file is empty"),
        (AZURE + "\n", {}, r"trace\.csv: the file has a header and no rows"),
        (
            CASE_25.replace("GeneratedTokens", "Tokens"),
            {},
            r"column 'GeneratedTokens' is missing.*'ContextTokens', 'Tokens'$",
        ),
        (CASE_25, {"format": "csv"}, r"column 'arrival_s' is missing.*; this looks like azure$"),
        (plain_rows([0.0]), {}, r"column 'TIMESTAMP' is missing.*; this looks like csv$"),
        (BURSTGPT, {}, r"column 'TIMESTAMP' is missing.*; this looks like burstgpt$"),
        (
            '{"timestamp":0,"input_length":20,"output_length":8,"hash_ids":[0]}\n',
            {},
            r"trace\.csv:1: this looks like mooncake",
        ),
        (azure_rows((1, 1, 1)) + "\n2023-11-16 18:15:46,5\n", {}, r":3: 2 cells, the header has 3"),
        (azure_rows((1, 1, 1)) + "\n2023-11-16 18:15:46,x,5\n", {}, r":3: ContextTokens 'x' is not an integer"),
        (azure_rows((1, 1, 1)) + "\n2023-11-16 18:15:46,4,5.5\n", {}, r":3: GeneratedTokens '5\.5' is not an integer"),
        (azure_rows((1, 1, 1)) + "\n2023-11-16 18:15:46,1_0,5\n", {}, r":3: ContextTokens '1_0' is not an integer"),
        (azure_rows((1, 1, 1)) + "\n2023-11-16 18:15:46,4,-3\n", {}, r":3: GeneratedTokens '-3' is not between 0"),
        (
            azure_rows((1, 1, 1)) + "\n\n2023-11-16 25:15:46,4,3\n",
            {},
            r":4: TIMESTAMP '2023-11-16 25:15:46' is not",
        ),
        (azure_rows((1, 1, 1)) + "\n16.11.2023,4,3\n", {}, r":3: TIMESTAMP '16\.11\.2023' is not a time such as"),
        (AZURE + ",TIMESTAMP\n", {}, r":1: column 'TIMESTAMP' appears twice"),
        (b"\xff\xfe\x00", {}, r"trace\.csv: not a UTF-8 text file$"),
        (plain_rows([1.0]) + "\nnan,1,1", {"format": "csv"}, r":3: arrival_s 'nan' is not a finite number"),
        (
            plain_rows([1.0]) + "\n-1,1,1",
            {"format": "csv"},
            r":3: arrival_s '-1' is not a finite number of at least 0",
        ),
        (plain_rows([1.0]) + "\n,1,1", {"format": "csv"}, r":3: arrival_s '' is not a number"),
        (plain_rows([0.0, 1.0]), {"format": "csv", "rate_scale": 1e-300}, r"trace\.rate_scale: 1e-300 puts the last"),
    ],
)
def test_wrong_files_are_rejected_in_one_line(
    tmp_path: Path, text: str | bytes, keys: dict[str, Any], said: str
) -> None:
    """Case 35 and its kind: each error is one line with file, line, value and what is allowed or found."""
    with pytest.raises(InputError, match=said) as caught:
        play(tmp_path, text, **keys)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    """A missing file is an error with the path as it was written."""
    workload = WorkloadSettings.model_validate({"trace": {"format": "azure", "path": "no/such.csv"}})
    with pytest.raises(InputError, match=r"^trace\.path: \S*such\.csv: no such file"):
        generate(workload, seed=1, base_dir=tmp_path)


def test_plain_format_with_all_columns(tmp_path: Path) -> None:
    """Optional columns reach the request, empty cells mean 'not given', and a deadline moves with its arrival."""
    text = (
        "request_id,arrival_s,prompt_tokens,output_tokens,priority,deadline_s,class\n"
        "a,10,100,5,2,14.5,chat\n"
        "b,12,200,6,,,\n"
    )
    first, second = play(tmp_path, text, format="csv", rate_scale=2).requests
    assert (first.request_id, first.arrival_s, first.priority, first.deadline_s, first.request_class) == (
        ("a", 0, 2, 4.5, "chat")
    )
    assert (second.request_id, second.arrival_s, second.priority, second.deadline_s, second.request_class) == (
        ("b", 1, 0, None, None)
    )
    assert play(tmp_path, text, format="csv", origin="file").requests[0].deadline_s == 14.5
    assert play(tmp_path, text, format="csv", origin="file", start_s=1).requests[0].arrival_s == 11


def test_plain_format_refuses_contradictions(tmp_path: Path) -> None:
    """A repeated id and a deadline before its arrival are errors with the line."""
    head = "request_id,arrival_s,prompt_tokens,output_tokens,deadline_s\n"
    with pytest.raises(InputError, match=r":3: request_id 'a' is already used in line 2"):
        play(tmp_path, head + "a,1,1,1,\na,2,1,1,\n", format="csv")
    with pytest.raises(InputError, match=r":2: deadline_s 0\.5 is before arrival_s 1"):
        play(tmp_path, head + "a,1,1,1,0.5\n", format="csv")
    with pytest.raises(InputError, match=r":2: request_id is empty"):
        play(tmp_path, head + ",1,1,1,\n", format="csv")


def test_columns_can_be_renamed(tmp_path: Path) -> None:
    """columns maps the names of the file; a missing column is an error."""
    text = "t,in,out\n0,5,6\n3,7,8\n"
    names = {"arrival_s": "t", "prompt_tokens": "in", "output_tokens": "out"}
    traffic = play(tmp_path, text, format="csv", columns=names)
    assert [(r.arrival_s, r.prompt_tokens, r.output_tokens) for r in traffic.requests] == [(0, 5, 6), (3, 7, 8)]
    with pytest.raises(InputError, match="column 'who' is missing, columns found: 't', 'in', 'out'"):
        play(tmp_path, text, format="csv", columns={**names, "request_id": "who"})


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        ({}, "exactly one of path (with format), name"),
        ({"path": "x.csv", "format": "csv", "name": "azure-2023-code"}, "exactly one of path (with format), name"),
        ({"path": "x.csv"}, "needs format, one of azure, burstgpt"),
        ({"path": "x.csv", "format": "azur"}, "did you mean 'azure'?"),
        ({"name": "azure-2023-convesation"}, "did you mean 'azure-2023-conversation'?"),
        ({"name": "azure-2023-code", "format": "csv"}, "has format azure"),
        ({"name": "azure-2023-code", "origin": "file"}, "absolute dates"),
        ({"name": "azure-2023-code", "columns": {"arrival_s": "t"}}, "of format azure are fixed"),
        (
            {"path": "x.csv", "format": "csv", "columns": {"arival_s": "t"}},
            "columns.arival_s\n  this column cannot be renamed",
        ),
        ({"name": "azure-2023-code", "start_s": 5, "end_s": 5}, "end_s\n  must be after start_s, which is 5"),
        ({"name": "azure-2023-code", "rate_scale": 0}, "greater than 0"),
        ({"name": "azure-2023-code", "thin": 1.5}, "less than or equal to 1"),
        ({"name": "azure-2023-code", "limit": 0}, "greater than or equal to 1"),
        ({"name": "azure-2023-code", "ratescale": 2}, "did you mean 'rate_scale'?"),
    ],
)
def test_wrong_trace_keys_are_rejected(trace: dict[str, Any], said: str) -> None:
    """Keys of a trace that contradict each other, or are unknown, are errors before any file is opened."""
    with pytest.raises(ValidationError) as caught:
        WorkloadSettings.model_validate({"trace": trace})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "rows", "rate_rps"), [("azure-2023-conversation", 19_366, 5.53), ("azure-2023-code", 8_819, 2.57)]
)
def test_packaged_traces_are_as_published(name: str, rows: int, rate_rps: float) -> None:
    """The packaged files have their published bytes, and every row arrives when Python's own calendar says."""
    trace = packaged_trace(name)
    assert hashlib.sha256(trace.path.read_bytes()).hexdigest() == trace.sha256
    traffic = generate(WorkloadSettings.model_validate({"trace": {"name": name}}), seed=1, base_dir=Path())
    with trace.path.open(newline="") as file:
        published = list(csv.DictReader(file))
    micros = [datetime.fromisoformat(row["TIMESTAMP"][:26]) for row in published]
    last_digit = [int(row["TIMESTAMP"][26]) for row in published]
    expected = [
        ((when - micros[0]).total_seconds() * 1e6 + (digit - last_digit[0]) / 10) / 1e6
        for when, digit in zip(micros, last_digit, strict=True)
    ]
    assert len(traffic.requests) == rows
    assert arrivals(traffic) == pytest.approx(expected, abs=1e-9)
    assert [r.prompt_tokens for r in traffic.requests] == [int(row["ContextTokens"]) for row in published]
    assert [r.output_tokens for r in traffic.requests] == [int(row["GeneratedTokens"]) for row in published]
    assert (traffic.notes, traffic.dropped_rows) == ((), 0)
    (summary,) = [entry for entry in trace_rows() if entry.name == name]
    assert (summary.rows, summary.licence) == (rows, "CC-BY-4.0")
    assert summary.span_s == arrivals(traffic)[-1]
    assert summary.mean_rate_rps == pytest.approx(rate_rps, abs=0.005)
    assert name in trace_names()


def test_timestamp_forms_may_be_mixed_in_one_file(tmp_path: Path) -> None:
    """Blank or T, fraction or none, Z or +00:00 or nothing: all are the same clock, to 100 ns."""
    times = [
        "2024-05-12 00:00:00+00:00",
        "2024-05-12 00:00:00.0000001",
        "2024-05-12T00:00:00.25Z",
        "2024-05-12 00:00:01.0000003+00:00",
        "2024-05-13T00:00:00",
    ]
    text = "\n".join([AZURE, *(f"{time},1,1" for time in times)])
    assert arrivals(play(tmp_path, text)) == [0, 1e-7, 0.25, 1.0000003, 86_400]
