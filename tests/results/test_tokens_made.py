"""Throughput counts the tokens that were made; an engine that cuts an answer makes fewer than were requested."""

from __future__ import annotations

from typing import Any

import pytest

import simqueue as sq


def cutting(workload: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a scenario whose engine ends every answer at 200 tokens of context; steps take 10 ms."""
    return {
        "step_time": {"kind": "constant", "seconds": 0.01},
        "kv_cache": {"block_size": 16, "blocks": 10_000},
        "max_model_len": 200,
        "workload": workload,
        "policies": {"v": {"engine": "vllm", "version": "0.33.0"}},
        **more,
    }


def test_a_cut_answer_has_the_length_it_got(summary_of: Any) -> None:
    """A prompt of 190 tokens leaves 10 of the 50 requested: with steps of 10 ms, 100 output tokens per second."""
    asked = {"id": "a", "arrival_s": 0.0, "prompt_tokens": 190, "output_tokens": 50}
    row = summary_of(sq.run(cutting({"requests": [asked]})))
    assert row["output_throughput"] == pytest.approx(10 / 0.1)
    assert row["total_token_throughput"] == pytest.approx(200 / 0.1)


@pytest.mark.parametrize("more", [{}, {"horizon_s": 20.0}, {"replications": 2}], ids=str)
def test_all_rows_count_tokens_made(more: dict[str, Any]) -> None:
    """In every row (classes, cut runs, replications) tokens are those of its measured requests."""
    workload = {
        "arrivals": {"process": "poisson", "rate_rps": 4.0},
        "num_requests": 120,
        "prompt_tokens": {"distribution": "uniform", "low": 50, "high": 150},
        "output_tokens": {"distribution": "constant", "value": 4000},
        "timeout_s": 1.2,
        "classes": {"gold": {"weight": 1.0}, "free": {"weight": 1.0}},
    }
    result = sq.run(cutting(workload, **more))
    requests = result.requests
    done = requests[requests["status"] == "finished"]
    assert (done["tokens_emitted"] < done["output_tokens"]).all()
    assert (requests["status"] == "timed_out").any()
    for row in result.replication_rows:
        mine = done[done["replication"] == row["replication"]]
        if row["request_class"] != "all":
            mine = mine[mine["request_class"] == row["request_class"]]
        made, time_s = mine["tokens_emitted"].sum(), row["measured_duration_s"]
        assert row["output_throughput"] == pytest.approx(made / time_s)
        assert row["total_token_throughput"] == pytest.approx((made + mine["prompt_tokens"].sum()) / time_s)
