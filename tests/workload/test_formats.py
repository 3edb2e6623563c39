"""Promises of the trace formats beside Azure and plain CSV, and of what can be done with any of them."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from simqueue.errors import InputError
from simqueue.traffic import Traffic
from simqueue.workload import WorkloadSettings
from simqueue.workload.arrivals.curves import CURVES
from simqueue.workload.generate import generate
from simqueue.workload.traces import streaming
from simqueue.workload.traces.catalog import packaged_trace

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.0000000,100,10\n"
PLAIN = "arrival_s,prompt_tokens,output_tokens\n0,100,10\n"
BURSTGPT = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,100,10,110,Conversation log\n"
)
MOONCAKE = '{"timestamp":0,"input_length":100,"output_length":10,"hash_ids":[0]}\n'
JSONL = '{"arrival_s":0,"prompt_tokens":100,"output_tokens":10}\n'
VLLM = json.dumps({"date": "x", "input_lens": [100], "output_lens": [10], "start_times": [7.5], "ttfts": [0.1]})
BAILIAN = (
    '{"chat_id":1,"parent_chat_id":-1,"timestamp":0.75,"input_length":100,"output_length":10,"type":"text","turn":1,'
    '"hash_ids":[0,1,2,3,4,5,6]}\n'
)
OTLP = (
    '{"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"a","startTimeUnixNano":"1","attributes":['
    '{"key":"gen_ai.usage.input_tokens","value":{"intValue":"100"}},'
    '{"key":"gen_ai.usage.output_tokens","value":{"intValue":"10"}}]}]}]}]}\n'
)
LANGSMITH = (
    '{"id":"a","run_type":"llm","start_time":"2026-05-01T12:00:00","prompt_tokens":100,"completion_tokens":10}\n'
)
FILES = {
    "otlp": OTLP,
    "langsmith": LANGSMITH,
    "azure": AZURE,
    "csv": PLAIN,
    "burstgpt": BURSTGPT,
    "mooncake": MOONCAKE,
    "bailian": BAILIAN,
    "jsonl": JSONL,
    "vllm-bench": VLLM,
}

Play = Callable[..., Traffic]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let streamed traces be read in pieces so small that short files have several."""
    monkeypatch.setattr(streaming, "ROWS_AT_ONCE", 700)


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Return a reader of a text as a trace of some format."""

    def played(text: str, trace_format: str, *, seed: int = 1, num_requests: int | None = None, **keys: Any) -> Traffic:
        (tmp_path / "t.txt").write_bytes(text.encode())
        if trace_format == "mooncake":
            keys.setdefault("block_tokens", 512)
        trace = {"format": trace_format, "path": "t.txt", **keys}
        settings = WorkloadSettings.model_validate({"trace": trace, "num_requests": num_requests})
        return generate(settings, seed=seed, base_dir=tmp_path)

    return played


def asked(traffic: Traffic) -> list[tuple[float, int, int]]:
    """Return arrivals and lengths."""
    return [(r.arrival_s, r.prompt_tokens, r.output_tokens) for r in traffic.requests]


@pytest.mark.parametrize("trace_format", FILES)
def test_each_format_reads_its_own_file(trace_format: str, play: Play) -> None:
    """The same request in every format is the same request."""
    assert asked(play(FILES[trace_format], trace_format)) == [(0, 100, 10)]


@pytest.mark.parametrize("trace_format", FILES)
@pytest.mark.parametrize("other", FILES)
def test_each_reader_names_the_format_of_the_others_files(trace_format: str, other: str, play: Play) -> None:
    """A file in another format is an error in one line that says what it looks like."""
    if other == trace_format:
        assert asked(play(FILES[other], trace_format)) == [(0, 100, 10)]
        return
    if (other, trace_format) == ("bailian", "mooncake"):  # it has all keys, so only a note can say it
        assert "format: bailian" in play(FILES[other], trace_format, block_tokens=16).notes[0]
        return
    with pytest.raises(InputError, match=rf"this looks like {other}\b") as caught:
        play(FILES[other], trace_format)
    assert "\n" not in str(caught.value)


def test_units_are_the_same_in_every_format(play: Play) -> None:
    """Case 30: three requests at 0, 1 and 2 s in milliseconds, seconds, dates and other units."""
    expected = [(0, 100, 10), (1, 200, 20), (2, 300, 30)]
    rows = [(0, 100, 10), (1, 200, 20), (2, 300, 30)]
    mooncake = "\n".join(
        json.dumps({"timestamp": 1000 * t, "input_length": p, "output_length": o, "hash_ids": [i]})
        for i, (t, p, o) in enumerate(rows)
    )
    burst = BURSTGPT.splitlines()[0] + "".join(f"\n{t},GPT-4,{p},{o},{p + o},API log" for t, p, o in rows)
    azure = AZURE.splitlines()[0] + "".join(f"\n2023-11-16 18:15:4{t}.0000000,{p},{o}" for t, p, o in rows)
    micro = "\n".join(json.dumps({"t": t * 10**6, "in": p, "out": o}) for t, p, o in rows)
    names = {"arrival_s": "t", "prompt_tokens": "in", "output_tokens": "out"}
    bench = {"start_times": [99.0, 100.0, 101.0], "input_lens": [100, 200, 300], "output_lens": [10, 20, 30]}
    assert asked(play(mooncake, "mooncake")) == expected
    assert asked(play(burst, "burstgpt")) == expected
    assert asked(play(azure, "azure")) == expected
    assert asked(play(micro, "jsonl", columns=names, time_unit="us")) == expected
    assert asked(play(json.dumps(bench), "vllm-bench")) == expected


def test_burstgpt_both_versions(play: Play) -> None:
    """Case 27: failed calls have 0 response tokens and are dropped and counted; version 1.2 brings sessions."""
    head = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    rows = "5,12,1.5,ChatGPT,472,18,490,Conversation log\n45,12,,ChatGPT,1087,0,1087,Conversation log\n"
    rows += "118.5,,2,GPT-4,417,276,693,API log\n120,7,2,GPT-4,0,5,5,API log\n"
    traffic = play(head + rows, "burstgpt")
    assert asked(traffic) == [(0, 472, 18), (113.5, 417, 276)]
    assert [r.session for r in traffic.requests] == ["12", None]
    assert traffic.dropped_rows == 2
    with pytest.raises(InputError, match=r":3: prompt 1087 and output 0 tokens"):
        play(head + rows, "burstgpt", zero_token_rows="fail")


def test_mooncake_hash_ids_become_shared_tokens(play: Play) -> None:
    """Case 31: rows whose lists begin alike share whole blocks of the trace, for any block size of the engine."""
    two = '{"timestamp":0,"input_length":1000,"output_length":8,"hash_ids":[0,1]}\n'
    two += '{"timestamp":5,"input_length":700,"output_length":8,"hash_ids":[0,2]}\n'
    first, second = play(two, "mooncake").requests
    assert [length for _, _, length in first.prompt or ()] == [512, 488]
    assert [length for _, _, length in second.prompt or ()] == [512, 188]
    assert (first.prompt or ())[0] == (second.prompt or ())[0]
    assert (first.prompt or ())[1][0] != (second.prompt or ())[1][0]


@pytest.mark.parametrize(
    ("row", "block", "said"),
    [
        ((20, "[0,1]"), 512, r":1: input_length 20 at block_tokens 512 needs 1 hash_ids, the row has 2"),
        ((1000, "[0,1]"), 256, r":1: input_length 1000 at block_tokens 256 needs 4 hash_ids, the row has 2"),
        ((20, '["a"]'), 512, r"hash_ids must be a list of integers"),
        ((20, "[-1]"), 512, r"hash_ids must be a list of integers"),
    ],
)
def test_hash_ids_that_do_not_fit_are_rejected(row: tuple[int, str], block: int, said: str, play: Play) -> None:
    """Case 31: the wrong number of ids for the block size of the trace is an error that names the row."""
    text = f'{{"timestamp":0,"input_length":{row[0]},"output_length":8,"hash_ids":{row[1]}}}\n'
    with pytest.raises(InputError, match=said):
        play(text, "mooncake", block_tokens=block)


def test_the_block_size_of_a_trace_is_never_assumed() -> None:
    """A Mooncake file at a path needs block_tokens; in other formats it is an error."""
    with pytest.raises(ValidationError, match="format mooncake needs block_tokens"):
        WorkloadSettings.model_validate({"trace": {"format": "mooncake", "path": "x"}})
    with pytest.raises(ValidationError, match=r"block_tokens\n  only for formats mooncake, bailian"):
        WorkloadSettings.model_validate({"trace": {"format": "csv", "path": "x", "block_tokens": 4}})


def test_bins_are_spread_inside_themselves(play: Play) -> None:
    """spread_s puts the rows of a bin at uniform times inside it, in their order; ids are still row numbers."""
    text = "\n".join(
        json.dumps({"timestamp": 3000 * (i // 10), "input_length": 5, "output_length": 1}) for i in range(2000)
    )
    at_once = play(text, "mooncake").requests
    spread = play(text, "mooncake", spread_s=3.0, origin="file").requests
    assert [r.request_id for r in spread] == [r.request_id for r in at_once]
    offsets = np.array([r.arrival_s for r in spread]) - np.repeat(3.0 * np.arange(200), 10)
    assert (np.diff([r.arrival_s for r in spread]) >= 0).all()
    assert stats.kstest(offsets, "uniform", args=(0, 3)).pvalue > 0.01
    wider = play(text, "mooncake", spread_s=4.0, origin="file").requests
    assert [r.request_id for r in wider] == [r.request_id for r in at_once]
    assert all(r.arrival_s < 3 * (int(r.request_id) // 10 + 1) for r in wider[:-10])


def test_the_vllm_result_needs_start_times(play: Play) -> None:
    """A result without start_times, or saved without details, says what is missing and why."""
    with pytest.raises(InputError, match=r"the list start_times is missing: arrival times are unknown without it"):
        play(json.dumps({"input_lens": [1], "output_lens": [1]}), "vllm-bench")
    with pytest.raises(InputError, match=r"the list start_times is missing"):
        play(json.dumps({"duration": 3, "completed": 1}), "vllm-bench")
    uneven = {"input_lens": [1], "output_lens": [1, 2], "start_times": [0.0]}
    with pytest.raises(
        InputError, match="must have equal lengths: start_times has 1, input_lens has 1, output_lens has 2"
    ):
        play(json.dumps(uneven), "vllm-bench")
    failed = {"input_lens": [5, 6], "output_lens": [0, 2], "start_times": [3.0, 4.0]}
    assert asked(play(json.dumps(failed), "vllm-bench")) == [(0, 6, 2)]


def test_jsonl_carries_everything_about_a_request(play: Play) -> None:
    """Optional keys of JSON lines reach the request; null and missing mean: not given."""
    row = {
        "request_id": "a",
        "arrival_s": 1.5,
        "prompt_tokens": 3,
        "output_tokens": 2,
        "priority": -1,
        "class": "chat",
        "deadline_s": 9.0,
        "wanted_s": 1.0,
        "gives_up_s": 4.0,
        "attempt": 1,
        "session": "s",
        "client": "c",
        "prompt": [[7, 0, 2], [9, 1, 1]],
        "output_stream": 11,
    }
    bare = {"request_id": "b", "arrival_s": 2, "prompt_tokens": 3, "output_tokens": 2, "priority": None}
    traffic = play(json.dumps(row) + "\n\n" + json.dumps(bare), "jsonl", origin="file")
    first, second = traffic.requests
    assert (first.request_id, first.priority, first.request_class, first.deadline_s) == ("a", -1, "chat", 9.0)
    assert (first.wanted_s, first.gives_up_s, first.attempt) == (1.0, 4.0, 1)
    assert (first.session, first.client, first.prompt, first.output_stream) == ("s", "c", ((7, 0, 2), (9, 1, 1)), 11)
    assert (second.priority, second.prompt, second.wanted_s, second.session) == (0, None, None, None)
    shifted = play(json.dumps(row), "jsonl").requests[0]
    assert (shifted.arrival_s, shifted.wanted_s, shifted.gives_up_s) == (0, -0.5, 2.5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("[1]\n", r":1: a JSON object is expected"),
        (JSONL + "{oops\n", ":2: not JSON (Expecting property name enclosed in double quotes, column 2)"),
        ("{\n}\n", ":1: not JSON"),
        (JSONL + "[" * 100_000, ":2: not JSON (nested too deeply"),
        (JSONL.replace("100", "100.5"), r":1: prompt_tokens '100.5' is not an integer"),
        (JSONL.replace("100", '"many"'), r":1: prompt_tokens 'many' is not an integer"),
        (JSONL.replace("100", "true"), r":1: prompt_tokens 'true' is not an integer"),
        (JSONL.replace("100", "-3"), r":1: prompt_tokens '-3' is not between 0"),
        (JSONL.replace(":0,", ":NaN,"), r":1: arrival_s 'nan' is not a finite number"),
        (JSONL.replace("arrival_s", "when"), "column 'arrival_s' is missing, columns found: 'when'"),
        (JSONL.replace("}", ',"prompt":[[1,0,5]]}'), "the pieces have 5 tokens, prompt_tokens is 100"),
        (JSONL.replace("}", ',"wanted_s":5}'), "wanted_s 5 is after arrival_s 0"),
    ],
)
def test_wrong_json_lines_are_rejected(text: str, said: str, play: Play) -> None:
    """Each fault of a JSON lines file is one line with file, line, key and value."""
    with pytest.raises(InputError) as caught:
        play(text, "jsonl")
    assert said in str(caught.value)
    assert str(caught.value).startswith("t.txt:")
    assert "\n" not in str(caught.value)


def rows_at(times: list[float]) -> str:
    """Return a plain file with rows at given seconds."""
    return "arrival_s,prompt_tokens,output_tokens\n" + "".join(f"{t!r},{i + 1},1\n" for i, t in enumerate(times))


def test_windows_by_row(play: Play) -> None:
    """Case 57: start_row and end_row cut in order of time; with start_s both hold."""
    text = rows_at([float(i) for i in range(10)])
    assert [r.request_id for r in play(text, "csv", start_row=3, end_row=6).requests] == ["3", "4", "5"]
    assert [r.request_id for r in play(text, "csv", start_row=3, start_s=5.0).requests] == list("56789")
    assert asked(play(text, "csv", start_row=3, end_row=5)) == [(0, 4, 1), (1, 5, 1)]
    with pytest.raises(InputError, match="its 10 rows are from 0 to 9 s"):
        play(text, "csv", start_row=12)
    with pytest.raises(ValidationError, match=r"end_row\n  must be after start_row, which is 3"):
        play(text, "csv", start_row=3, end_row=3)


def test_repeating_gives_new_ids_and_new_tokens(play: Play) -> None:
    """Case 34: repeat replays the rows, one mean gap after the last, with new ids and token streams."""
    text = rows_at([0.0, 1.0, 4.0])
    thrice = play(text, "csv", repeat=3).requests
    assert [r.request_id for r in thrice] == ["0", "1", "2", "0@1", "1@1", "2@1", "0@2", "1@2", "2@2"]
    assert [r.arrival_s for r in thrice] == [0, 1, 4, 6, 7, 10, 12, 13, 16]
    assert len(play(text, "csv", repeat=3, num_requests=7).requests) == 7
    with pytest.raises(InputError, match=r"100 requests are needed, t\.txt has 3 rows \(repeat 3 makes 9\)"):
        play(text, "csv", repeat=3, num_requests=100)
    pair = MOONCAKE + MOONCAKE.replace(":0,", ":2000,", 1)
    a, b, c, d = (r.prompt for r in play(pair, "mooncake", repeat=2).requests)
    assert a == b != c == d
    with pytest.raises(InputError, match=r"trace\.repeat: all used rows of t\.txt have one time"):
        play(rows_at([2.0, 2.0]), "csv", repeat=2)


def test_duplicate_ids_fail_or_are_renamed(play: Play) -> None:
    """An id that is used twice is an error with both lines, or gets a number that no other id has."""
    head = "request_id,arrival_s,prompt_tokens,output_tokens\n"
    text = head + "a,0,1,1\na,1,1,1\na~2,2,1,1\na,3,1,1\n"
    with pytest.raises(InputError, match=r":3: request_id 'a' is already used in line 2 \(duplicate_ids: rename"):
        play(text, "csv")
    renamed = play(text, "csv", duplicate_ids="rename")
    assert [r.request_id for r in renamed.requests] == ["a", "a~3", "a~2", "a~4"]
    assert renamed.notes == ("t.txt: 2 of 4 requests have an id that is already used and were renamed",)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "keys",
    [{}, {"thin": 0.3}, {"limit": 1000}, {"start_s": 50.0, "end_s": 250.5}, {"rate_scale": 3.0, "origin": "file"}],
    ids=str,
)
def test_streaming_gives_the_same_requests(keys: dict[str, Any], play: Play) -> None:
    """A streamed trace has the requests of one read at once, to the last bit, as often as it is iterated over."""
    rng = np.random.default_rng(5)
    times = np.cumsum(rng.random(4000) * 0.2)
    rows = (f"{t!r},{p},{o}\n" for t, p, o in zip(times.tolist(), range(4000), rng.integers(0, 9, 4000), strict=True))
    text = "arrival_s,prompt_tokens,output_tokens\n" + "".join(rows)
    whole = play(text, "csv", **keys)
    streamed = play(text, "csv", stream=True, **keys)
    assert list(streamed.requests) == whole.requests
    assert list(streamed.requests) == whole.requests
    assert len(streamed.requests) == len(whole.requests) > 0
    assert streamed.dropped_rows == whole.dropped_rows


def test_streaming_refuses_what_it_cannot_do(play: Play) -> None:
    """Rows out of order, too few rows and keys that need the whole file are errors before the run."""
    with pytest.raises(InputError, match=r":4: this row is earlier than the one before; stream: true"):
        play(rows_at([0.0, 5.0, 4.0]), "csv", stream=True)
    with pytest.raises(InputError, match=r"7 requests are needed, t\.txt has 2 that can be used"):
        play(rows_at([0.0, 5.0]), "csv", stream=True, num_requests=7)
    for key, value in {"repeat": 2, "spread_s": 1.0, "start_row": 1}.items():
        with pytest.raises(ValidationError, match=rf"{key}\n  cannot be combined with stream: true"):
            play(rows_at([0.0]), "csv", stream=True, **{key: value})


@pytest.mark.usefixtures("small_pieces")
def test_streaming_takes_bounded_memory(play: Play) -> None:
    """Twice the rows take no more memory: only a piece of the file is kept."""

    def peak_bytes(n: int) -> int:
        text = io.StringIO()
        csv.writer(text).writerows([("arrival_s", "prompt_tokens", "output_tokens"), *((i, 10, 2) for i in range(n))])
        traffic = play(text.getvalue(), "csv", stream=True)
        del text
        tracemalloc.start()
        count = sum(1 for _ in traffic.requests)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == n
        return peak

    assert peak_bytes(8000) < 1.1 * peak_bytes(4000)


@pytest.mark.parametrize(("name", "rows"), [("mooncake-conversation-10min", 1750), ("mooncake-synthetic", 3993)])
def test_packaged_mooncake_traces(name: str, rows: int) -> None:
    """The packaged files have the bytes that the catalog pins, as many rows as stated, and ids for every block."""
    trace = packaged_trace(name)
    assert hashlib.sha256(trace.path.read_bytes()).hexdigest() == trace.sha256
    requests = generate(WorkloadSettings.model_validate({"trace": {"name": name}}), seed=1, base_dir=Path()).requests
    assert len(requests) == rows
    assert all(len(r.prompt or ()) == -(-r.prompt_tokens // 512) for r in requests)


def test_packaged_curves() -> None:
    """The file of production curves has the bytes that are pinned."""
    assert hashlib.sha256(CURVES.read_bytes()).hexdigest() == (
        "f1cf8f2700b4a99e0f054e9f397a1fd6c012f5aab626eb7dc582ade6f929864b"
    )


@pytest.mark.parametrize("trace_format", FILES)
def test_byte_order_marks_and_line_ends_change_nothing(trace_format: str, play: Play) -> None:
    """Case 35 for every format: a byte order mark, CRLF and blank lines around are read as if they were not there."""
    spoiled = "\ufeff" + FILES[trace_format].replace("\n", "\r\n") + "\r\n\r\n"
    assert asked(play(spoiled, trace_format)) == [(0, 100, 10)]
