"""Results in Python: read back, compared, shown in notebooks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import simqueue as sq
from simqueue.cli import run_command
from simqueue.results.result import Result

SCENARIO: dict[str, Any] = {
    "seed": 3,
    "step_time": {"kind": "linear", "overhead_s": 0.008, "per_prefill_token_s": 4e-5},
    "kv_cache": {"blocks": 500},
    "replications": 3,
    "slo": {"ttft_ms": 100},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 20},
        "num_requests": 60,
        "prompt_tokens": {"distribution": "constant", "value": 200},
        "output_tokens": {"distribution": "geometric", "mean": 12},
    },
    "policies": {
        "small": {"scheduler": "chunked", "max_num_batched_tokens": 64, "max_num_seqs": 16},
        "large": {"scheduler": "chunked", "max_num_batched_tokens": 1024, "max_num_seqs": 16},
    },
}


@pytest.fixture(scope="module")
def result() -> Result:
    """Three replications of two policies."""
    return sq.run(SCENARIO, workers=1)


def test_a_saved_result_reads_back_with_all_tables(result: Result, tmp_path: Path) -> None:
    """The tables of the folder are those of the run, of the same types."""
    result.save(tmp_path / "r", figures=False)
    stored = sq.load_result(str(tmp_path / "r"))
    for name in ("requests", "steps", "summary", "replications"):
        pd.testing.assert_frame_equal(getattr(stored, name), getattr(result, name), check_exact=True)
    assert (stored.warnings, stored.policies, stored.seed) == (result.warnings, result.policies, result.seed)
    assert stored.scenario == result.scenario
    assert stored.slo == result.slo == {"ttft_ms": 100}


def test_a_saved_result_draws_the_same_curves(result: Result, tmp_path: Path) -> None:
    """Figures need nothing that is not stored."""
    result.save(tmp_path / "r", figures=False)
    drawn, again = (one.plot_cdf("ttft_ms") for one in (result, sq.load_result(tmp_path / "r")))
    assert [line.get_xydata().tolist() for line in drawn.lines] == [line.get_xydata().tolist() for line in again.lines]


@pytest.mark.parametrize(
    ("name", "options", "axes"),
    [
        ("latencies", {}, 8),
        ("kv_and_queue", {}, 2),
        ("token_gaps", {"window": (0.0, 1.0)}, 2),
        ("steps", {"policy": "large"}, 2),
        ("slots", {}, 1),
    ],
)
def test_figures_of_a_report_by_name(result: Result, name: str, options: dict[str, Any], axes: int) -> None:
    """Each figure is drawn, with as many axes as in a report: token_gaps has one for each of the two policies."""
    assert len(result.plot(name, **options).axes) == axes


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("token_gap", {}, "did you mean 'token_gaps'"),
        ("steps", {"policy": "larg"}, "did you mean 'large'"),
        ("latencies", {"policy": "large"}, "policy = 'large': the figure 'latencies' shows all policies"),
        ("latencies", {"window": (0.0, 1.0)}, "the figure 'latencies' shows the whole run"),
        ("slots", {"window": (1000.0, 2000.0)}, "1000"),
    ],
)
def test_figures_that_cannot_be_drawn(result: Result, name: str, options: dict[str, Any], words: str) -> None:
    """What a figure does not have is not dropped."""
    with pytest.raises(sq.InputError, match=re.escape(words)):
        result.plot(name, **options)


def test_a_folder_without_a_result_is_bad_input(tmp_path: Path) -> None:
    """The error names the folder and the file that marks a result."""
    with pytest.raises(sq.InputError, match=r"contains no result of simqueue \(simqueue-result\.json is missing\)"):
        sq.load_result(tmp_path)


def test_compare_is_the_paired_difference_of_the_replications(result: Result) -> None:
    """The difference of a metric is the mean of the differences of equal replications; the interval is around it."""
    (row,) = sq.compare(SCENARIO, baseline="large", metrics=["mean_ttft_ms"], workers=1).to_dict("records")
    values = result.replications.pivot_table(index="replication", columns="policy", values="mean_ttft_ms")
    differences = values["small"] - values["large"]
    assert (row["policy"], row["baseline"]) == ("small", "large")
    assert row["difference"] == pytest.approx(differences.mean(), rel=1e-12)
    assert row["ci_low_difference"] < row["difference"] < row["ci_high_difference"]


def test_compare_replicates_if_the_scenario_does_not() -> None:
    """A scenario of one run is run ten times, or as often as asked."""
    once = {**SCENARIO, "replications": 1}
    assert len(sq.compare(once, metrics=["mean_ttft_ms"], replications=2, workers=1)) == 1
    with pytest.raises(sq.InputError, match="a comparison needs at least two policies"):
        sq.compare({**once, "policies": {"only": {"scheduler": "chunked"}}})
    with pytest.raises(sq.InputError, match="did you mean 'large'"):
        sq.compare(once, baseline="larg")


def test_capacity_is_what_the_command_prints(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One row per policy; the limits by resource are columns of their own."""
    file = tmp_path / "s.json"
    file.write_text(json.dumps(SCENARIO), encoding="utf-8")
    table = sq.capacity(file).set_index("policy")
    assert run_command(["capacity", str(file), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(table.index) == list(printed)
    for name, values in printed.items():
        assert table.loc[name, "capacity_rps"] == values["capacity_rps"]
        assert table.loc[name, "limits_rps.slots"] == values["limits_rps"]["slots"]
        assert table.loc[name, "load"] == pytest.approx(20 / values["capacity_rps"], rel=1e-12)


def test_results_say_what_they_are_in_one_line(result: Result, tmp_path: Path) -> None:
    """Also one that was read from its folder does not print its tables."""
    result.save(tmp_path / "r", figures=False)
    assert repr(result).startswith("Result(policies=['small', 'large'], seed=3, ")
    assert repr(sq.load_result(tmp_path / "r")).startswith("StoredResult(policies=['small', 'large'], seed=3, ")


def test_a_notebook_shows_warnings_and_numbers_escaped() -> None:
    """The HTML of a result has each policy, `-` for what is undefined, and no markup of a name or warning."""
    shown = Result({}, "0", 0, [], warnings=["<script> & co"])._repr_html_()
    assert "<li>&lt;script&gt; &amp; co</li>" in shown
    table = sq.run({**SCENARIO, "replications": 1})._repr_html_()
    assert "<th>small</th><th>large</th>" in table
    assert "<th>completed</th><td>60</td><td>60</td>" in table
