"""Promises of the timestamp parser: exact to 100 ns in every accepted form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.workload.traces.timestamps import TICKS_PER_S, BadTimestampError, parse_timestamps

from ..helpers.profiles import examples

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@st.composite
def written_ticks(draw: st.DrawFn) -> tuple[int, str]:
    """Draw a time in 100-ns ticks and one way of writing it without loss."""
    ticks = draw(st.integers(-60_000_000_000, 250_000_000_000)) * draw(st.sampled_from([1, 10**4, 10**6]))
    seconds, fraction = divmod(ticks, TICKS_PER_S)
    day = (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%d{}%H:%M:%S")
    digits = f"{fraction:07d}"
    shortest = len(digits.rstrip("0"))
    kept = draw(st.integers(shortest, 7))
    text = day.format(draw(st.sampled_from([" ", "T"]))) + (f".{digits[:kept]}" if kept else "")
    return ticks, text + draw(st.sampled_from(["", "Z", "+00:00"]))


@examples(200)
@given(st.lists(written_ticks(), min_size=1, max_size=20))
def test_timestamps_come_back_exactly(rows: list[tuple[int, str]]) -> None:
    """Any mixture of accepted forms reads back as the ticks that were written, by Python's own calendar."""
    assert parse_timestamps([text for _, text in rows]).tolist() == [ticks for ticks, _ in rows]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2023-11-16",
        "2023-11-16 18:15",
        "2023-11-16_18:15:46",
        "2023-02-29 18:15:46",
        "2023-13-01 18:15:46",
        "2023-00-01 18:15:46",
        "2023-11-31 18:15:46",
        "2023-11-16 24:00:00",
        "2023-11-16 18:60:46",
        "2023-11-16 18:15:60",
        "2023-11-16 18:15:46.",
        "2023-11-16 18:15:46.12345678",
        "2023-11-16 18:15:46.12x",
        "2023-11-16 18:15:46+01:00",
        "2023-11-16 18:15:46ZZ",
        "2023-11-16 18:15:4١",
        "16/11/2023 18:15:46",
        "1700158546",
    ],
)
def test_what_is_no_timestamp_is_told_by_its_row(text: str) -> None:
    """A text in another form, or a day or time that does not exist, is an error that names the row."""
    with pytest.raises(BadTimestampError) as caught:
        parse_timestamps(["2024-02-29T23:59:59.9999999Z", text, "2023-11-16 18:15:46"])
    assert caught.value.row == 1
