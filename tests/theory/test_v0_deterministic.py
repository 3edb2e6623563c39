"""Deterministic special cases of an LLM server, whose times are known exactly."""

from __future__ import annotations

from math import ceil
from typing import Any

import pytest

EXACT = 1e-9
STEP = {"kind": "linear", "overhead_s": 0.02, "per_decode_s": 0.001, "per_prefill_token_s": 5e-5}
AMPLE = {"block_size": 16, "blocks": 100_000}
WHOLE_PROMPTS = {"continuous": {"scheduler": "continuous", "max_num_seqs": 8, "max_num_batched_tokens": 8192}}


def always(tokens: int) -> dict[str, Any]:
    """Return a constant length."""
    return {"distribution": "constant", "value": tokens}


def evenly(play: Any) -> Any:
    """Play 50 requests, one every 2 s, each alone on the server."""
    workload = {
        "arrivals": {"process": "constant", "rate_rps": 0.5},
        "prompt_tokens": always(500),
        "output_tokens": always(10),
        "num_requests": 50,
    }
    return play({"step_time": STEP, "kv_cache": AMPLE, "workload": workload, "policies": WHOLE_PROMPTS})


def test_d_d_1(play: Any) -> None:
    """Requests that never meet: TTFT a + cP = 45 ms, ITL a + b = 21 ms, E2EL 45 + 9 x 21 ms, and no wait."""
    result = evenly(play)
    requests = result.requests
    assert requests["arrival_s"].tolist() == [2.0 * i for i in range(50)]
    assert (requests["queue_ms"] == 0).all()
    assert requests["ttft_ms"].tolist() == pytest.approx([45.0] * 50, rel=EXACT)
    assert requests["tpot_ms"].tolist() == pytest.approx([21.0] * 50, rel=EXACT)
    assert requests["max_itl_ms"].tolist() == pytest.approx([21.0] * 50, rel=EXACT)
    assert requests["e2el_ms"].tolist() == pytest.approx([234.0] * 50, rel=EXACT)
    summary = result.summary_rows[0]
    assert (summary["mean_itl_ms"], summary["itl_count"]) == (pytest.approx(21.0, rel=EXACT), 450)
    assert summary["gpu_busy_share"] == pytest.approx(50 * 0.234 / (49 * 2 + 0.234), rel=EXACT)


@pytest.mark.parametrize("scheduler", ["continuous", "chunked", "static"])
def test_a_backlog_at_constant_step_time(scheduler: str, play: Any) -> None:
    """16 requests at once on 8 seats: two rounds of O steps each, so TTFT 0.1 and 1.1 s, E2EL 1 and 2 s."""
    workload = {
        "arrivals": {"process": "all_at_once"},
        "prompt_tokens": always(500),
        "output_tokens": always(10),
        "num_requests": 16,
    }
    policy = {"scheduler": scheduler, "max_num_seqs": 8}
    step_time = {"kind": "constant", "seconds": 0.1}
    result = play({"step_time": step_time, "kv_cache": AMPLE, "workload": workload, "policies": {"p": policy}})
    requests, summary = result.requests, result.summary_rows[0]
    assert requests["ttft_ms"].tolist() == pytest.approx([100.0] * 8 + [1100.0] * 8, rel=EXACT)
    assert requests["e2el_ms"].tolist() == pytest.approx([1000.0] * 8 + [2000.0] * 8, rel=EXACT)
    assert summary["mean_ttft_ms"] == pytest.approx(600.0, rel=EXACT)
    assert summary["mean_e2el_ms"] == pytest.approx(1500.0, rel=EXACT)
    assert summary["duration_s"] == pytest.approx(ceil(16 / 8) * 10 * 0.1, rel=EXACT)
    assert result.steps["repeat"].sum() == 20


def test_a_backlog_with_whole_prompts(play: Any, offline: Any) -> None:
    """20 requests at once on 8 seats, whole prompts: rounds of 0.472, 0.472 and 0.336 s, 30 steps in all."""
    scenario = {
        "step_time": STEP,
        "kv_cache": AMPLE,
        "workload": offline(*[(500, 10)] * 20),
        "policies": WHOLE_PROMPTS,
    }
    result = play(scenario)
    # a round of n: one step a + cPn for all prompts, then O - 1 steps a + bn
    rounds_s = [0.02 + 5e-5 * 500 * n + 9 * (0.02 + 0.001 * n) for n in (8, 8, 4)]
    assert rounds_s == pytest.approx([0.472, 0.472, 0.336], rel=EXACT)
    summary = result.summary_rows[0]
    assert result.steps["repeat"].sum() == 30
    assert summary["duration_s"] == pytest.approx(1.28, rel=EXACT)
    assert summary["mean_ttft_ms"] == pytest.approx(577.6, rel=EXACT)
    assert summary["mean_e2el_ms"] == pytest.approx(822.4, rel=EXACT)
    assert summary["mean_itl_ms"] == pytest.approx(27.2, rel=EXACT)


@pytest.mark.parametrize("cut_by", ["budget", "chunk"])
@pytest.mark.parametrize("prompt_tokens", [1, 511, 512, 513, 2000, 2048])
def test_a_chunked_prefill_alone(cut_by: str, prompt_tokens: int, play: Any, offline: Any) -> None:
    """A prompt alone on the server takes ceil(P / C) steps of a each, and c for each of its tokens."""
    limits = {"max_num_batched_tokens": 512} if cut_by == "budget" else {"chunk_tokens": 512}
    scenario = {
        "step_time": STEP,
        "kv_cache": AMPLE,
        "workload": offline((prompt_tokens, 5)),
        "policies": {"chunked": {"scheduler": "chunked", "max_num_seqs": 8, **limits}},
    }
    result = play(scenario)
    chunks = ceil(prompt_tokens / 512)
    expected_s = 0.02 * chunks + 5e-5 * prompt_tokens
    assert result.requests["ttft_ms"].item() == pytest.approx(1000 * expected_s, rel=EXACT)
    assert result.requests["e2el_ms"].item() == pytest.approx(1000 * (expected_s + 4 * 0.021), rel=EXACT)
    assert (result.steps["prefill_tokens"] > 0).sum() == chunks
