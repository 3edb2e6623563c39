"""The summary of hand-written recordings, against arithmetic done by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from simqueue.errors import InputError
from simqueue.results.summary import SUMMARY_TYPES, Row, summarize
from simqueue.results.window import Window


def only(recording: Any, **settings: Any) -> Row:
    """Return the one summary row of a recording without classes."""
    (row,) = summarize("p", 0, recording, **settings)
    return row


def done(arrival_s: float, first_token_s: float, finish_s: float, output_tokens: int, **more: Any) -> dict[str, Any]:
    """Describe a finished request."""
    return {
        "arrival_s": arrival_s,
        "first_scheduled_s": arrival_s,
        "first_token_s": first_token_s,
        "finish_s": finish_s,
        "output_tokens": output_tokens,
    } | more


def test_a_preempted_request_keeps_its_first_token_and_its_wait(preempted_pair: Any) -> None:
    """TTFT stays that of the first token seen, the wait is one long gap, and E2EL holds all of it."""
    row = only(preempted_pair)
    assert row["mean_ttft_ms"] == pytest.approx(10)
    assert row["max_itl_ms"] == pytest.approx(240)
    assert row["mean_e2el_ms"] == pytest.approx((400 + 630) / 2)
    assert row["preemptions"] == 1


def test_tpot_is_per_request_and_itl_is_pooled(preempted_pair: Any) -> None:
    """The mean of TPOTs weighs requests, ITL weighs tokens: 78 gaps = sum of (output - 1), median 10 ms."""
    row = only(preempted_pair)
    assert row["mean_tpot_ms"] == pytest.approx((390 / 39 + 620 / 39) / 2)
    assert row["mean_itl_ms"] == pytest.approx((77 * 10 + 240) / 78)
    assert row["median_itl_ms"] == pytest.approx(10)
    assert row["itl_count"] == 78
    assert row["p99_itl_ms"] == pytest.approx(np.percentile([10] * 77 + [240], 99))


def test_one_token_outputs_are_left_out_of_tpot_and_counted(record: Any) -> None:
    """With a (1 token) and b (11 tokens in steps of 10 ms), the mean TPOT is b's 10 ms and one is excluded."""
    row = only(record([done(0, 0.01, 0.01, 1), done(0, 0.01, 0.11, 11)], itl=[(0.01, 10)], end_s=0.11))
    assert row["mean_tpot_ms"] == pytest.approx(10)
    assert (row["tpot_excluded"], row["measured_requests"], row["completed"]) == (1, 2, 2)


def test_only_one_token_outputs_leave_tpot_undefined(record: Any) -> None:
    """Where no request has a TPOT, its statistics are None, and so are those of ITL."""
    row = only(record([done(0, 0.01, 0.01, 1)], end_s=0.01))
    assert [row[f"{s}_{m}_ms"] for m in ("tpot", "itl") for s in ("mean", "median", "p95", "p99")] == [None] * 8
    assert (row["max_itl_ms"], row["itl_count"], row["mean_ttft_ms"]) == (None, 0, 10)


def test_the_horizon_leaves_requests_visible(record: Any) -> None:
    """Five requests one after the other, 50 steps of 2^-7 s each, horizon after 100: 2 finished, 3 unfinished."""
    step_s = 2.0**-7
    served = [done(0.0, step_s, 0.390625, 50), done(0.1, 0.390625 + step_s, 0.78125, 50)]
    inside = [{"arrival_s": 0.1 * i, "output_tokens": 50, "status": "unfinished"} for i in (2, 3, 4)]
    steps = [{"duration_s": 0.78125, "repeat": 100, "decode_seqs": 1}]
    row = only(record(served + inside, steps, itl=[(step_s, 98)], end_s=0.78125))
    assert (row["completed"], row["unfinished"], row["n_requests"]) == (2, 3, 5)
    assert row["duration_s"] == 0.78125
    assert row["request_throughput"] == 2 / 0.78125
    assert row["gpu_busy_share"] == 1
    assert row["median_e2el_ms"] == pytest.approx((390.625 + 681.25) / 2)


def test_duration_ends_with_the_last_departure(record: Any) -> None:
    """Without unfinished requests, the duration is from the first arrival to the last departure of any request."""
    rows = [
        done(1.0, 1.5, 2.0, 2),
        {"arrival_s": 1.5, "status": "timed_out", "finish_s": 4.0},
        {"arrival_s": 3.0, "status": "rejected", "finish_s": 3.0},
    ]
    row = only(record(rows, end_s=9.0))
    assert row["duration_s"] == 3.0
    assert (row["completed"], row["timed_out"], row["rejected"], row["unfinished"]) == (1, 1, 1, 0)
    assert row["timed_out_share"] == pytest.approx(1 / 3)
    assert row["request_throughput"] == pytest.approx(1 / 3)


def test_throughput_counts_finished_requests_alone(record: Any) -> None:
    """Tokens are those of finished requests; a request cut off in the middle adds none."""
    rows = [
        done(0, 1, 2, 30, prompt_tokens=100),
        {"status": "unfinished", "prompt_tokens": 1000, "output_tokens": 500, "tokens_emitted": 400},
    ]
    row = only(record(rows, end_s=4.0))
    assert (row["output_throughput"], row["total_token_throughput"]) == (30 / 4, 130 / 4)


def test_goodput_is_null_without_slo_and_a_rate_with_it(record: Any) -> None:
    """Goodput counts finished requests that meet every SLO, per second of the whole duration."""
    recording = record([done(0, 0.1, 1, 10), done(0, 0.9, 1, 10), done(0, 0.1, 2, 1)], end_s=2.0)
    assert only(recording)["request_goodput"] is None
    assert only(recording, slo={})["request_goodput"] is None
    assert only(recording, slo={"ttft_ms": 500, "tpot_ms": 100})["request_goodput"] == 1.0
    assert only(recording, slo={"ttft_ms": 50})["request_goodput"] == 0.0


def test_an_unknown_slo_is_refused_with_the_nearest_name(record: Any) -> None:
    """A misspelt SLO is an error that names the valid one."""
    with pytest.raises(InputError, match=r"slo: unknown key 'ttf_ms'; did you mean 'ttft_ms'\?"):
        summarize("p", 0, record(), {"ttf_ms": 5})


def test_nothing_finished_gives_nulls_and_right_counts(record: Any) -> None:
    """A rejected request alone: counts are right, every latency and rate is None, and the row is strict JSON."""
    row = only(record([{"status": "rejected", "finish_s": 0.0}]), slo={"ttft_ms": 1})
    assert (row["n_requests"], row["completed"], row["rejected"]) == (1, 0, 1)
    latencies = [name for name in SUMMARY_TYPES if name.startswith(("mean_", "median_", "p95_", "p99_", "max_itl"))]
    rates = ["request_throughput", "output_throughput", "total_token_throughput", "request_goodput"]
    assert {row[name] for name in latencies + rates} == {None}
    json.dumps(row, allow_nan=False)


def test_no_requests_at_all(record: Any) -> None:
    """An empty recording gives a row of zero counts and None elsewhere."""
    row = only(record())
    assert (row["n_requests"], row["completed"], row["preemptions"]) == (0, 0, 0)
    assert (row["duration_s"], row["request_throughput"], row["gpu_busy_share"]) == (None, None, None)
    json.dumps(row, allow_nan=False)


def test_a_horizon_before_anything_finishes_gives_zero_rates(record: Any) -> None:
    """Time has passed and nothing finished: throughput is a true 0, latencies are None."""
    row = only(record([{"status": "unfinished"}], end_s=0.001))
    assert (row["duration_s"], row["request_throughput"], row["mean_ttft_ms"]) == (0.001, 0.0, None)


def test_mean_batch_weighs_busy_time_alone(record: Any) -> None:
    """1 s with 3 decodes and 1 prefill, 2 s idle, 3 s with 2 decodes: mean batch 10/4, busy 4/6."""
    steps = [
        {"start_s": 0.0, "duration_s": 1.0, "decode_seqs": 3, "prefill_seqs": 1},
        {"start_s": 3.0, "duration_s": 3.0, "decode_seqs": 2, "repeat": 30},
    ]
    row = only(record([done(0, 1, 6, 2)], steps, end_s=6.0))
    assert row["mean_batch"] == 2.5
    assert row["gpu_busy_share"] == pytest.approx(4 / 6)


def test_a_step_cut_by_the_horizon_counts_until_then(record: Any) -> None:
    """Of a step of 4 s that starts 1 s before the horizon, 1 s is inside; one that starts after it adds nothing."""
    steps = [{"start_s": 1.0, "duration_s": 4.0}, {"start_s": 3.0, "duration_s": 1.0}]
    assert only(record([{"status": "unfinished"}], steps, end_s=2.0))["gpu_busy_share"] == 0.5


def test_machine_shares(record: Any) -> None:
    """KV peak is a share of the pool; idle slots are a share of padded slots, None without waves."""
    row = only(record(blocks_total=50, blocks_peak=20, slot_steps=400, idle_slot_steps=100, max_concurrent=7))
    assert (row["kv_peak_share"], row["idle_slot_share"], row["max_concurrent_requests"]) == (0.4, 0.25, 7)
    assert only(record(blocks_total=0))["kv_peak_share"] is None
    assert only(record())["idle_slot_share"] is None


def test_a_window_has_rates_of_what_happens_in_it(record: Any) -> None:
    """In (2 s, 4 s] the second of three requests leaves, with 11 tokens and a prompt of 39; counts are of all.

    Latencies are of the two that arrive in it, the last of which leaves after it.
    """
    rows = [done(0, 5, 6, 2), done(2, 2.5, 3, 11, prompt_tokens=39), done(4, 4.5, 12, 6, prompt_tokens=44)]
    row = only(record(rows, end_s=12.0), window=Window(2.0, 4.0), slo={"e2el_ms": 1000})
    assert (row["n_requests"], row["completed"], row["warmup_excluded"], row["measured_requests"]) == (3, 3, 1, 2)
    assert (row["duration_s"], row["measured_duration_s"]) == (12.0, 2.0)
    assert row["mean_ttft_ms"] == 500
    assert (row["request_throughput"], row["output_throughput"]) == (0.5, 5.5)
    assert (row["total_token_throughput"], row["request_goodput"]) == (25.0, 0.5)


def test_classes_add_up_to_the_policys_row(record: Any) -> None:
    """Rows of classes, those without one included, share the policy's time, so that counts and rates add up."""
    rows = [
        done(0, 1, 2, 10, request_class="chat"),
        done(0, 2, 4, 20, request_class="batch", preemptions=3),
        done(1, 3, 5, 30),
        {"arrival_s": 1.0, "status": "rejected", "finish_s": 1.0, "request_class": "chat"},
    ]
    total, *classes = summarize("p", 0, record(rows, itl=[(0.1, 57)], max_concurrent=3, end_s=5.0))
    assert total["request_class"] == "all"
    assert [row["request_class"] for row in classes] == ["chat", "batch", None]
    for name in ("n_requests", "completed", "rejected", "preemptions", "request_throughput", "output_throughput"):
        assert total[name] == pytest.approx(sum(row[name] for row in classes))
    assert [row["mean_ttft_ms"] for row in classes] == [1000, 2000, 2000]
    assert {row[name] for row in classes for name in ("mean_itl_ms", "itl_count", "mean_batch")} == {None}


def test_a_run_without_classes_has_one_row(record: Any) -> None:
    """Where no request has a class there is the policy's row alone, with every column in order."""
    (row,) = summarize("p", 2, record([done(0, 1, 2, 3)], end_s=2.0))
    assert list(row) == list(SUMMARY_TYPES)
    assert (row["policy"], row["replication"], row["request_class"]) == ("p", 2, "all")


def test_values_are_plain_python(preempted_pair: Any) -> None:
    """Every value is a str, int, float or None, so that JSON and users meet no numpy scalars."""
    row = only(preempted_pair, slo={"ttft_ms": 500})
    assert {type(value) for value in row.values()} <= {str, int, float, type(None)}
