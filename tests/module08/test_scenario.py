"""The same traffic as a scenario file gives the same results."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import simqueue as sq
from simqueue.module08 import simulate
from simqueue.results.result import Result
from simqueue.scenario.library import find


@pytest.fixture(scope="module")
def result() -> Result:
    """Return the result of the packaged scenario."""
    return sq.run(find("module08"))


def of_policy(result: Result, policy: str) -> pd.DataFrame:
    """Return the requests of one policy."""
    table = result.requests
    return table[table["policy"] == policy]


@pytest.mark.parametrize("policy", ["static", "continuous", "chunked"])
def test_the_scenario_gives_what_simulate_gives(policy: Any, result: Result, asked: Any) -> None:
    """Arrivals, first tokens and finishes agree to 1e-9 relative, seconds there and milliseconds here."""
    table = of_policy(result, policy)
    requests, _ = simulate(policy, asked("arrivals_in_milliseconds"))
    for column, name in (("arrival_s", "arrival"), ("first_token_s", "first_tok"), ("finish_s", "finish")):
        expected_ms = [getattr(req, name) for req in requests]
        assert (1000 * table[column]).tolist() == pytest.approx(expected_ms, rel=1e-9), column


def test_the_scenario_has_the_traffic_of_the_reference(result: Result, reference: dict[str, Any]) -> None:
    """All three policies have the 429 requests of the module, with their lengths."""
    for policy in ("static", "continuous", "chunked"):
        table = of_policy(result, policy)
        assert table["prompt_tokens"].tolist() == reference["traffic"]["prompt_tokens"]
        assert table["output_tokens"].tolist() == reference["traffic"]["output_tokens"]
        assert (table["status"] == "finished").all()


@pytest.mark.parametrize("policy", ["static", "continuous", "chunked"])
def test_its_summary_has_the_percentiles_of_the_module(policy: str, result: Result, reference: dict[str, Any]) -> None:
    """Median and p95 of TTFT and TPOT in the summary are the module's own numbers."""
    name = "chunked-512" if policy == "chunked" else policy
    right = reference["arrivals_in_milliseconds"][name]["metrics"]
    row = next(row for row in result.summary_rows if row["policy"] == policy)
    found = {f"{m}_p{q}": row[f"{s}_{m}_ms"] for m in ("ttft", "tpot") for q, s in ((50, "median"), (95, "p95"))}
    assert found == pytest.approx({key: right[key] for key in found}, rel=1e-9)
