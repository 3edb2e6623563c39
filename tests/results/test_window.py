"""Rates of a window count what happens in it, whoever came when (case 85)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.results.window import TokensMade, entries, last_entry_s, steady_window


def constant(rate_rps: float, outputs: int, **more: Any) -> dict[str, Any]:
    """Return even arrivals of equal requests, in constant steps of 10 ms."""
    workload = {
        "arrivals": {"process": "constant", "rate_rps": rate_rps},
        "prompt_tokens": {"distribution": "constant", "value": 100},
        "output_tokens": {"distribution": "constant", "value": outputs},
    }
    return {
        "step_time": {"kind": "constant", "seconds": 0.01},
        "kv_cache": {"block_size": 16, "blocks": 1_000_000},
        "workload": {**workload, **more.pop("workload", {})},
        "policies": {"v": {"engine": "vllm", "version": "0.33.0"}},
        **more,
    }


@pytest.mark.parametrize(("start_s", "end_s"), [(60, 120), (40, 70)])
def test_answers_longer_than_the_warm_up_count_where_they_leave(start_s: int, end_s: int, summary_of: Any) -> None:
    """Two requests a second with answers of 30 s: 2 leave and 6,000 tokens are made a second in every late window."""
    made = constant(2.0, 3000, workload={"arrivals_for_s": float(end_s)}, warmup_s=start_s, horizon_s=end_s)
    row = summary_of(sq.run(made))
    assert row["measured_duration_s"] == end_s - start_s
    assert row["request_throughput"] == pytest.approx(2.0, abs=1 / (end_s - start_s))
    assert row["output_throughput"] == pytest.approx(6000, rel=0.002)
    assert row["total_token_throughput"] == pytest.approx(6200, rel=0.002)


def test_a_window_ends_with_the_traffic(summary_of: Any) -> None:
    """100 requests, ten a second, the last with 2,000 tokens: 10 leave a second, and the long answer is not waited for.

    The last arrival, at 9.9 s or 10 s, ends the window.
    """
    rows = [{"arrival_s": i / 10, "prompt_tokens": 100, "output_tokens": 100} for i in range(99)]
    rows.append({"arrival_s": 9.9, "prompt_tokens": 100, "output_tokens": 2000})
    made = constant(1.0, 1, warmup_s=2.0) | {"workload": {"requests": rows}}
    row = summary_of(sq.run(made))
    assert row["measured_duration_s"] == pytest.approx(7.9)
    assert row["request_throughput"] == pytest.approx(10, abs=1 / 7.9)
    assert row["output_throughput"] == pytest.approx(1000, rel=0.01)


def test_departures_between_20_and_60_s() -> None:
    """A 70 % longer stay than the warm-up: departures and tokens are those of the tables between 20 and 60 s."""
    made = {
        "model": "llama-3.1-8b",
        "gpu": "h100-sxm",
        "horizon_s": 60,
        "warmup_s": 20,
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 5},
            "arrivals_for_s": 60,
            "prompt_tokens": {"distribution": "constant", "value": 500},
            "output_tokens": {"distribution": "constant", "value": 2000},
        },
        "policies": {"v": {"engine": "vllm", "version": "0.33.0"}},
    }
    result = sq.run(made)
    row, requests = result.summary_rows[0], result.requests
    leaving = requests[(requests["finish_s"] > 20) & (requests["finish_s"] <= 60) & (requests["status"] == "finished")]
    assert row["request_throughput"] == len(leaving) / 40 == 4.25  # as the case says
    # every decode and every prompt makes a token at the end of its step; nothing is preempted here
    steps = result.steps[result.steps["start_s"] > 19]
    ends, decodes = [], []
    for start_s, duration_s, repeat, last_s, n in steps[
        ["start_s", "duration_s", "repeat", "last_step_s", "decode_seqs"]
    ].itertuples(index=False):
        others_s = (duration_s - last_s) / max(repeat - 1, 1)
        ends += [start_s + others_s * (k + 1) for k in range(repeat - 1)] + [start_s + duration_s]
        decodes += [n] * repeat
    inside = (np.array(ends) > 20) & (np.array(ends) <= 60)
    first = requests["first_token_s"].between(20, 60, inclusive="right").sum()
    tokens = np.array(decodes)[inside].sum() + first
    assert row["output_throughput"] == pytest.approx(tokens / 40, rel=2e-4)
    assert sum(run.recording.requests["tokens_emitted"].sum() for run in result.runs) > tokens


def test_tokens_are_counted_by_steps(record: Any) -> None:
    """After steps of 1, 2, 3 s in one row and then 4 s, a request in all of them has 1, 2, 3, 4 tokens."""
    steps = [
        {"duration_s": 6.0, "repeat": 3, "last_step_s": 3.0},
        {"start_s": 6.0, "duration_s": 4.0, "last_step_s": 4.0},
    ]
    rows = [{"first_token_s": 1.0, "last_token_s": 10.0, "finish_s": 10.0, "tokens_emitted": 4, "output_tokens": 4}]
    made = TokensMade(record(rows, steps, end_s=10.0))
    counts = [float(made.until(time_s)[0]) for time_s in (0.5, 1.0, 2.9, 3.0, 5.9, 6.0, 9.9, 10.0, 99.0)]
    assert counts == [0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_windows_of_classes_add_up() -> None:
    """Rates of classes are over the window of all, with departures and tokens of each."""
    classes = {"gold": {"weight": 1.0}, "free": {"weight": 2.0}}
    result = sq.run(constant(5.0, 200, workload={"num_requests": 100, "classes": classes}, warmup_s=5.0))
    total, *others = result.summary_rows
    for name in ("request_throughput", "output_throughput", "total_token_throughput"):
        assert total[name] == pytest.approx(sum(row[name] for row in others))  # type: ignore[misc] # known
    assert {row["measured_duration_s"] for row in others} == {total["measured_duration_s"]}


def test_what_keeps_traffic_up(record: Any) -> None:
    """The last first attempt ends the traffic: not a retry, a later turn of a session, or a user who goes on."""
    rows = [
        {"arrival_s": 1.0, "finish_s": 2.0},
        {"arrival_s": 3.0, "finish_s": 4.0},
        {"arrival_s": 5.0, "finish_s": 6.0},
        {"arrival_s": 7.0, "finish_s": 8.0},
    ]
    recording = record(rows, end_s=8.0)
    plain = dict(recording.requests)
    none = np.full(4, None, dtype=object)
    users = none.copy()
    users[3] = "user"
    turns = none.copy()
    turns[1:3] = "talk"
    more = {"attempt": np.array([0, 0, 0, 1]), "session": turns, "client": none}
    assert last_entry_s(plain) == 7.0
    assert last_entry_s({**plain, **more}) == 3.0
    assert last_entry_s({**plain, "client": users}) == 5.0
    assert entries({**plain, "client": np.full(4, "user", dtype=object)}).all()
    assert steady_window(recording, 2.0).end_s == 7.0
    assert steady_window(recording, 2.0, {"": 20.0}).end_s == 8.0  # the run ended before


def test_a_window_that_the_horizon_cuts_says_what_is_missing() -> None:
    """With answers of 30 s and a window of 30 s, nearly no latency is known, and a line says so."""
    made = constant(2.0, 3000, workload={"arrivals_for_s": 70.0}, warmup_s=40, horizon_s=70)
    result = sq.run(made)
    row = result.summary_rows[0]
    (line,) = [line for line in result.warnings if "unfinished" in line]
    came = (result.requests["arrival_s"] >= 40).sum()
    assert line.startswith(f"v: {came - row['measured_requests']} of {came} requests of the window were unfinished")


def mixture(**workloads: dict[str, Any]) -> dict[str, Any]:
    """Return workloads of equal requests on a server that answers each of them in three steps of 10 ms."""
    one = {name: {"distribution": "constant", "value": 3} for name in ("prompt_tokens", "output_tokens")}
    return {
        "step_time": {"kind": "constant", "seconds": 0.01},
        "kv_cache": {"blocks": 10_000},
        "workloads": {name: {**one, **own} for name, own in workloads.items()},
        "policies": {"p": {"scheduler": "continuous", "max_num_seqs": 64}},
    }


def even(rate_rps: float, **more: Any) -> dict[str, Any]:
    """Return even arrivals."""
    return {"arrivals": {"process": "constant", "rate_rps": rate_rps}, **more}


@pytest.mark.parametrize("short", [{"num_requests": 100}, {"arrivals_for_s": 20.0}])
def test_the_first_workload_that_ends_ends_the_window(short: dict[str, Any]) -> None:
    """5 and 2 requests a second until 20 and 100 s: both rates are those offered, and what is left out is told."""
    made = mixture(short=even(5.0, **short), long=even(2.0, num_requests=200))
    result = sq.run({**made, "warmup_s": 5.0})
    rates = {row["request_class"]: row["request_throughput"] for row in result.summary_rows}
    assert rates["short"] == pytest.approx(5.0, rel=0.02)
    assert rates["long"] == pytest.approx(2.0, rel=0.05)
    assert result.summary_rows[0]["measured_duration_s"] == pytest.approx(15.0, abs=0.21)
    (line,) = [line for line in result.warnings if "first workload" in line]
    assert line.startswith("p: the steady window ends with the first workload that does ('short', at ")
    assert "the last 84 % of the traffic are not measured" in line  # 80 of 95 s


def test_a_workload_that_ends_before_the_warm_up_does_not_end_the_window() -> None:
    """A burst in the first second is no part of the mixture that is measured from 5 s on."""
    burst = {"requests": [{"id": f"b{i}", "arrival_s": 0.1 * i} for i in range(5)]}
    listed = [{**one, "prompt_tokens": 3, "output_tokens": 3} for one in burst["requests"]]
    made = mixture(steady=even(4.0, num_requests=200))
    made["workloads"]["burst"] = {"requests": listed}
    result = sq.run({**made, "warmup_s": 5.0})
    assert result.summary_rows[0]["request_throughput"] == pytest.approx(4.0, rel=0.02)
    assert not any("first workload" in line for line in result.warnings)


@pytest.mark.parametrize(("end", "first"), [({"num_requests": 100}, True), ({"arrivals_for_s": 60.0}, False)])
def test_users_who_end_first_end_the_window_too(end: dict[str, Any], *, first: bool) -> None:
    """Two users make 100 requests within some seconds, beside 60 s of arrivals; those who go on to the end do not."""
    users = {"users": {"count": 2, "think_s": {"distribution": "constant", "value_s": 0.2}}, **end}
    made = mixture(people=users, stream=even(5.0, arrivals_for_s=60.0))
    result = sq.run({**made, "warmup_s": 2.0})
    assert any("('people', at" in line for line in result.warnings) is first
    assert (result.summary_rows[0]["measured_duration_s"] < 15) is first  # type: ignore[operator] # known


def test_a_window_with_a_handful_of_requests_says_so() -> None:
    """One run and several: six requests after the warm-up are no steady state, also if all are answered alike."""
    made = mixture(only=even(1.0, num_requests=20))
    for replications in (1, 3):
        few = sq.run({**made, "warmup_s": 13.5, "replications": replications}, workers=1)
        (line,) = [line for line in few.warnings if "too few" in line]
        assert line.startswith("p: too few for a steady state: a run is worth about 6.0 independent values")
        assert "intervals" not in line
    assert not any("too few" in line for line in sq.run({**made, "warmup_s": 0.5}).warnings)


@pytest.mark.parametrize("number", [10, 17, 80])
def test_an_automatic_warm_up_says_how_many_requests_are_cut(number: int) -> None:
    """Where MSER-5 is not conclusive, the number of the warning is that of the table, for each of several seeds."""
    made = mixture()
    del made["workloads"]
    one = {name: {"distribution": "constant", "value": 3} for name in ("prompt_tokens", "output_tokens")}
    made["workload"] = {"arrivals": {"process": "poisson", "rate_rps": 95.0}, "num_requests": number, **one}
    made["policies"] = {"p": {"scheduler": "continuous", "max_num_seqs": 3}}
    told = 0
    for seed in range(12):
        result = sq.run({**made, "warmup_s": "auto"}, seed=seed)
        for line in (line for line in result.warnings if "found no steady part" in line):
            assert f"); {result.summary_rows[0]['warmup_excluded']} requests are cut;" in line
            told += 1
    assert told
