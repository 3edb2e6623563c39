"""`Result` and its tables."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from simqueue.errors import InputError
from simqueue.results.policyrun import PolicyRun
from simqueue.results.result import Result
from simqueue.results.steadiness import OfferedLoad
from simqueue.results.tables import REQUEST_TYPES, STEP_TYPES
from simqueue.results.window import steady_window


@pytest.fixture
def mixed(record: Any) -> Any:
    """One finished request, one of a single token, one rejected."""
    return record(
        [
            {"request_id": "a", "first_scheduled_s": 0.0, "first_token_s": 0.5, "finish_s": 1.0, "max_itl_s": 0.5},
            {"request_id": "b", "output_tokens": 1, "first_scheduled_s": 0.0, "first_token_s": 0.5, "finish_s": 0.5},
            {"request_id": "c", "status": "rejected", "reject_reason": "too big", "replica": -1, "finish_s": 0.0},
        ],
        [{"decode_seqs": 1}],
        itl=[(0.5, 1)],
        end_s=1.0,
        warnings=("careful",),
    )


def result_of(*runs: tuple[str, int, Any], warmup_s: float = 0.0, **settings: Any) -> Result:
    """Make a result of (policy, replication, recording) runs."""
    made = [PolicyRun(*run, steady_window(run[2], warmup_s) if warmup_s else None) for run in runs]
    return Result({"name": "toy"}, "0.1.0", 7, made, **settings)


def test_tables_keep_policies_in_order(mixed: Any) -> None:
    """Policies stand in tables in the order in which they were given, not in that of their names."""
    result = result_of(("zebra", 0, mixed), ("ant", 0, mixed))
    for table in (result.requests, result.steps, result.summary):
        assert list(dict.fromkeys(table["policy"])) == ["zebra", "ant"]
    assert (len(result.requests), len(result.steps), len(result.summary)) == (6, 2, 2)
    assert list(result.requests.index) == list(range(6))


def test_columns_and_types_are_the_same_whatever_is_in_them(mixed: Any, record: Any) -> None:
    """Full, empty and no recordings give the same columns with the same types."""
    for result in (result_of(("p", 0, mixed)), result_of(("p", 0, record())), result_of()):
        assert {n: str(t) for n, t in result.requests.dtypes.items()} == REQUEST_TYPES
        assert {n: str(t) for n, t in result.steps.dtypes.items()} == STEP_TYPES
    assert list(result_of().summary.columns) == list(result_of(("p", 0, mixed)).summary.columns)


def test_requests_table_marks_what_is_undefined_as_missing(mixed: Any) -> None:
    """A rejected request has a reason and no replica or latency; a one-token output has no TPOT."""
    table = result_of(("p", 0, mixed)).requests.set_index("request_id")
    assert table["status"].tolist() == ["finished", "finished", "rejected"]
    assert table.loc["c", "reject_reason"] == "too big"
    assert table["reject_reason"].isna().tolist() == [True, True, False]
    assert table["replica"].isna().tolist() == [False, False, True]
    assert table["tpot_ms"].isna().tolist() == [False, True, True]
    assert table.loc["a", ["ttft_ms", "tpot_ms", "e2el_ms", "max_itl_ms"]].tolist() == [500, 500, 1000, 500]


def test_classes_add_a_column(record: Any) -> None:
    """Requests of a class show it in the last column; without classes there is no such column."""
    table = result_of(("p", 0, record([{"request_class": "chat"}, {}]))).requests
    assert list(table.columns) == [*REQUEST_TYPES, "request_class"]
    assert table["request_class"].fillna("-").tolist() == ["chat", "-"]


def test_summary_of_classes_is_a_frame_with_missing_values(record: Any) -> None:
    """What only the whole machine can tell is missing in the rows of classes."""
    row = {"request_class": "chat", "first_scheduled_s": 0.0, "first_token_s": 0.5, "finish_s": 1.0}
    summary = result_of(("p", 0, record([row], end_s=1.0, max_concurrent=1))).summary
    assert summary["request_class"].tolist() == ["all", "chat"]
    assert summary["max_concurrent_requests"].isna().tolist() == [False, True]


def test_json_is_strict_and_complete(mixed: Any) -> None:
    """JSON has the promised keys and null for what is undefined, and no word that JSON does not know."""
    text = result_of(("p", 0, mixed)).to_json()

    def fail(word: str) -> None:
        pytest.fail(f"{word} is not JSON")

    content = json.loads(text, parse_constant=fail)
    assert list(content) == ["scenario", "origins", "version", "seed", "summary", "requests", "warnings"]
    assert (content["scenario"], content["version"], content["seed"]) == ({"name": "toy"}, "0.1.0", 7)
    assert [row["tpot_ms"] for row in content["requests"]] == [500.0, None, None]
    assert [row["replica"] for row in content["requests"]] == [0, 0, None]
    assert list(content["requests"][0]) == list(REQUEST_TYPES)
    assert content["summary"][0]["request_goodput"] is None
    assert "\n" not in text


def test_json_without_requests(mixed: Any) -> None:
    """The requests can be left out; the rest stays."""
    content = json.loads(result_of(("p", 0, mixed)).to_json(requests=False))
    assert list(content) == ["scenario", "origins", "version", "seed", "summary", "warnings"]


def test_json_refuses_numbers_it_does_not_know(record: Any) -> None:
    """An infinity in the scenario is an error, not a word that breaks parsers."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        Result({"x": float("inf")}, "0.1.0", 7, [PolicyRun("p", 0, record())]).to_json()


def test_warnings_are_told_once_with_their_policies(mixed: Any) -> None:
    """The scenario's own warnings come first; what several policies or replications have in common is one line."""
    result = result_of(("p", 0, mixed), ("q", 0, mixed), warnings=["hello", "hello", "q: own", "p: own"])
    assert result.warnings[:3] == ("hello", "q, p: own", "p, q: careful")
    several = result_of(("p", 0, mixed), ("p", 1, mixed))
    assert several.warnings[:1] == ("p: careful",)


def test_rejections_are_one_line_a_policy_with_the_first_reason(mixed: Any) -> None:
    """Rejected requests are counted over all replications, with the reason of the first."""
    two = result_of(("p", 0, mixed), ("p", 1, mixed), ("q", 0, mixed)).warnings
    assert [line for line in two if "rejected" in line] == [
        "p: 2 of 6 requests rejected; first reason: too big",
        "q: 1 of 3 requests rejected; first reason: too big",
    ]


def test_where_nothing_finished_nothing_is_said_about_load(record: Any) -> None:
    """If all requests are rejected, there is no warning about the load, be it low or above 1."""
    rejected = [{"status": "rejected", "arrival_s": float(i), "finish_s": float(i)} for i in range(200)]
    lines = result_of(("p", 0, record(rejected, end_s=200.0)), offered={"p": OfferedLoad(1.5, "slots")}).warnings
    assert lines == ("p: none of 200 requests finished: latencies are undefined", "p: 200 of 200 requests rejected")


@pytest.mark.parametrize(
    ("requests", "warmup_s", "warning"),
    [
        ([{"status": "rejected", "finish_s": 0.0}], 0.0, "p: none of 1 requests finished"),
        ([{"first_token_s": 1.0, "finish_s": 2.0}], 5.0, "p: all 1 requests arrived before warmup_s = 5"),
        (
            [{"first_token_s": 1.0, "finish_s": 2.0}, {"arrival_s": 6.0, "status": "unfinished"}],
            5.0,
            "p: no request that arrived after the warm-up finished",
        ),
    ],
)
def test_a_run_in_which_nothing_is_measured_says_so(
    record: Any, requests: list[dict[str, Any]], warmup_s: float, warning: str
) -> None:
    """Where latencies are undefined for want of finished requests, a warning gives the reason."""
    line = result_of(("p", 0, record(requests, end_s=7.0)), warmup_s=warmup_s).warnings[0]
    assert line.startswith(warning)


def test_a_misspelt_slo_is_refused_at_once(record: Any) -> None:
    """The error comes when the result is made, not when a table is asked for."""
    with pytest.raises(InputError, match="did you mean 'e2el_ms'"):
        result_of(("p", 0, record()), slo={"e2e_ms": 1})


def test_the_summary_frame_has_the_rows_values(preempted_pair: Any) -> None:
    """The DataFrame and the plain rows say the same, missing values for None."""
    result = result_of(("p", 0, preempted_pair))
    (row,) = result.summary_rows
    for name, value in row.items():
        shown = result.summary[name].iloc[0]
        assert pd.isna(shown) if value is None else shown == value
