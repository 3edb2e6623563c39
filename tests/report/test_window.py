"""The part of a run that figures of single steps show."""

from __future__ import annotations

import math
from typing import Any

import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.figures.activity import step_composition, token_gaps
from simqueue.figures.timeline import batch_timeline
from simqueue.figures.window import busiest_window, check_window, parsed_window
from simqueue.results.result import Result

CONTINUOUS = {"scheduler": "continuous", "max_num_seqs": 64, "max_num_batched_tokens": 512}


def run_of(requests: list[tuple[float, int]], **policies: Any) -> Result:
    """Run requests given as (arrival, outputs), with steps of 10 ms."""
    asked = [
        {"id": f"r{i}", "arrival_s": at, "prompt_tokens": 16, "output_tokens": outputs}
        for i, (at, outputs) in enumerate(requests)
    ]
    return sq.run(
        {
            "step_time": {"kind": "constant", "seconds": 0.01},
            "kv_cache": {"blocks": 10_000},
            "workload": {"requests": asked},
            "policies": policies or {"p": CONTINUOUS},
        }
    )


@pytest.fixture(scope="module")
def burst() -> Result:
    """One request every second for 100 s, and 40 more at 60 s."""
    return run_of(sorted([(float(i), 5) for i in range(100)] + [(60.0, 200)] * 40))


def test_the_busiest_part_has_the_burst(burst: Result) -> None:
    """The burst runs from 60 to 62 s; the part includes its middle and is not the beginning."""
    window = busiest_window(burst, most_rows=20)
    assert window is not None
    start, end = window
    assert start <= 61 <= end
    assert end - start < 30
    inside = ((burst.steps["start_s"] >= start) & (burst.steps["start_s"] < end)).sum()
    assert inside <= 20


def test_a_short_run_is_shown_whole(burst: Result) -> None:
    """Without more rows than can be told apart there is no window."""
    assert busiest_window(burst, most_rows=len(burst.steps)) is None


def test_all_policies_have_the_same_weight() -> None:
    """A policy with a thousand waiting requests does not hide when the other one is busy."""
    result = run_of(
        sorted([(float(i), 5) for i in range(60)] + [(30.0, 100)] * 30),
        slow={"scheduler": "static", "max_num_seqs": 1},
        fast=CONTINUOUS,
    )
    window = busiest_window(result, most_rows=30)
    assert window is not None
    assert window[0] <= 31 <= window[1]


@pytest.mark.parametrize("draw", [step_composition, token_gaps, batch_timeline])
def test_figures_show_the_chosen_part(burst: Result, draw: Any) -> None:
    """The time axis is that of the window."""
    low, high = draw(burst, window=(60.0, 61.0)).axes[-1].get_xlim()
    assert (low, high) == pytest.approx((60, 61), abs=0.02)


@pytest.mark.parametrize("text", ["60", "75:60", "60:60", "-1:5", "a:b", "1:nan", "1:inf", ":", ""])
def test_a_window_that_is_none_is_refused(text: str) -> None:
    """Anything but START:END with START before END is an error that says what is allowed."""
    with pytest.raises(InputError, match="must be START:END in seconds"):
        parsed_window(text)


def test_a_window_after_the_run_is_refused(burst: Result) -> None:
    """The error says when the run ends."""
    assert parsed_window("60:75.5") == (60.0, 75.5)
    check_window(burst, (60.0, 75.5))
    with pytest.raises(InputError, match="--window 900:901: the last step of the run ends at"):
        check_window(burst, (900.0, 901.0))


def test_requests_wait_for_steps_of_prompts_alone() -> None:
    """Under separate prefill a step of 10 ms with a prompt makes the gap of the decoding request 20 ms long."""
    result = run_of([(0.0, 10), (0.045, 2)], p=CONTINUOUS | {"prefill": "separate"})
    steps = result.steps
    assert 0 in steps["decode_seqs"].tolist()[1:], "a step without decodes is among the others"
    drawn = token_gaps(result).axes[0].lines[0].get_ydata()
    assert {round(float(y), 6) for y in drawn if not math.isnan(y)} == {10.0, 20.0}
    assert result.summary_rows[0]["max_itl_ms"] == pytest.approx(20.0)


def test_a_new_request_does_not_wait_for_its_own_prompt() -> None:
    """After an idle time, the step of the prompt is no gap."""
    result = run_of([(0.0, 3), (5.0, 3)], p=CONTINUOUS | {"prefill": "separate"})
    drawn = token_gaps(result).axes[0].lines[0].get_ydata()
    assert {round(float(y), 6) for y in drawn if not math.isnan(y)} == {10.0}


def test_many_steps_are_bands() -> None:
    """In a run of very many steps, the band reaches from the shortest to the longest gap."""
    asked = [
        {"id": f"r{i}", "arrival_s": 0.02 * i, "prompt_tokens": 10 + i % 7, "output_tokens": 3} for i in range(1200)
    ]
    result = sq.run(
        {
            "step_time": {"kind": "linear", "overhead_s": 0.005, "per_prefill_token_s": 1e-4},
            "kv_cache": {"blocks": 10_000},
            "workload": {"requests": asked},
            "policies": {"p": CONTINUOUS},
        }
    )
    ax = token_gaps(result).axes[0]
    assert len(ax.lines[0].get_xdata()) <= 400
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    gaps = result.runs[0].recording.gaps["gap_s"] * 1000
    assert heights[heights > 0].min() == pytest.approx(gaps.min(), rel=1e-6)
    assert heights.max() == pytest.approx(gaps.max(), rel=1e-6)


def test_all_slots_are_shown() -> None:
    """With 100 slots, as many rows are drawn, with a colour for each phase."""
    result = run_of([(0.0, 20)] * 100, p=CONTINUOUS | {"max_num_seqs": 128, "max_num_batched_tokens": 4096})
    figure = batch_timeline(result)
    ax = figure.axes[0]
    assert ax.get_ylim()[0] > 99
    assert sum(len(collection.get_paths()) for collection in ax.collections) == 200, "a prompt and an answer each"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["prefill", "decode"]
