"""The grammar of limits on changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.decisions.limits import Limit, parse_limits
from simqueue.errors import InputError

KNOWN = ("p99_ttft_ms", "request_throughput", "gpu_busy_share")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("p99_ttft_ms=+5%", Limit("p99_ttft_ms", "+", 0.05, True)),
        ("p99_ttft_ms=5%", Limit("p99_ttft_ms", "+", 0.05, True)),
        (" request_throughput = 2 % ", Limit("request_throughput", "-", 0.02, True)),
        ("request_throughput=+2%", Limit("request_throughput", "+", 0.02, True)),
        ("gpu_busy_share=+-0.1", Limit("gpu_busy_share", "+-", 0.1, False)),
        ("p99_ttft_ms=-1e2", Limit("p99_ttft_ms", "-", 100.0, False)),
        ("p99_ttft_ms=0%", Limit("p99_ttft_ms", "+", 0.0, True)),
    ],
)
def test_a_limit_says_how_far_and_in_which_direction(text: str, limit: Limit) -> None:
    """Without a sign it is on changes for the worse."""
    assert parse_limits([text], KNOWN) == (limit,)


@given(
    metric=st.sampled_from(KNOWN),
    direction=st.sampled_from(["+", "-", "+-"]),
    amount=st.integers(0, 10_000).map(lambda n: n / 100),
    relative=st.booleans(),
)
def test_a_limit_reads_what_it_writes(metric: str, direction: str, amount: float, relative: bool) -> None:
    """The text of a limit is that limit again."""
    limit = Limit(metric, direction, amount, relative)  # type: ignore[arg-type] # drawn from the allowed ones
    (found,) = parse_limits([str(limit)], KNOWN)
    assert (found.metric, found.direction, found.relative) == (metric, direction, relative)
    assert found.amount == pytest.approx(amount, rel=1e-5)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["p99_ttft_ms"], "write METRIC=+5%"),
        (["p99_ttft_ms=lots"], "write METRIC=+5%"),
        (["p99_ttft_ms=+nan%"], "write METRIC=+5%"),
        (["p99_tft_ms=+5%"], "did you mean 'p99_ttft_ms'"),
        (["gpu_busy_share=5%"], "give it a sign"),
        (["p99_ttft_ms=+5%", "p99_ttft_ms=+-9%"], "another limit in this direction, p99_ttft_ms=+5%"),
        ("p99_ttft_ms=+5%", "must be a list"),
    ],
)
def test_what_is_no_limit_is_an_error_in_one_line(texts: list[str], words: str) -> None:
    """Each error says what was written and what can be."""
    with pytest.raises(InputError) as error:
        parse_limits(texts, KNOWN)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
