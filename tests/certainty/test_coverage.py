"""The study of coverage: its small server is the package's, and its page says which cells fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simqueue as sq
from studies.certainty import coverage
from studies.certainty.batching import OVERHEAD_S, PER_DECODE_S, PER_PREFILL_TOKEN_S, TRAFFIC, serve
from studies.certainty.coverage_page import write_page


@pytest.mark.parametrize(("slots", "rate_rps"), [(8, 9.0), (3, 5.0), (1, 0.8)])
def test_the_small_server_is_the_packages(slots: int, rate_rps: float) -> None:
    """The same random requests get their first tokens and leave at the same times in both."""
    rng = np.random.default_rng(slots)
    n = 150
    arrival_s = np.cumsum(rng.exponential(1 / rate_rps, n)).round(6).tolist()
    prompts, outputs = rng.integers(1, 1500, n).tolist(), rng.geometric(1 / 15, n).tolist()
    rows = [
        {"arrival_s": a, "prompt_tokens": p, "output_tokens": o}
        for a, p, o in zip(arrival_s, prompts, outputs, strict=True)
    ]
    steps = {"overhead_s": OVERHEAD_S, "per_decode_s": PER_DECODE_S, "per_prefill_token_s": PER_PREFILL_TOKEN_S}
    policy = {"scheduler": "continuous", "max_num_seqs": slots, "max_num_batched_tokens": 1_000_000}
    table = sq.run(
        {
            "step_time": {"kind": "linear", **steps},
            "kv_cache": {"blocks": 1_000_000},
            "workload": {"requests": rows},
            "policies": {"p": policy},
        },
        check=False,
    ).requests
    first_s, finish_s = serve(arrival_s, prompts, outputs, slots)
    assert table["first_token_s"].to_numpy() == pytest.approx(np.array(first_s), rel=1e-9)
    assert table["finish_s"].to_numpy() == pytest.approx(np.array(finish_s), rel=1e-9)


@pytest.mark.parametrize("name", TRAFFIC)
def test_traffic_comes_at_its_rate(name: str) -> None:
    """At half the capacity, arrivals have half the rate of the capacity, and are in order."""
    traffic = TRAFFIC[name]
    arrival_s = traffic.arrivals(np.random.default_rng(4), 200_000, 0.5 * traffic.capacity_rps)
    assert (np.diff(arrival_s) >= 0).all()
    assert 200_000 / arrival_s[-1] == pytest.approx(0.5 * traffic.capacity_rps, rel=0.03)


def test_a_cell_is_measured_with_the_packages_result(tmp_path: Path) -> None:
    """In a small cell of M/M/1 what covers or warns is right, and the page and the figure are written."""
    truth = coverage.true_values("M/M/1", TRAFFIC["M/M/1"], 0.6)
    assert truth.mean_ttft_ms == pytest.approx(2500)
    found = coverage.cell("M/M/1", 0.6, 200, coverage.Size(40, 1, 200), truth)
    for metric in coverage.METRICS:
        assert max(found.covered[metric], found.warned[metric]) <= found.right[metric] <= 1
    assert found.warned["p99 TTFT"] > 0.5  # 1,800 requests have 18 beyond a p99, and these are together
    page, figure = write_page(tmp_path, [found])
    assert page.read_text(encoding="utf-8").startswith("<!-- Made by: python -m studies.certainty coverage -->")
    assert figure.stat().st_size > 1000
