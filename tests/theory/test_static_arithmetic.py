"""The course module's arithmetic of static batching (its rows A6 to A8), played instead of computed.

Configuration: 8e9 parameters in bf16, 131,072 bytes of KV a token, 3.35 TB/s. The step that the module uses, a batch of
eight at context 1024, is bound by memory.
"""

from __future__ import annotations

from typing import Any

import pytest

STEP_S = (2 * 8e9 + 8 * 1024 * 131_072) / 3.35e12
ONE_LONG = [2000] + [50] * 7
ALL_LONG = [2000] * 8


def wave_of_eight(outputs: list[int], **more: Any) -> dict[str, Any]:
    """Return eight requests at time 0 on a static server that takes eight."""
    rows = [{"arrival_s": 0.0, "prompt_tokens": 100, "output_tokens": output} for output in outputs]
    return {
        "step_time": {"kind": "constant", "seconds": STEP_S},
        "kv_cache": {"block_size": 16, "blocks": 100_000},
        "workload": {"requests": rows, **more},
        "policies": {"static": {"scheduler": "static", "max_num_seqs": 8}},
    }


def test_the_step_is_the_one_of_the_module() -> None:
    """Weights once and eight contexts of 1024 tokens are read in 5.1 ms."""
    assert pytest.approx(5.1, abs=0.05) == 1000 * STEP_S


def test_a6_useful_slot_steps(play: Any) -> None:
    """A6: outputs of 2000 and 7 x 50 use 2350 of 16,000 slot-steps, 14.7 %; the rest is reported as idle."""
    summary = play(wave_of_eight(ONE_LONG)).summary_rows[0]
    assert 1 - summary["idle_slot_share"] == pytest.approx(2350 / 16_000, rel=1e-12)
    assert round(100 * (1 - summary["idle_slot_share"]), 1) == 14.7


def test_a6_a_full_wave_idles_nowhere(play: Any) -> None:
    """Eight equal outputs fill every slot-step."""
    assert play(wave_of_eight(ALL_LONG)).summary_rows[0]["idle_slot_share"] == 0


def test_a7_tokens_per_second_of_a_pass(play: Any) -> None:
    """A7: a pass takes 10.2 s and makes 230 tok/s where a full one makes 1570: a loss of 6.8 x."""
    one, full = (play(wave_of_eight(outputs)).summary_rows[0] for outputs in (ONE_LONG, ALL_LONG))
    assert one["duration_s"] == pytest.approx(2000 * STEP_S, rel=1e-9)
    assert round(one["duration_s"], 1) == 10.2
    assert one["output_throughput"] == pytest.approx(2350 / (2000 * STEP_S), rel=1e-9)
    assert round(one["output_throughput"], -1) == 230
    assert round(full["output_throughput"], -1) == 1570
    assert round(full["output_throughput"] / one["output_throughput"], 1) == 6.8


def test_a8_who_waits_for_a_pass(play: Any) -> None:
    """A8: at ten requests a second about a hundred queue up behind a pass of ten seconds: here 101 behind 10.19 s."""
    scenario = wave_of_eight(ONE_LONG)
    later = [{"arrival_s": k / 10, "prompt_tokens": 100, "output_tokens": 50} for k in range(1, 151)]
    scenario["workload"]["requests"] += later
    result = play(scenario)
    # The first pass ends when its eight requests leave. Requests that arrived earlier and are not served yet wait.
    pass_end_s = result.requests["finish_s"].iloc[:8].max()
    queued = (result.requests["first_scheduled_s"] >= pass_end_s) & (result.requests["arrival_s"] <= pass_end_s)
    assert queued.sum() == int(10 * 2000 * STEP_S) == 101
    in_first_pass = result.steps["start_s"] + result.steps["duration_s"] <= pass_end_s * (1 + 1e-12)
    assert result.steps.loc[in_first_pass, "waiting"].max() == 101
