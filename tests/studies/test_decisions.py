"""The study of decisions: its exact answers and its recursion are right, and its page is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simqueue as sq
from simqueue.theory.constant_service import constant_service
from studies.decisions import coverage, exact


def test_the_lattice_agrees_with_erlang() -> None:
    """A service of one step is M/D/1, whose waits have a series."""
    for rate in (3.0, 6.0, 9.0):
        of_lattice = exact.lattice_wait_above(rate, np.array([1.0]), 0.1, 0.25)
        of_series = exact.constant_wait_above(rate, 0.1, 0.25)
        assert of_lattice == pytest.approx(of_series, rel=1e-2, abs=2e-4)
        assert of_series == pytest.approx(constant_service(rate, 0.1).wait_above(2.5), rel=1e-9)


@pytest.mark.parametrize("problem", exact.problems()[:2], ids=lambda problem: problem.name)
def test_the_recursion_is_what_the_engine_does(problem: exact.Problem) -> None:
    """Lindley's recursion on arrivals and outputs of a run gives its TTFT."""
    workload = {**problem.keys["workload"], "num_requests": 300}
    rows = sq.run({**problem.keys, "workload": workload}).requests
    gaps = np.diff(rows["arrival_s"].to_numpy())
    waits_s = [0.0]
    for service_s, gap_s in zip(0.1 * rows["output_tokens"].to_numpy()[:-1], gaps, strict=True):
        waits_s.append(max(0.0, waits_s[-1] + service_s - gap_s))
    np.testing.assert_allclose(rows["ttft_ms"], 1000 * (np.array(waits_s) + 0.1), rtol=1e-9)


def test_the_page_has_the_coverage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repetitions by the recursion: the intervals contain the exact rate about as often as they promise."""
    monkeypatch.setattr(coverage, "repeated", lambda *_: [coverage.Repetition(1.0, 0.9, 1.1, 50, 1000)])
    (page,) = coverage.write(tmp_path, repetitions=5)
    text = page.read_text(encoding="utf-8")
    assert text.count("| repetitions |") == 3
    for problem in exact.problems()[:2]:
        made = coverage.by_recursion(problem, 20, 0.1)
        # 16 of 20 or more, with probability 0.997 if each interval contains it with 0.95
        assert sum(one.low_rps <= problem.rate_rps <= one.high_rps for one in made) >= 16
