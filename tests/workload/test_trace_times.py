"""Promises about the times of traces: exact decimals, dates, units, and notes on a unit that cannot be right."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import simqueue as sq
from simqueue.datafiles.numbers import decimal, whole_number
from simqueue.errors import InputError
from simqueue.traffic import Traffic
from simqueue.workload import WorkloadSettings
from simqueue.workload.generate import generate
from simqueue.workload.traces.timecells import dates
from simqueue.workload.traces.times import Times
from simqueue.workload.traces.timestamps import BadTimestampError

from ..helpers.profiles import examples

Play = Callable[..., Traffic]
BURSTGPT = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
TENTHS = ["0", "0.1", "0.3", "0.7", "1.1", "1.3", "1.7", "2.3", "2.9", "3.1"]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Return a reader of a text as a trace of some format."""

    def played(text: str, trace_format: str, **keys: Any) -> Traffic:
        (tmp_path / "t.txt").write_text(text, encoding="utf-8")
        trace = {"format": trace_format, "path": "t.txt", **keys}
        return generate(WorkloadSettings.model_validate({"trace": trace}), seed=1, base_dir=tmp_path)

    return played


def written(trace_format: str, times: list[str]) -> str:
    """Return a file of a format with one row of 10 + 2 tokens at each of the times, which are texts."""
    if trace_format == "csv":
        return "arrival_s,prompt_tokens,output_tokens\n" + "".join(f"{t},10,2\n" for t in times)
    if trace_format == "jsonl":
        return "".join(f'{{"arrival_s": {t}, "prompt_tokens": 10, "output_tokens": 2}}\n' for t in times)
    if trace_format == "burstgpt":
        return BURSTGPT + "".join(f"{t},GPT-4,10,2,12,API log\n" for t in times)
    if trace_format == "vllm-bench":
        n = len(times)
        return f'{{"start_times": [{", ".join(times)}], "input_lens": {[10] * n}, "output_lens": {[2] * n}}}'
    rows = (f'"timestamp": {t}, "input_length": 10, "output_length": 2, "hash_ids": [0]' for t in times)
    extra = '"chat_id": 0, ' if trace_format == "bailian" else ""
    return "".join(f"{{{extra}{row}}}\n" for row in rows)


FORMATS = ("csv", "jsonl", "burstgpt", "vllm-bench", "mooncake", "bailian")


def keys_of(trace_format: str) -> dict[str, Any]:
    """Return the keys with which a format of `written` is read in seconds."""
    return {"time_unit": "s", "block_tokens": 16} if trace_format == "mooncake" else {}


@pytest.mark.parametrize("trace_format", FORMATS)
@pytest.mark.parametrize("offset", [5_000_000, 1_714_564_800, 123_456_789_012])
def test_the_same_gaps_are_the_same_arrivals_wherever_the_file_starts(
    trace_format: str, offset: int, play: Play
) -> None:
    """Case 86: arrivals are those of the decimals in the file, whatever its first time is."""
    moved = [str(offset + Decimal(t)) for t in TENTHS]
    requests = play(written(trace_format, moved), trace_format, **keys_of(trace_format)).requests
    assert [r.arrival_s for r in requests] == [float(t) for t in TENTHS]


def test_a_tie_with_the_end_of_a_step_is_kept_wherever_the_file_starts(tmp_path: Path) -> None:
    """Case 86: ten arrivals that meet ends of steps give the same tables from 0 s and from 5,000,000 s on."""
    tables = []
    for offset in (0, 5_000_000):
        times = [str(offset + Decimal(n) / 100) for n in range(1, 11)]
        (tmp_path / "t.csv").write_text(written("csv", times))
        scenario = {
            "name": "ties",
            "step_time": {"kind": "constant", "seconds": 0.01},
            "kv_cache": {"blocks": 1000},
            "workload": {"trace": {"format": "csv", "path": str(tmp_path / "t.csv")}},
            "policies": {"p": {"scheduler": "chunked", "max_num_seqs": 2, "max_num_batched_tokens": 64}},
        }
        tables.append(sq.run(scenario).requests)
    assert tables[0].equals(tables[1])


_DECIMALS = st.decimals(min_value=0, max_value=10**12, allow_nan=False, allow_infinity=False, places=9)


@examples(100)
@given(st.lists(_DECIMALS, min_size=1, max_size=8), st.decimals(min_value=0, max_value=10**9, places=7))
def test_times_are_rounded_once(numbers: list[Decimal], origin: Decimal) -> None:
    """The seconds since any origin are the nearest float of the exact difference."""
    times = Times.of([decimal(str(number)) for number in numbers])
    exact = [Fraction(number) - Fraction(origin) for number in numbers]
    assert times.since_s(Fraction(origin)).tolist() == [float(value) for value in exact]


@examples(100)
@given(st.lists(st.floats(min_value=0, max_value=1e15), min_size=1, max_size=8))
def test_floats_come_back_as_they_were_written(numbers: list[float]) -> None:
    """A file of shortest texts of floats, from denormal to large in one column, gives the same floats again."""
    times = Times.of([decimal(repr(number)) for number in numbers])
    assert times.since_s(Fraction(0)).tolist() == numbers


@pytest.mark.parametrize("text", ["", "x", "1_0", "nan", "inf", "1e400", "1e-500", "1e999999999999999999", "٣", "0x10"])
def test_what_is_no_decimal_is_refused(text: str) -> None:
    """Texts that are no number, and numbers that would take all memory to write down, are no decimals."""
    with pytest.raises(ValueError, match="not a decimal"):
        decimal(text)


@pytest.mark.parametrize(("text", "number"), [("512", 512), ("512.0", 512), ("5.12e2", 512), ("+7", 7), ("-3.00", -3)])
def test_whole_numbers_as_other_programs_write_them(text: str, number: int) -> None:
    """Case 74: a count may have a point or an exponent as long as it is whole."""
    assert whole_number(text) == number


@pytest.mark.parametrize("trace_format", FORMATS)
@pytest.mark.parametrize(("count", "good"), [("512.0", True), ('"512"', True), ('"512.0"', True), ("512.5", False)])
def test_counts_as_other_programs_write_them(trace_format: str, count: str, good: bool, play: Play) -> None:
    """Case 74: whole numbers with a point or in quotes are counts in every format; fractions are an error."""
    text = written(trace_format, ["1", "2"])
    keys = keys_of(trace_format) | ({"block_tokens": 512} if "hash_ids" in text else {})
    cell = count if trace_format != "burstgpt" else count.strip('"')
    text = text.replace(" 10,", f" {cell},").replace(",10,", f",{cell},").replace("[10, ", f"[{cell}, ")
    if good:
        assert play(text, trace_format, **keys).requests[0].prompt_tokens == 512
    else:
        with pytest.raises(InputError, match=r"t\.txt(:\d|: request 1): .*'512\.5' is not an integer"):
            play(text, trace_format, **keys)


DATES = [
    "2026-05-01T12:00:00Z",
    "2026-05-01T12:00:00.25z",
    "2026-05-01 12:00:01.123456789Z",
    "2026-05-01T14:00:02+02:00",
    "2026-05-01T07:30:03,5-0430",
    "2026-05-01T14:00:04+02",
    "2026-05-01 12:00:05 UTC",
    "2026-05-01T12:00:06",
]
SECONDS = [0, 0.25, 1.123456789, 2, 3.5, 4, 5, 6]


@pytest.mark.parametrize("trace_format", FORMATS)
def test_dates_are_times_in_every_format(trace_format: str, play: Play) -> None:
    """Dates with a zone, an offset, a fraction or none of these are times; without a zone they are UTC."""
    quoted = [f'"{text}"' for text in DATES]
    traffic = play(
        written(trace_format, quoted), trace_format, **({"block_tokens": 16} if "mooncake" in trace_format else {})
    )
    assert [r.arrival_s for r in traffic.requests] == SECONDS
    assert traffic.notes == ()


@st.composite
def written_dates(draw: st.DrawFn) -> tuple[str, Fraction]:
    """Draw a date as text, and its seconds since 1970 by Python's own calendar."""
    zone = timedelta(minutes=draw(st.integers(-14 * 60, 14 * 60)))
    when = draw(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(timezone(zone))))
    nanos = draw(st.integers(0, 999))
    text = when.strftime("%Y-%m-%dT%H:%M:%S") + f".{when.microsecond:06d}{nanos:03d}" + when.strftime("%z")
    since = when - datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - the same object as for the offsets
    seconds = since.days * 86_400 + since.seconds
    return text, seconds + Fraction(since.microseconds * 1000 + nanos, 10**9)


@examples(100)
@given(st.lists(written_dates(), min_size=1, max_size=6))
def test_dates_with_offsets_are_exact_to_the_nanosecond(rows: list[tuple[str, Fraction]]) -> None:
    """Any offset and nine digits of fraction are read exactly."""
    found = dates([text for text, _ in rows])
    assert [found.at(row) for row in range(len(rows))] == [seconds for _, seconds in rows]


@pytest.mark.parametrize(
    "text",
    [
        "2026-05-01",
        "2026-05-01T12:00",
        "2026-02-29T12:00:00Z",
        "2026-05-01T24:00:00Z",
        "2026-05-01T12:00:60Z",
        "2026-05-01T12:00:00+25:00",
        "2026-05-01T12:00:00+02:60",
        "2026-05-01T12:00:00 CEST",
        "01/05/2026 12:00:00",
        "1714564800",
    ],
)
def test_what_is_no_date_is_told_by_its_row(text: str) -> None:
    """A day, an hour or a zone that does not exist is an error of its row."""
    with pytest.raises(BadTimestampError) as caught:
        dates(["2026-05-01T12:00:00+02:00", text])
    assert caught.value.row == 1


def test_dates_and_numbers_do_not_mix(play: Play) -> None:
    """A column is dates or numbers, as its first cell is; a cell of the other kind is an error with its line."""
    with pytest.raises(InputError, match=r":3: arrival_s '5' is not a time such as"):
        play(written("csv", [DATES[0], "5"]), "csv")
    with pytest.raises(InputError, match=rf":3: arrival_s '{DATES[0]}' is not a number$"):
        play(written("csv", ["5", DATES[0]]), "csv")
    with pytest.raises(InputError, match=r":2: arrival_s 'noon' is not a number, or a time such as"):
        play(written("csv", ["noon"]), "csv")


def test_keys_that_dates_leave_without_a_meaning_are_refused(play: Play) -> None:
    """A unit, and the file's own time 0, say nothing about dates."""
    text = written("csv", DATES[:4])
    with pytest.raises(InputError, match=r"trace\.time_unit: t\.txt has dates"):
        play(text, "csv", time_unit="s")
    with pytest.raises(InputError, match=r"trace\.origin: t\.txt has dates"):
        play(text, "csv", origin="file")


def test_deadlines_may_be_dates_too(play: Play) -> None:
    """Further times of a row keep their distance from its arrival, also across zones."""
    text = "arrival_s,prompt_tokens,output_tokens,deadline_s\n"
    text += "2026-05-01T12:00:00Z,1,1,2026-05-01T14:00:02.5+02:00\n2026-05-01T12:00:01Z,1,1,\n"
    assert [r.deadline_s for r in play(text, "csv").requests] == [2.5, None]
    with pytest.raises(InputError, match=r":3: deadline_s '7' is not a time such as"):
        play(text.replace("01Z,1,1,", "01Z,1,1,7"), "csv")


def test_further_times_are_exact_as_well(play: Play) -> None:
    """Case 86: a deadline 0.3 s after an arrival stays so, wherever the file starts; with rate_scale too."""
    text = "arrival_s,prompt_tokens,output_tokens,deadline_s\n5000000.1,1,1,5000000.4\n5000000.3,1,1,5000000.6\n"
    assert [r.deadline_s for r in play(text, "csv").requests] == [0.3, 0.5]
    assert [r.deadline_s for r in play(text, "csv", rate_scale=2.0).requests] == [0.3, 0.4]


def test_start_s_is_subtracted_exactly(play: Play) -> None:
    """Case 86: with origin: file, time 0 is start_s of the file to the last digit."""
    times = [str(5_000_000 + Decimal(t)) for t in TENTHS]
    text = written("csv", ["0", *times])
    found = play(text, "csv", origin="file", start_s=4_999_999.75).requests
    assert [r.arrival_s for r in found] == [float(Decimal(t) + Decimal("0.25")) for t in TENTHS]


def bailian(number: int = 20) -> str:
    """Return rows as Alibaba publishes them: one each 0.75 s, 100 tokens in 7 blocks of 16."""
    return "".join(
        json.dumps(
            {
                "chat_id": i,
                "parent_chat_id": -1,
                "timestamp": 0.75 * i,
                "input_length": 100,
                "output_length": 20,
                "type": "text",
                "turn": 1,
                "hash_ids": [*range(6), 6 + i],
            }
        )
        + "\n"
        for i in range(number)
    )


@pytest.mark.parametrize(
    ("trace_format", "keys"),
    [("bailian", {}), ("bailian", {"time_unit": "s", "block_tokens": 16}), ("mooncake", {"time_unit": "s"})],
)
def test_traces_of_bailian_are_in_seconds_with_their_prefixes(
    trace_format: str, keys: dict[str, Any], play: Play
) -> None:
    """Case 63: seconds, 16 tokens a hash id, and no doubt about it."""
    keys = {"block_tokens": 16, **keys} if trace_format == "mooncake" else keys
    traffic = play(bailian(), trace_format, **keys)
    assert [r.arrival_s for r in traffic.requests] == [0.75 * i for i in range(20)]
    assert traffic.requests[1].prompt == (*((i, 0, 16) for i in range(6)), (7, 0, 4))
    assert traffic.notes == ()


@pytest.mark.parametrize("stream", [False, True])
def test_a_wrong_unit_is_noticed_in_a_mooncake_trace(stream: bool, play: Play) -> None:
    """Case 63: keys of the other trace, fractions of a millisecond and an implausible rate are each noted."""
    notes = play(bailian(), "mooncake", block_tokens=16, stream=stream).notes
    assert len(notes) == 2
    assert "has chat_id" in notes[0]
    assert "1,333 requests per second" in notes[1]
    assert "in s it would be 1.33 per second" in notes[1]
    plain = '{"timestamp": 0.75, "input_length": 5, "output_length": 1}\n' * 2
    (note,) = play(plain, "mooncake", block_tokens=16, stream=stream).notes
    assert "fractions of a millisecond" in note
    assert play(plain, "mooncake", block_tokens=16, time_unit="ms", stream=stream).notes == ()


@pytest.mark.parametrize(
    ("trace", "key"),
    [
        ({"format": "azure", "path": "x", "time_unit": "s"}, "time_unit"),
        ({"format": "burstgpt", "path": "x", "time_unit": "s"}, "time_unit"),
        ({"format": "vllm-bench", "path": "x", "time_unit": "s"}, "time_unit"),
        ({"name": "azure-2023-code", "time_unit": "s"}, "time_unit"),
        ({"format": "csv", "path": "x", "block_tokens": 16}, "block_tokens"),
    ],
)
def test_keys_that_a_format_does_not_use_are_refused_with_any_value(trace: dict[str, Any], key: str) -> None:
    """Case 63: what was given counts, not whether it differs from a default."""
    with pytest.raises(ValidationError, match=rf"{key}\n  only for formats "):
        WorkloadSettings.model_validate({"trace": trace})


def test_keys_that_a_workload_does_not_use_are_refused_with_any_value() -> None:
    """Case 63: a correlation of 0 says nothing about a trace, either; null is no value."""
    trace = {"name": "azure-2023-code"}
    with pytest.raises(ValidationError, match="prompt_output_correlation\n  cannot be combined with trace"):
        WorkloadSettings.model_validate({"trace": trace, "prompt_output_correlation": 0.0})
    WorkloadSettings.model_validate({"trace": {**trace, "time_unit": None}, "prompt_output_correlation": None})


@pytest.mark.parametrize(
    ("gap", "unit", "said"),
    [
        ("120", "s", "a request in 120 s on average, with times in s; in ms it would be 8.33 per second"),
        ("750", "s", "a request in 750 s on average, with times in s; in ms it would be 1.33 per second"),
        ("0.75", "us", "1,333,333 requests per second on average, with times in us; in s it would be 1.33 per second"),
        ("2", "ns", "500,000,000 requests per second on average, with times in ns; in s it would be 0.5 per second"),
        ("0.75", "s", None),
        ("750", "ms", None),
    ],
)
def test_implausible_rates_name_a_plausible_unit(gap: str, unit: str, said: str | None, play: Play) -> None:
    """Thousands of requests a second, or hours between two, are noted in one line, with the unit that would fit."""
    text = written("csv", [str(i * Decimal(gap)) for i in range(50)])
    assert play(text, "csv", time_unit=unit).notes == (() if said is None else (f"t.txt: {said}",))


def test_times_since_1970_in_another_unit_are_noticed(play: Play) -> None:
    """Times beyond the year 2100 which are dates of this century in a smaller unit are noted, whatever the rate."""
    text = written("csv", [str(1_777_636_800_000 + 100_000 * i) for i in range(5)])
    (note,) = play(text, "csv").notes
    assert note.endswith("they look like times since 1970 in ms: time_unit: ms")
    assert play(text, "csv", time_unit="ms").notes == ()
    assert play(written("csv", [str(1_777_636_800 + 100 * i) for i in range(5)]), "csv").notes == ()


@pytest.mark.parametrize("stream", [False, True])
def test_a_trace_of_which_nothing_is_left_is_an_error(stream: bool, play: Play) -> None:
    """A run without a request has no results, so rows that are all dropped are told before it."""
    text = written("csv", ["1", "2", "3"]).replace(",2\n", ",0\n")
    with pytest.raises(InputError, match=r"t\.txt: none of 3 rows can be used, because they have 0 prompt or 0 output"):
        play(text, "csv", stream=stream)


def test_a_missing_column_names_the_key_that_renames_it(play: Play) -> None:
    """The way out is in the message."""
    text = written("csv", ["1"]).replace("arrival_s", "ts")
    with pytest.raises(InputError, match=r"found: 'ts', .*; a column of another name is given as columns: \{arrival_s"):
        play(text, "csv")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("-1", "'-1' is not a finite number of at least 0"),
        ("nan", "'nan' is not a finite number of at least 0"),
        ("1e30", "'1e30' is not a finite number of at least 0"),
        ("9" * 5000, "is not a finite number of at least 0"),
    ],
)
def test_times_beyond_reason_are_refused_with_their_line(cell: str, said: str, play: Play) -> None:
    """Negative, infinite and absurdly large times are errors in one line."""
    with pytest.raises(InputError) as caught:
        play(written("csv", ["1", cell]), "csv")
    assert str(caught.value).startswith("t.txt:3: arrival_s ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
