"""Metric definitions."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.results import metrics
from simqueue.results.metrics import Pooled
from simqueue.results.summary import summarize

finite = st.floats(min_value=0, max_value=1e6, allow_nan=False)
pairs = st.lists(st.tuples(finite, st.integers(min_value=0, max_value=50)), min_size=1, max_size=40)


def pooled(sample: list[tuple[float, int]]) -> Pooled:
    """Pool pairs given as a list."""
    return Pooled.of(np.array([v for v, _ in sample]), np.array([c for _, c in sample], dtype=np.int64))


@given(pairs.filter(lambda sample: any(c for _, c in sample)), st.floats(min_value=0, max_value=100))
def test_pooled_percentile_is_numpys_of_the_expanded_sample(sample: list[tuple[float, int]], q: float) -> None:
    """A pooled percentile equals numpy's of the expanded sample to the last bit."""
    expanded = np.repeat([v for v, _ in sample], [c for _, c in sample])
    for level in (q, 0, 50, 95, 99, 100):
        assert pooled(sample).percentile(level) == np.percentile(expanded, level)


@given(pairs.filter(lambda sample: any(c for _, c in sample)))
def test_pooled_statistics_do_not_depend_on_how_the_sample_is_cut(sample: list[tuple[float, int]]) -> None:
    """One pair of a count, or as many pairs of one in reverse order: every statistic is bit-identical."""
    single = [(v, 1) for v, c in reversed(sample) for _ in range(c)]
    whole, cut = pooled(sample), pooled(single)
    assert (whole.count, whole.maximum, whole.mean()) == (cut.count, cut.maximum, cut.mean())
    assert whole.count == len(single)
    assert whole.maximum == max(v for v, _ in single)
    assert whole.mean() == pytest.approx(np.mean([v for v, _ in single]))


def test_a_pooled_sample_of_billions_is_never_expanded() -> None:
    """Counts may be far beyond memory: 10^12 values of 1 and as many of 3 have the median 2."""
    huge = pooled([(3.0, 10**12), (1.0, 10**12)])
    assert huge.percentile(50) == 2.0
    assert huge.percentile(95) == 3.0
    assert huge.mean() == 2.0


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ([5.0], {0: 5, 50: 5, 99: 5, 100: 5}),
        ([10.0, 20.0, 30.0], {0: 10, 50: 20, 99: 29.8, 100: 30}),
        ([float(i) for i in range(1, 101)], {0: 1, 50: 50.5, 99: 99.01, 100: 100}),
    ],
)
def test_percentiles_of_small_samples(sample: list[float], expected: dict[float, float]) -> None:
    """Percentiles interpolate linearly between order statistics, for plain and for pooled samples alike."""
    for q, value in expected.items():
        assert metrics.percentile(np.array(sample), q) == pytest.approx(value, rel=1e-12)
        assert pooled([(v, 1) for v in sample]).percentile(q) == pytest.approx(value, rel=1e-12)


def test_statistics_of_nothing_are_undefined() -> None:
    """Means, percentiles and averages over nothing are None, not zero."""
    nothing = np.array([])
    empty = pooled([(1.0, 0)])
    assert metrics.mean(nothing) is None
    assert metrics.percentile(nothing, 50) is None
    assert metrics.total([nothing]) == 0
    assert metrics.share(0, 0) is None
    assert (empty.count, empty.mean(), empty.maximum, empty.percentile(50)) == (0, None, None, None)


@given(st.lists(st.tuples(st.floats(0, 1e12), st.integers(0, 2**52)), max_size=20))
def test_products_add_up_exactly(sample: list[tuple[float, int]]) -> None:
    """Values times counts, each up to 53 bits, lose nothing: their total is the rational sum, rounded at the end."""
    parts = metrics.products(np.array([v for v, _ in sample]), np.array([c for _, c in sample], dtype=np.int64))
    assert metrics.total(parts) == float(sum((Fraction(v) * c for v, c in sample), Fraction(0)))


@given(st.lists(st.lists(finite, max_size=8), max_size=8))
def test_a_total_is_the_exact_sum_rounded_once(parts: list[list[float]]) -> None:
    """However numbers are cut into parts, their total is the rational sum, rounded to a float at the end."""
    exact = sum((Fraction(number) for part in parts for number in part), Fraction(0))
    assert metrics.total([np.array(part) for part in parts]) == float(exact)


def test_mean_batch_is_area_over_time(record: Any) -> None:
    """A batch of 4 for 1 s and of 1 for 3 s averages 7/4, not 5/2."""
    rows = [{"status": "finished", "finish_s": 4.0, "first_token_s": 1.0}]
    steps = [
        {"start_s": 0.0, "duration_s": 1.0, "decode_seqs": 3, "prefill_seqs": 1},
        {"start_s": 1.0, "duration_s": 3.0, "decode_seqs": 1},
    ]
    assert summarize("p", 0, record(rows, steps, end_s=4.0))[0]["mean_batch"] == 1.75


def test_latencies_follow_their_formulas(record: Any) -> None:
    """Each latency is the difference of its two instants, TPOT spread over the tokens after the first."""
    row = {"arrival_s": 1.0, "first_scheduled_s": 1.5, "first_token_s": 2.0, "finish_s": 4.0, "output_tokens": 5}
    found = metrics.Latencies(record([row]).requests)
    assert (found.queue_s[0], found.ttft_s[0], found.e2el_s[0], found.tpot_s[0]) == (0.5, 1.0, 3.0, 0.5)


def test_a_one_token_output_has_no_tpot(record: Any) -> None:
    """With one output token there is no gap between tokens: TPOT is undefined, the other latencies are not."""
    row = {"first_token_s": 0.01, "finish_s": 0.01, "output_tokens": 1}
    found = metrics.Latencies(record([row]).requests)
    assert np.isnan(found.tpot_s[0])
    assert (found.ttft_s[0], found.e2el_s[0]) == (0.01, 0.01)


@pytest.mark.parametrize("status", ["rejected", "timed_out", "unfinished"])
def test_a_request_that_did_not_finish_has_no_latency_of_its_end(record: Any, status: str) -> None:
    """E2EL and TPOT are of finished requests alone; a first token that was seen still counts as one."""
    row = {"status": status, "first_token_s": 0.01, "finish_s": 0.5, "output_tokens": 10}
    found = metrics.Latencies(record([row]).requests)
    assert np.isnan(found.e2el_s[0])
    assert np.isnan(found.tpot_s[0])
    assert found.ttft_s[0] == 0.01


@pytest.mark.parametrize(
    ("slo", "met"),
    [
        ({"ttft_ms": 500, "tpot_ms": 50}, [True, False, True, False]),
        ({"ttft_ms": 499}, [False, True, False, False]),
        ({"e2el_ms": 1000}, [True, False, True, False]),
    ],
)
def test_good_requests_meet_every_given_slo(record: Any, slo: dict[str, float], met: list[bool]) -> None:
    """A latency equal to the bound meets it, one token meets any TPOT, and an unfinished request is never good."""
    rows = [
        {"first_token_s": 0.5, "finish_s": 1.0, "output_tokens": 11},  # TTFT 500 ms, TPOT 50 ms
        {"first_token_s": 0.25, "finish_s": 1.25, "output_tokens": 11},  # TTFT 250 ms, TPOT 100 ms
        {"first_token_s": 0.5, "finish_s": 0.5, "output_tokens": 1},
        {"first_token_s": 0.1, "status": "unfinished"},
    ]
    found = metrics.Latencies(record(rows).requests)
    assert metrics.meets_slo(found, slo).tolist() == met


def test_definitions_are_light_to_import() -> None:
    """Importing the definitions loads neither pandas nor a drawing library."""
    heavy = "{'pandas', 'pyarrow', 'matplotlib', 'seaborn', 'scipy'}"
    program = f"import sys, simqueue.results.metrics; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
