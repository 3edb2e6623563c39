"""Limits on requests and on the run: what meets them, in tables, lines and with replications."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.report.comparison import comparison
from simqueue.report.text import notes
from simqueue.results.objectives import judged_limits
from simqueue.results.summary import Row
from simqueue.scenario import from_mapping


def scenario(**more: Any) -> dict[str, Any]:
    """Return two policies, of which the one without chunks has longer gaps between tokens."""
    return {
        "step_time": {"kind": "linear", "overhead_s": 0.02, "per_decode_s": 0.001, "per_prefill_token_s": 5e-5},
        "kv_cache": {"blocks": 100_000},
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 6.0},
            "prompt_tokens": {"distribution": "constant", "value": 500},
            "output_tokens": {"distribution": "geometric", "mean": 20},
            "num_requests": 300,
        },
        "policies": {
            "whole": {"scheduler": "continuous", "max_num_seqs": 8},
            "chunked": {"scheduler": "chunked", "max_num_seqs": 8, "max_num_batched_tokens": 256},
        },
        **more,
    }


def texts(result: Any, label: str) -> tuple[str, ...]:
    """Return the cells of a line of the comparison."""
    (cells,) = (c for group in comparison(result).sections.values() for c in group if c.line.label == label)
    return cells.texts


def test_a_request_is_good_if_no_gap_between_its_tokens_is_longer() -> None:
    """The share of requests whose longest gap is within the limit; one token has no gap and meets it."""
    result = sq.run(scenario(slo={"itl_ms": 45}))
    for row in result.summary_rows:
        mine = result.requests[result.requests["policy"] == row["policy"]]
        good = (mine["max_itl_ms"] <= 45) | mine["max_itl_ms"].isna()
        assert (mine["tokens_emitted"] == 1).any()
        assert 0 < good.sum() <= 300
        assert row["good_share"] == good.sum() / 300
        assert row["request_goodput"] == pytest.approx(good.sum() / row["measured_duration_s"])


def test_only_requests_that_finish_are_good() -> None:
    """Requests that time out count in the whole of which the good ones are a share."""
    base = scenario(slo={"e2el_ms": 1e9})
    base["workload"]["timeout_s"] = 0.5
    for row in sq.run(base).summary_rows:
        assert row["timed_out"] > 0
        assert row["good_share"] == row["completed"] / row["n_requests"]


def test_a_limit_of_the_run_has_its_value_and_whether_it_is_met() -> None:
    """Each policy is judged by its own percentile over requests, or over gaps for ITL; goodput is not concerned."""
    result = sq.run(scenario(slo={"p99_itl_ms": 50, "p90_ttft_ms": 100, "p50_e2el_ms": 600, "mean_tpot_ms": 1}))
    for row in result.summary_rows:
        mine = result.requests[result.requests["policy"] == row["policy"]]
        assert row["p90_ttft_ms"] == pytest.approx(np.percentile(mine["ttft_ms"], 90))
        assert row["met_p90_ttft_ms"] == (np.percentile(mine["ttft_ms"], 90) <= 100)
        assert row["met_p50_e2el_ms"] == (np.percentile(mine["e2el_ms"], 50) <= 600)
        assert row["met_mean_tpot_ms"] is False
        assert row["request_goodput"] is None
        assert "good_share" not in row
    met = {row["policy"]: row["met_p99_itl_ms"] for row in result.summary_rows}
    assert met == {"whole": False, "chunked": True}
    assert [text.split()[1] for text in texts(result, "ITL p99 <= 50")] == ["MISSED", "met"]
    assert str(result.summary.dtypes["met_p99_itl_ms"]) == "boolean"


ROW: Row = {"request_class": "all", "p99_ttft_ms": 100.0}


@pytest.mark.parametrize(
    ("row", "limit_ms", "met"),
    [
        (ROW, 100.0, True),
        (ROW, 99.0, False),
        ({**ROW, "p99_ttft_ms": None}, 100.0, None),
        ({**ROW, "ci_low_p99_ttft_ms": 90.0, "ci_high_p99_ttft_ms": 110.0}, 110.0, True),
        ({**ROW, "ci_low_p99_ttft_ms": 90.0, "ci_high_p99_ttft_ms": 110.0}, 105.0, None),
        ({**ROW, "ci_low_p99_ttft_ms": 90.0, "ci_high_p99_ttft_ms": 110.0}, 89.0, False),
        ({**ROW, "ci_low_p99_ttft_ms": None, "ci_high_p99_ttft_ms": None}, 105.0, True),
    ],
)
def test_an_interval_decides_only_if_it_lies_on_one_side(row: Row, limit_ms: float, met: bool | None) -> None:
    """Where the limit lies inside the interval over replications, nothing is said."""
    assert judged_limits(row, {"p99_ttft_ms": limit_ms}, {})["met_p99_ttft_ms"] is met


def test_what_an_interval_cannot_tell_is_unclear_in_the_table() -> None:
    """Of three replications, a limit at the mean itself is inside the interval."""
    mean_ms = sq.run(scenario(replications=3)).summary_rows[0]["mean_ttft_ms"]
    result = sq.run(scenario(replications=3, slo={"mean_ttft_ms": mean_ms}))
    assert texts(result, f"TTFT mean <= {mean_ms:g}")[0].endswith(" unclear")


def test_classes_have_limits_of_their_own() -> None:
    """A class is judged by its own limits, another by those of the scenario; a class without a limit has no verdict."""
    base = scenario(slo={"p50_e2el_ms": 700})
    base["workload"]["classes"] = {"a": {"weight": 1.0}, "b": {"weight": 2.0, "slo": {"p99_ttft_ms": 1}}}
    result = sq.run(base)
    row = {(row["policy"], row["request_class"]): row for row in result.summary_rows}
    assert row["whole", "b"]["met_p99_ttft_ms"] is False
    assert row["whole", "b"]["met_p50_e2el_ms"] is None
    assert row["whole", "a"]["met_p50_e2el_ms"] == (row["whole", "a"]["median_e2el_ms"] <= 700)
    assert row["whole", "a"]["met_p99_ttft_ms"] is None
    shown = {name: {c.line.label: c.texts[0] for c in group} for name, group in comparison(result).classes.items()}
    assert shown["b"]["TTFT p99 objective"].endswith(" MISSED")
    assert len(shown["a"]["TTFT p99 objective"].split()) == 1


@pytest.mark.parametrize(
    ("slo", "said"),
    [
        ({"p99_itl": 5}, "unknown key 'p99_itl'; did you mean 'p99_itl_ms'"),
        ({"p100_ttft_ms": 5}, "unknown key 'p100_ttft_ms'"),
        ({"p0_ttft_ms": 5}, "unknown key 'p0_ttft_ms'"),
        ({"p99_queue_ms": 5}, "unknown key 'p99_queue_ms'"),
        ({"p99_itl_ms": -5}, r"slo.p99_itl_ms = -5: must be > 0"),
        ({"p99_itl_ms": "fast"}, r"slo.p99_itl_ms = 'fast': must be a number > 0"),
    ],
)
def test_a_wrong_limit_is_one_line(slo: dict[str, Any], said: str) -> None:
    """Misspelt names have the nearest one, wrong values what is allowed."""
    with pytest.raises(InputError, match=said):
        from_mapping(scenario(slo=slo))


@pytest.mark.parametrize("place", ["class", "workloads"])
def test_gaps_between_tokens_have_no_limit_by_class(place: str) -> None:
    """Gaps are recorded without their requests, so such a limit could not be judged: an error that names the key."""
    base = scenario()
    if place == "class":
        base["workload"]["classes"] = {"a": {"weight": 1.0, "slo": {"p99_itl_ms": 50}}}
        path = r"workload.classes.a.slo.p99_itl_ms = 50"
    else:
        base["workloads"] = {"chat": {**base.pop("workload"), "slo": {"p99_itl_ms": 50}}}
        path = r"workloads.chat.slo.p99_itl_ms = 50"
    with pytest.raises(InputError, match=path):
        from_mapping(base)
    assert from_mapping(scenario(workload={**scenario()["workload"], "slo": {"p99_itl_ms": 50}})).resolve().slo


def test_chosen_percentiles_and_latencies_are_shown_and_saved(
    command: Callable[..., Any], scenario_file: Callable[..., Path], tmp_path: Path
) -> None:
    """The flags choose the lines; the summary has the columns of the percentiles besides the usual ones."""
    file = scenario_file(scenario())
    flags = ("--percentiles", "50,90,99.9", "--metrics", "itl,ttft", "--no-figures")
    out = command("run", file, *flags, "--out", tmp_path / "out").out
    labels = [line.strip().split(" (ms)")[0] for line in out.splitlines() if " (ms) " in line]
    assert labels == [f"{name} {kind}" for name in ("TTFT", "ITL") for kind in ("mean", "p50", "p90", "p99.9")] + [
        "ITL max"
    ]
    head = (tmp_path / "out" / "summary.csv").read_text().splitlines()[0].split(",")
    added = [f"{kind}_{name}_ms" for name in ("ttft", "tpot", "itl", "e2el") for kind in ("p90", "p99.9")]
    assert [name for name in head if name in added] == added
    assert "p99.9 1000" in out


def test_p99_of_tpot_and_e2el_can_be_shown() -> None:
    """`summary.metrics` shows every chosen latency with its mean and its percentiles."""
    result = sq.run(scenario(summary={"metrics": ["tpot", "e2el"], "percentiles": [99]}))
    shown = [cells.line.column for group in comparison(result).sections.values() for cells in group]
    latencies = [name for name in shown if name.endswith("_ms")]
    assert latencies == ["mean_tpot_ms", "p99_tpot_ms", "mean_e2el_ms", "p99_e2el_ms"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--percentiles", "50,100"), "--percentiles: '100' must be a number > 0 and < 100"),
        (("--percentiles", "nan"), "--percentiles: 'nan' must be"),
        (("--percentiles", ""), "--percentiles: '' must be"),
        (("--metrics", "ttff"), "--metrics: unknown latency 'ttff'; did you mean 'ttft'?"),
    ],
)
def test_wrong_choices_are_one_line(
    flags: tuple[str, str], said: str, command: Callable[..., Any], scenario_file: Callable[..., Path]
) -> None:
    """A flag with an entry that is not allowed exits with 2 and says what is."""
    shown = command("run", scenario_file(scenario()), *flags)
    assert (shown.code, said in shown.err) == (2, True)


def test_the_note_says_what_a_good_request_is() -> None:
    """Limits of requests stand in a note, with their names and units."""
    (line,) = (n for n in notes(sq.run(scenario(slo={"ttft_ms": 500, "itl_ms": 45}))) if n.startswith("good"))
    assert line == "good requests: the share of all requests that finish with TTFT <= 500 ms and longest ITL <= 45 ms"


def test_a_goodput_of_zero_is_shown() -> None:
    """If no request of any policy meets its limits, the lines say 0: they are not left out."""
    result = sq.run(scenario(slo={"ttft_ms": 0.001}))
    assert texts(result, "goodput") == ("0", "0")
    assert texts(result, "good requests") == ("0.0%", "0.0%")
