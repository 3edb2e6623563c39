"""`simulate` and the course module's own program: all times of all requests, and all metrics."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.module08 import Req, simulate

CLOCKS = ("arrivals_in_milliseconds", "arrival_seconds_read_as_milliseconds")
PER_REQUEST = ("static", "continuous", "chunked-512")
WITH_METRICS = (*PER_REQUEST, "chunked-8", "chunked-32", "chunked-128", "chunked-2048")
REL = 1e-9


def simulated(name: str, requests: list[Req]) -> tuple[list[Req], float]:
    """Simulate requests under the policy of a result of the reference, such as ``chunked-32``."""
    policy, _, chunk = name.partition("-")
    if policy == "static":
        return simulate("static", requests)
    if policy == "continuous":
        return simulate("continuous", requests)
    return simulate("chunked", requests, chunk=int(chunk))


def test_the_recipe_gives_the_recorded_traffic(reference: dict[str, Any], recipe: Any) -> None:
    """Seed 1234 gives the 429 requests of the reference, bit for bit; their means are 1051 and 129 tokens."""
    rows, traffic = recipe(1234), reference["traffic"]
    columns = [list(column) for column in zip(*rows, strict=True)]
    assert columns == [traffic[name] for name in ("arrival_s", "prompt_tokens", "output_tokens")]
    assert len(rows) == traffic["n"] == 429
    assert [round(sum(column) / 429) for column in columns[1:]] == [1051, 129]


def test_the_reference_is_covered(reference: dict[str, Any]) -> None:
    """The names tested below are all results of the reference."""
    for clock in CLOCKS:
        assert set(reference[clock]) == set(WITH_METRICS)
        assert {name for name, result in reference[clock].items() if "finish_ms" in result} == set(PER_REQUEST)


@pytest.mark.parametrize("name", PER_REQUEST)
@pytest.mark.parametrize("clock", CLOCKS)
def test_every_time_of_every_request(clock: str, name: str, reference: dict[str, Any], asked: Any) -> None:
    """First tokens and ends agree to 1e-9 relative, with both clocks."""
    right = reference[clock][name]
    requests, end_ms = simulated(name, asked(clock))
    assert [req.first_tok for req in requests] == pytest.approx(right["first_token_ms"], rel=REL)
    assert [req.finish for req in requests] == pytest.approx(right["finish_ms"], rel=REL)
    assert end_ms == pytest.approx(right["end_ms"], rel=REL)


@pytest.mark.parametrize("name", WITH_METRICS)
@pytest.mark.parametrize("clock", CLOCKS)
def test_every_metric(clock: str, name: str, reference: dict[str, Any], asked: Any, measured: Any) -> None:
    """End, tokens per second and percentiles agree; the module interpolates percentiles linearly, as numpy does."""
    right = reference[clock][name]
    requests, end_ms = simulated(name, asked(clock))
    assert end_ms == pytest.approx(right["end_ms"], rel=REL)
    assert measured(requests, end_ms) == pytest.approx(right["metrics"], rel=REL)
