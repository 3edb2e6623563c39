"""Latencies count from sending a request, as in vLLM's benchmark; the wait before has lines of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import simqueue as sq
from simqueue.report.comparison import comparison
from simqueue.report.page import result_page
from simqueue.report.text import notes

LINES = [
    *("client wait mean", "client wait p50", "client wait p95", "client wait p99"),
    *(f"wait + {latency} {kind}" for latency in ("TTFT", "E2EL") for kind in ("mean", "p50", "p99")),
]


def benchmark(output: int, **more: Any) -> dict[str, Any]:
    """Return 960 prompts of 3,100 tokens, of which a benchmark keeps 32 at the server."""
    return {
        "step_time": {"kind": "linear", "overhead_s": 0.008, "per_prefill_token_s": 0.00004},
        "kv_cache": {"block_size": 16, "blocks": 1_000_000},
        "slo": {"ttft_ms": 500},
        "workload": {
            "arrivals": {"process": "all_at_once"},
            "num_requests": 960,
            "max_concurrency": 32,
            "prompt_tokens": {"distribution": "constant", "value": 3100},
            "output_tokens": {"distribution": "constant", "value": output},
        },
        "policies": {"v": {"engine": "vllm", "version": "0.33.0"}},
        **more,
    }


@pytest.mark.parametrize(("output", "ttft_ms"), [(1, 4287), (2, 4200), (10, 3508), (100, 318)])
def test_ttft_falls_as_answers_get_longer(output: int, ttft_ms: int, summary_of: Any) -> None:
    """The longer answers take, the fewer prompts meet at the server: the mean TTFT that vLLM's benchmark reports."""
    row = summary_of(sq.run(benchmark(output)))
    assert row["mean_ttft_ms"] == pytest.approx(ttft_ms, abs=0.5)
    assert row["mean_client_wait_ms"] > 60_000


def test_goodput_judges_from_sending(summary_of: Any) -> None:
    """931 of 960 requests have their first token within 500 ms of sending: 6.5 good requests a second."""
    result = sq.run(benchmark(100))
    row = summary_of(result)
    assert (result.requests["ttft_ms"] <= 500).sum() == 931
    assert row["request_goodput"] == pytest.approx(931 / row["measured_duration_s"])
    assert row["request_goodput"] == pytest.approx(6.5, abs=0.05)


def expected(requests: pd.DataFrame) -> dict[str, float]:
    """Compute the statistics about clients from the rows of finished requests."""
    done = requests[requests["status"] == "finished"]
    wait_ms = done["client_wait_ms"].to_numpy()
    samples = {
        "client_wait": wait_ms,
        "wanted_ttft": wait_ms + done["ttft_ms"].to_numpy(),
        "wanted_e2el": wait_ms + done["e2el_ms"].to_numpy(),
    }
    return {
        f"{name}_{metric}_ms": float(np.mean(values) if q is None else np.percentile(values, q))
        for metric, values in samples.items()
        for name, q in (("mean", None), ("median", 50), ("p95", 95), ("p99", 99))
    }


def impatient() -> dict[str, Any]:
    """Return an overloaded server whose clients try again."""
    workload = {
        "arrivals": {"process": "poisson", "rate_rps": 3.0},
        "num_requests": 150,
        "timeout_s": 1.5,
        "retry": {"limit": 3, "backoff_s": 0.5},
        "classes": {"gold": {"weight": 1.0}, "free": {"weight": 2.0}},
        "prompt_tokens": {"distribution": "constant", "value": 16},
        "output_tokens": {"distribution": "constant", "value": 20},
    }
    policies = {"one": {"scheduler": "continuous", "max_num_seqs": 1}, "two": {"scheduler": "continuous"}}
    step_time = {"kind": "constant", "seconds": 0.02}
    return {"step_time": step_time, "kv_cache": {"blocks": 9999}, "workload": workload, "policies": policies}


@pytest.mark.parametrize("scenario", [impatient(), benchmark(10)], ids=["retries", "concurrency limit"])
def test_statistics_of_waits_are_those_of_the_requests(scenario: dict[str, Any]) -> None:
    """In every row (policies and classes) percentiles come from the values of single requests."""
    result = sq.run(scenario)
    optional = result.summary.columns[list(result.summary.columns).index("replications") + 1 :]
    columns = ["mean_client_wait_ms", *(name for name in optional if name != "good_share")]
    for row in result.summary_rows:
        mine = result.requests[result.requests["policy"] == row["policy"]]
        if row["request_class"] != "all":
            mine = mine[mine["request_class"] == row["request_class"]]
        wanted = expected(mine)
        assert sorted(columns) == sorted(wanted)
        assert {name: row[name] for name in columns} == pytest.approx(wanted)


def test_replications_have_intervals_of_waits() -> None:
    """The percentile of the requests of all replications, with an interval; each replication has the columns too."""
    result = sq.run({**impatient(), "replications": 3})
    row = result.summary_rows[0]
    together = expected(result.requests[result.requests["policy"] == row["policy"]])
    assert row["p95_wanted_ttft_ms"] == pytest.approx(together["p95_wanted_ttft_ms"])
    assert all(isinstance(one["p95_wanted_ttft_ms"], float) for one in result.replication_rows)
    assert row["ci_low_p95_wanted_ttft_ms"] < row["p95_wanted_ttft_ms"] < row["ci_high_p95_wanted_ttft_ms"]


def test_terminal_page_and_files_show_the_wait(tmp_path: Path) -> None:
    """Where a request waited there are lines for the wait, and a note that says what latencies and goodput count."""
    result = sq.run(benchmark(10))
    shown = {cells.line.label for group in comparison(result).sections.values() for cells in group}
    assert set(LINES) <= shown
    assert any("TTFT, E2EL and goodput count from sending it" in line for line in notes(result))
    page = [block for block in result_page(result).blocks if hasattr(block, "rows")]
    assert {f"{label} (ms)" for label in LINES} <= {row[0] for row in page[0].rows}
    result.save(tmp_path / "out", figures=False)
    saved = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert saved["p99_client_wait_ms"][0] == result.summary_rows[0]["p99_client_wait_ms"]


def test_without_a_wait_nothing_is_said_of_it(command: Callable[..., Any], scenario_file: Callable[..., Path]) -> None:
    """A limit that no request meets leaves tables as they are without it."""
    base = benchmark(10)
    limited = {**base, "workload": {**base["workload"], "num_requests": 20}}
    free = {**base, "workload": {k: v for k, v in limited["workload"].items() if k != "max_concurrency"}}
    assert sq.run(limited).summary.equals(sq.run(free).summary)
    assert "client" not in command("run", scenario_file(limited), "--json-summary").out.partition('"summary"')[
        2
    ].replace("mean_client_wait_ms", "")
