"""Promises about the files of traces: compressed ones, Parquet, data sets in folders, exports of tracing tools."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simqueue.datafiles import arrowtable, compressed
from simqueue.datafiles.regular import Budget, UnreadableError, open_regular
from simqueue.errors import InputError
from simqueue.traffic import Traffic
from simqueue.workload import WorkloadSettings
from simqueue.workload.generate import generate

Play = Callable[..., Traffic]
CSV = "arrival_s,prompt_tokens,output_tokens\n0.5,100,10\n1.25,200,20\n"
EXPECTED = [(0, 100, 10), (0.75, 200, 20)]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Return a reader of a file or folder below the temporary one."""

    def played(name: str, trace_format: str, data: bytes | None = None, **keys: Any) -> Traffic:
        if data is not None:
            (tmp_path / name).write_bytes(data)
        settings = WorkloadSettings.model_validate({"trace": {"format": trace_format, "path": name, **keys}})
        return generate(settings, seed=1, base_dir=tmp_path)

    return played


def asked(traffic: Traffic) -> list[tuple[float, int, int]]:
    """Return arrivals and lengths."""
    return [(r.arrival_s, r.prompt_tokens, r.output_tokens) for r in traffic.requests]


def zstd(data: bytes) -> bytes:
    """Return data as Zstandard compresses it."""
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


JSONL = "".join(
    json.dumps({"arrival_s": t, "prompt_tokens": p, "output_tokens": o}) + "\n"
    for t, p, o in [(2, 100, 10), (2.75, 200, 20)]
)
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5,100,10\n2023-11-16 18:15:47.25,200,20\n"
MOONCAKE = (
    '{"timestamp":0,"input_length":100,"output_length":10}\n{"timestamp":750,"input_length":200,"output_length":20}\n'
)
VLLM = json.dumps({"start_times": [7.5, 8.25], "input_lens": [100, 200], "output_lens": [10, 20]})


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
@pytest.mark.parametrize(
    ("text", "trace_format", "keys"),
    [
        (CSV, "csv", {}),
        (CSV, "csv", {"stream": True}),
        (JSONL, "jsonl", {}),
        (AZURE, "azure", {}),
        (MOONCAKE, "mooncake", {"block_tokens": 16}),
        (VLLM, "vllm-bench", {}),
    ],
)
def test_compressed_files_are_read_as_what_is_in_them(
    pack: Callable[[bytes], bytes], text: str, trace_format: str, keys: dict[str, Any], play: Play
) -> None:
    """Every text format may be compressed with gzip or Zstandard, whatever the file is called."""
    assert asked(play("t", trace_format, pack(text.encode()), **keys)) == EXPECTED
    assert asked(play("t", trace_format, pack(b"\xef\xbb\xbf" + text.encode()), **keys)) == EXPECTED


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_damaged_compressed_file_is_one_line(pack: Callable[[bytes], bytes], play: Play) -> None:
    """A file that ends too early, or has other bytes in its middle, is an error that names it."""
    rows = "".join(f"{i},{i + 1},{1 + i % 7}\n" for i in range(20_000))
    data = pack(("arrival_s,prompt_tokens,output_tokens\n" + rows).encode())
    for broken in (data[:-30], data[:40] + bytes(8) + data[48:], data[:12]):
        with pytest.raises(InputError, match=r"^trace\.path: t: (the compressed data is damaged|.*not)") as caught:
            play("t", "csv", broken)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PK\x03\x04abcdef", "this is a zip file; unpack it, or compress it with gzip or zstd"),
        (b"BZh91AY", "this is a bzip2 file; unpack it"),
        (b"\xfd7zXZ\0", "this is an xz file; unpack it"),
        (b"PAR1abcdef", "this is a Parquet file, not text"),
    ],
)
def test_files_that_are_no_text_are_named(data: bytes, said: str, play: Play) -> None:
    """What cannot be read as text says what it is, and for compressed files what could be read."""
    with pytest.raises(InputError, match=said):
        play("t", "csv", data)


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_limits_hold_for_what_a_compressed_file_unpacks_to(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """A few bytes that unpack to many are stopped by the limits of size and of a line, not by the memory."""
    for data, budget, said in (
        (b"1,2\n" * 100_000, Budget(300_000, None), "too large"),
        (b"x" * 400_000, Budget(10**6, 300_000), "a line is too long"),
    ):
        (tmp_path / "t").write_bytes(pack(data))
        opened = compressed.unpacked(open_regular(tmp_path / "t", 10**6), budget)
        with opened, pytest.raises(UnreadableError, match=said):
            opened.read()


MAY = datetime(2026, 5, 1, 12, tzinfo=UTC)
COLUMNS: dict[str, list[Any]] = {
    "seconds": [0.5, 1.25],
    "text": ["0.5", "1.25"],
    "dates": ["2026-05-01T12:00:00Z", "2026-05-01T14:00:00.75+02:00"],
    "utc": pa.array([MAY, MAY + timedelta(seconds=0.75)], pa.timestamp("us", "UTC")),
    "zoned": pa.array([MAY, MAY + timedelta(seconds=0.75)], pa.timestamp("ns", "Europe/Berlin")),
    "naive": pa.array([MAY.replace(tzinfo=None), (MAY + timedelta(seconds=0.75)).replace(tzinfo=None)]),
    "exact": pa.array([5_000_000_500, 5_000_001_250], pa.int64()),
}


def table(**columns: Any) -> pa.Table:
    """Return a table of two rows with these columns beside the token counts."""
    return pa.table({"prompt_tokens": [100.0, 200.0], "output_tokens": [10, 20], "model": ["a", "b"], **columns})


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("stream", [False, True])
def test_parquet_has_times_of_any_type(name: str, stream: bool, tmp_path: Path, play: Play) -> None:
    """Numbers, texts, dates and time stamps with or without a zone are arrivals; counts may be floats."""
    pq.write_table(table(when=COLUMNS[name]), tmp_path / "t.parquet")
    keys = {"time_unit": "ms"} if name == "exact" else {}
    assert asked(play("t.parquet", "parquet", columns={"arrival_s": "when"}, stream=stream, **keys)) == EXPECTED


def test_parquet_has_optional_columns_and_prompts(tmp_path: Path, play: Play) -> None:
    """Nulls are empty cells, and a list of pieces is the identity of a prompt, as in JSON lines."""
    more = {"request_id": ["x", "y"], "priority": [None, -1], "class": ["a", None], "prompt": [[[7, 0, 100]], None]}
    pq.write_table(table(arrival_s=[0.5, 1.25], **more), tmp_path / "t.parquet")
    first, second = play("t.parquet", "parquet").requests
    assert (first.request_id, first.priority, first.request_class, first.prompt) == ("x", 0, "a", ((7, 0, 100),))
    assert (second.request_id, second.priority, second.request_class, second.prompt) == ("y", -1, None, None)


def test_faults_of_a_parquet_file_name_the_row(tmp_path: Path, play: Play) -> None:
    """A fraction of a token, a missing value and a missing column are one line each."""
    broken = pa.table({"arrival_s": [0.0, 1.0], "prompt_tokens": [1.0, 512.5], "output_tokens": [1, None]})
    pq.write_table(broken, tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet: row 2: prompt_tokens '512\.5' is not an integer"):
        play("t.parquet", "parquet")
    with pytest.raises(InputError, match=r"t\.parquet: row 2: output_tokens '' is not an integer"):
        play("t.parquet", "parquet", columns={"prompt_tokens": "output_tokens"})
    with pytest.raises(InputError, match=r"column 'ts' is missing, columns found: 'arrival_s', 'prompt_tokens', 'out"):
        play("t.parquet", "parquet", columns={"arrival_s": "ts"})


def saved(folder: Path, parts: int = 2) -> None:
    """Write a folder as ``Dataset.save_to_disk`` does: Arrow streams, in the order that state.json has."""
    folder.mkdir(parents=True)
    rows = table(arrival_s=[0.5, 1.25])
    names = [f"data-{i:05d}-of-{parts:05d}.arrow" for i in range(parts)]
    for i, name in enumerate(names):
        with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows.slice(i, 1) if parts > 1 else rows)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0", "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"citation": "", "features": {}}))


@pytest.mark.parametrize("stream", [False, True])
def test_a_saved_data_set_is_read_from_its_folder(stream: bool, tmp_path: Path, play: Play) -> None:
    """Hugging Face's save_to_disk: the Arrow files of the folder, in order."""
    saved(tmp_path / "set")
    assert asked(play("set", "huggingface", stream=stream)) == EXPECTED


def test_a_folder_of_several_data_sets_names_them(tmp_path: Path, play: Play) -> None:
    """A DatasetDict is not one recording; the message says which folders there are."""
    for split in ("train", "test"):
        saved(tmp_path / "sets" / split, parts=1)
    (tmp_path / "sets" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(InputError, match=r"holds several data sets; give one of sets/test, sets/train"):
        play("sets", "huggingface")
    assert asked(play("sets/train", "huggingface")) == EXPECTED


@pytest.mark.parametrize("inner", ["", "data"])
def test_a_folder_of_parquet_files_is_one_data_set(inner: str, tmp_path: Path, play: Play) -> None:
    """The files of one part in order of their names, in the folder or in its folder data, as the hub has them."""
    folder = tmp_path / "set" / inner
    folder.mkdir(parents=True)
    rows = table(arrival_s=[0.5, 1.25])
    for i in range(2):
        pq.write_table(rows.slice(i, 1), folder / f"train-{i:05d}-of-00002.parquet")
    assert asked(play("set", "huggingface")) == EXPECTED
    assert asked(play("set", "parquet", stream=True)) == EXPECTED
    pq.write_table(rows, folder / "test-00000-of-00001.parquet")
    with pytest.raises(InputError, match=r"holds several data sets \(test, train\); give one file"):
        play("set", "huggingface")


def test_what_is_no_data_set_is_one_line(tmp_path: Path, play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other files, damaged files, empty folders and names that leave the folder are errors that name them."""
    pq.write_table(table(arrival_s=[0.5, 1.25]), tmp_path / "good.parquet")
    data = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "empty").mkdir()
    saved(tmp_path / "set")
    (tmp_path / "set" / "state.json").write_text('{"_data_files": [{"filename": "../good.parquet"}]}')
    cases: dict[str, tuple[bytes | None, str]] = {
        "t": (CSV.encode(), "not a Parquet or Arrow file"),
        "cut": (data[:-40], "cannot be read"),
        "torn": (data[:4] + bytes(60) + data[64:], "cannot be read"),
        "stream": (b"\xff\xff\xff\xff" + bytes(40), "cannot be read"),
        "empty": (None, "no Parquet files and no state.json"),
        "set": (None, "_data_files must be a list of files of this folder"),
        "chosen": (None, "flatten_indices"),
        "none": (None, "no such file"),
    }
    saved(tmp_path / "chosen")
    (tmp_path / "chosen" / "state.json").write_text('{"_data_files": [], "_indices_data_files": [{}]}')
    for name, (content, said) in cases.items():
        with pytest.raises(InputError, match=said) as caught:
            play(name, "parquet", content)
        assert "\n" not in str(caught.value)
    monkeypatch.setattr(arrowtable, "MOST_ROWS", 1)
    with pytest.raises(InputError, match="the file is too large: it can have up to 1 rows"):
        play("good.parquet", "parquet")


def span(name: str, start_ns: Any, **attributes: Any) -> dict[str, Any]:
    """Return a span as OTLP has it in JSON; integers of attributes are text there."""

    def value(one: Any) -> dict[str, Any]:
        return {"intValue": str(one)} if isinstance(one, int) else {"stringValue": one}

    listed = [{"key": key.replace("__", "."), "value": value(one)} for key, one in attributes.items()]
    return {"traceId": "t", "spanId": name, "name": "chat", "startTimeUnixNano": start_ns, "attributes": listed}


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    """Return an export of spans."""
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "s"}, "spans": list(spans)}]}]}


NEW = {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 10, "gen_ai__conversation__id": "talk"}
OLD = {"gen_ai__usage__prompt_tokens": 200, "gen_ai__usage__completion_tokens": 20}
T0 = 1_777_636_800_123_456_789
"""2026 in nanoseconds, with digits that a float would lose."""


@pytest.mark.parametrize("form", ["one", "lines", "indented", "list"])
@pytest.mark.parametrize("stream", [False, True])
def test_spans_of_calls_are_requests(form: str, stream: bool, play: Play) -> None:
    """OTLP in JSON: starts in nanoseconds as text, token counts under their new and old names, other spans left out."""
    first, second = span("a", str(T0), **NEW), span("b", str(T0 + 1_500_000_001), **OLD)
    other = span("c", str(T0), http__method="POST")
    exports = [otlp(first, other), otlp(second)]
    texts = {
        "one": json.dumps(otlp(first, other, second)),
        "lines": "".join(json.dumps(export) + "\n" for export in exports),
        "indented": json.dumps(otlp(first, other, second), indent=2),
        "list": json.dumps(exports),
    }
    traffic = play("t.json", "otlp", texts[form].encode(), stream=stream)
    assert asked(traffic) == [(0, 100, 10), (1.500000001, 200, 20)]
    assert [r.session for r in traffic.requests] == ["talk", None]
    assert stream or [r.request_id for r in traffic.requests] == ["a", "b"]
    (note,) = traffic.notes
    assert note.startswith("t.json: 1 of 3 spans were left out: they have no token counts, or are of agents")


def test_tokens_of_agents_are_those_of_their_calls(play: Play) -> None:
    """A span of an agent sums the tokens of the calls inside it, so it is no request; a call in a call is noted."""
    agent = span("a", str(T0), gen_ai__operation__name="invoke_agent", **NEW)
    inner = {**span("b", str(T0 + 10), **NEW), "parentSpanId": "a"}
    assert len(play("t", "otlp", json.dumps(otlp(inner, agent)).encode()).requests) == 1
    proxy = {**span("c", str(T0 + 20), **OLD), "parentSpanId": "b"}
    (note,) = play("t", "otlp", json.dumps(otlp(inner, proxy)).encode()).notes
    assert note == "t: calls with other calls inside them: 1; their tokens may be counted twice"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (otlp(span("a", "soon", **NEW)), r"t: span 1: startTimeUnixNano 'soon' is not a number"),
        (
            otlp(span("a", "1", gen_ai__usage__input_tokens="many")),
            r"gen_ai\.usage\.input_tokens 'many' is not an integer",
        ),
        (otlp(span("a", "1", x=1)), r"t: none of 1 spans is a call of a model; left out: they have no token counts"),
        (otlp(span("a", "1", **NEW), span("a", "2", **NEW)), r"request_id 'a' is already used in span 1"),
        ({"resourceSpans": 5}, r"resourceSpans must be a list of objects"),
        ({"resourceMetrics": []}, r"an OTLP export with resourceSpans is expected"),
        ([1], r"an OTLP export with resourceSpans is expected"),
        ({"run_type": "llm", "start_time": ""}, r"expected; this looks like langsmith"),
    ],
)
def test_wrong_exports_of_spans_are_rejected(document: Any, said: str, play: Play) -> None:
    """Each fault of an export is one line that says where it is."""
    with pytest.raises(InputError, match=said) as caught:
        play("t", "otlp", json.dumps(document).encode())
    assert "\n" not in str(caught.value)


def run(name: str, start: str, run_type: str = "llm", **more: Any) -> dict[str, Any]:
    """Return a run as LangSmith exports it."""
    return {"id": name, "name": "ChatOpenAI", "run_type": run_type, "start_time": start, "parent_run_id": "x", **more}


USAGE = {"input_tokens": 200, "output_tokens": 20}
RUNS = [
    run("a", "2026-05-01T12:00:00.000001", prompt_tokens=100, completion_tokens=10, total_tokens=110),
    run("c", "2026-05-01T12:00:00", "chain", prompt_tokens=300, completion_tokens=30),
    run(
        "b", "2026-05-01T12:00:00.750001+00:00", outputs={"usage_metadata": {"input_tokens": 200, "output_tokens": 20}}
    ),
]


@pytest.mark.parametrize(
    "text",
    ["".join(json.dumps(one) + "\n" for one in RUNS), json.dumps(RUNS), json.dumps({"runs": RUNS}, indent=1)],
    ids=["lines", "list", "object"],
)
def test_runs_of_a_model_are_requests(text: str, play: Play) -> None:
    """LangSmith: runs of type llm; those of chains repeat their tokens and are left out, with a note."""
    traffic = play("t", "langsmith", text.encode())
    assert asked(traffic) == EXPECTED
    assert [r.request_id for r in traffic.requests] == ["a", "b"]
    assert traffic.notes == ("t: 1 of 3 runs were left out: their run_type is not llm, or they have no token counts",)


def test_wrong_runs_are_rejected(play: Play) -> None:
    """Counts, times and other files are told in one line each."""
    for change, said in (
        ({"prompt_tokens": 512.5}, r"t: run 1: prompt_tokens '512\.5' is not an integer"),
        ({"start_time": "noon"}, r"t: run 1: start_time 'noon' is not a number, or a time such as"),
        ({"start_time": None}, r"t: run 1: start_time '' is not a number, or a time such as"),
    ):
        with pytest.raises(InputError, match=said):
            play("t", "langsmith", json.dumps({**RUNS[0], **change}).encode())
    with pytest.raises(InputError, match="runs with run_type and start_time are expected; this looks like otlp"):
        play("t", "langsmith", json.dumps(otlp()).encode())
    with pytest.raises(InputError, match=r"t:2: not JSON \("):
        play("t", "langsmith", (json.dumps(RUNS[0]) + "\n{oops\n").encode())
    with pytest.raises(InputError, match="the file is empty"):
        play("t", "langsmith", b"\n\n")
