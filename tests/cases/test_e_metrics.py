"""Metric definitions, where public tools got them wrong."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from simqueue.results import metrics


def ms(seconds: float) -> Any:
    """Return milliseconds to compare with: sums of steps agree to 1e-9."""
    return pytest.approx(1000 * seconds, rel=1e-9)


def test_case_37_a_one_token_output_has_no_tpot(toy: Any, play: Any, by_id: Any, summary_of: Any) -> None:
    """The TPOT of a single token is null and left out of the mean, and how many were left out is told.

    Origin: vllm-project/vllm#3397, CentML/flexible-inference-bench#68, GoogleCloudPlatform/ai-on-gke#902,
    intel/ipex-llm#12271, vllm-project/vllm-omni#6693: divisions by zero, NaN, zeros or negative values.
    """
    result = play(toy([("a", 0.0, 100, 1), ("b", 0.0, 100, 11)]))
    requests, summary = by_id(result), summary_of(result)
    assert requests["tpot_ms"].isna().to_dict() == {"a": True, "b": False}
    assert requests["max_itl_ms"].isna().to_dict() == {"a": True, "b": False}
    assert requests.loc["b", "tpot_ms"] == ms(0.01)
    assert [summary[f"{kind}_tpot_ms"] for kind in ("mean", "median", "p95", "p99")] == [ms(0.01)] * 4
    assert (summary["completed"], summary["tpot_excluded"]) == (2, 1)
    printed = json.loads(result.to_json(), parse_constant=pytest.fail)
    assert [row["tpot_ms"] for row in printed["requests"]] == [None, ms(0.01)]


def test_case_37_only_one_token_outputs_have_no_mean_tpot_at_all(toy: Any, play: Any, summary_of: Any) -> None:
    """If no request has a TPOT, its mean is null, not 0 (same reports)."""
    summary = summary_of(play(toy([("a", 0.0, 100, 1), ("b", 0.0, 100, 1)])))
    assert (summary["mean_tpot_ms"], summary["p99_itl_ms"], summary["tpot_excluded"]) == (None, None, 2)
    assert summary["mean_ttft_ms"] == ms(0.01)


STEP_S = 2.0**-7
"""A step that binary floats hold exactly, so that a hundred of them end at the horizon and not beside it."""

ONE_SEAT = {
    "static": {"scheduler": "static", "max_num_seqs": 1},
    "continuous": {"scheduler": "continuous", "max_num_seqs": 1},
    "chunked": {"scheduler": "chunked", "max_num_seqs": 1},
}


@pytest.mark.parametrize("policy", ONE_SEAT)
def test_case_40_what_is_inside_at_the_horizon_is_in_the_table(
    policy: str, toy: Any, play: Any, by_id: Any, summary_of: Any
) -> None:
    """Two of five are finished, the second one at the very horizon; three are unfinished; no request is lost.

    Origin: inference-sim/inference-sim#273, r-simmer/simmer#73, #240, CiwPython/Ciw#260.
    """
    asked = [(f"r{i}", i / 10, 10, 50) for i in range(5)]
    result = play(toy(asked, {policy: ONE_SEAT[policy]}, step_s=STEP_S, horizon_s=100 * STEP_S))
    requests, summary = by_id(result, policy), summary_of(result, policy)
    assert requests["status"].tolist() == ["finished"] * 2 + ["unfinished"] * 3
    assert requests["finish_s"].tolist()[:2] == [50 * STEP_S, 100 * STEP_S]
    assert requests["finish_s"].isna().tolist() == [False, False, True, True, True]
    assert (summary["completed"], summary["unfinished"], summary["n_requests"]) == (2, 3, 5)
    assert summary["duration_s"] == 100 * STEP_S


def test_case_40_a_horizon_just_before_an_end_leaves_it_out(toy: Any, play: Any, by_id: Any) -> None:
    """One step earlier the second request is unfinished too, with one token to go (same reports)."""
    asked = [(f"r{i}", i / 10, 10, 50) for i in range(5)]
    requests = by_id(play(toy(asked, {"chunked": ONE_SEAT["chunked"]}, step_s=STEP_S, horizon_s=99 * STEP_S)))
    assert requests["status"].tolist() == ["finished"] + ["unfinished"] * 4
    assert requests["tokens_emitted"].tolist() == [50, 49, 0, 0, 0]


@pytest.mark.parametrize(
    ("sample", "q", "right"),
    [
        ([5.0], 50, 5.0),
        ([5.0], 99, 5.0),
        ([10.0, 20.0, 30.0], 50, 20.0),
        ([10.0, 20.0, 30.0], 99, 29.8),
        ([float(i) for i in range(1, 101)], 50, 50.5),
        ([float(i) for i in range(1, 101)], 99, 99.01),
    ],
)
def test_case_42_percentiles_interpolate_linearly(sample: list[float], q: float, right: float) -> None:
    """Small samples have the percentiles of the documented method, per request and pooled alike.

    Origin: harvard-edge/cs249r_book#1936, locustio/locust#254, LMCache/LMCache#4417, rakyll/hey#120.
    """
    values = np.array(sample)
    pooled = metrics.Pooled.of(values[::-1], np.ones(len(values), dtype=np.int64))
    assert metrics.percentile(values, q) == pytest.approx(right, rel=1e-12)
    assert pooled.percentile(q) == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 100])
def test_case_42_percentiles_never_decrease(n: int) -> None:
    """From p0, the smallest, to p100, the largest, no percentile is below the one before (same reports)."""
    values = np.sqrt(np.arange(1.0, n + 1))[::-1]
    pooled = metrics.Pooled.of(values, np.ones(n, dtype=np.int64))
    for percentile in (lambda q: metrics.percentile(values, q), pooled.percentile):
        found = np.array([percentile(q) for q in range(101)])
        assert (np.diff(found) >= 0).all()
        assert (found[0], found[-1]) == (1.0, np.sqrt(n))


def test_case_42_a_percentile_of_nothing_is_undefined() -> None:
    """An empty sample has no percentile and no mean: None, not 0 (same reports)."""
    nothing = np.array([])
    assert metrics.percentile(nothing, 99) is None
    assert metrics.mean(nothing) is None
    assert metrics.Pooled.of(nothing, np.array([], dtype=np.int64)).percentile(99) is None


@pytest.mark.parametrize(
    ("n", "step_s", "median_ms", "p99_ms"), [(1, 0.005, 5, 5), (3, 0.01, 20, 29.8), (100, 0.001, 50.5, 99.01)]
)
def test_case_42_the_summary_shows_these_percentiles_and_their_population(
    n: int, step_s: float, median_ms: float, p99_ms: float, toy: Any, play: Any, summary_of: Any
) -> None:
    """One-token requests in a row on one seat have TTFTs of 1, 2, ... steps; the summary has p50, p99 and n."""
    scenario = toy([(f"r{i}", 0.0, 10, 1) for i in range(n)], {"chunked": ONE_SEAT["chunked"]}, step_s=step_s)
    summary = summary_of(play(scenario))
    assert summary["median_ttft_ms"] == pytest.approx(median_ms, rel=1e-9)
    assert summary["p99_ttft_ms"] == pytest.approx(p99_ms, rel=1e-9)
    assert summary["measured_requests"] == n


def test_case_45_gaps_between_tokens_do_not_contain_the_first_token(
    toy: Any, play: Any, by_id: Any, summary_of: Any
) -> None:
    """TPOT is per request, ITL is pooled over all gaps; n tokens have n - 1 gaps, TTFT not among them.

    Origin: vllm-project/vllm#7242, #19776, #6064, sgl-project/sglang#1005. The input is that of case 5, where one
    request is preempted.
    """
    result = play(toy([("A", 0.0, 16, 40), ("B", 0.0, 32, 40)], blocks=5))
    requests, summary = by_id(result), summary_of(result)
    assert requests.loc["B", "tpot_ms"] == ms(0.62 / 39)
    assert requests.loc["A", "tpot_ms"] == ms(0.01)
    assert summary["median_itl_ms"] == ms(0.01)
    assert summary["itl_count"] == 78
    assert summary["mean_itl_ms"] == ms((0.62 + 0.39) / 78)
    assert summary["mean_tpot_ms"] == ms((0.62 / 39 + 0.01) / 2)
    assert summary["max_itl_ms"] == ms(0.24)
