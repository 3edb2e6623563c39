"""Replications: the same on any number of processes, on common random numbers, with intervals and a warm-up."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.experiment import until_precise
from simqueue.experiment.comparing import compared
from simqueue.experiment.matching import predict
from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.verification import AGREES, DIFFERS, NOT_ENOUGH, judge
from simqueue.results.replicated import INTERVAL_COLUMNS, is_percentile, too_small
from simqueue.scenario import from_mapping
from simqueue.schedulers import SCHEDULERS, Continuous
from simqueue.statistics.estimate import estimate


def scenario(rate: float = 6.0, requests: int = 150, **more: Any) -> dict[str, Any]:
    """Return two policies with eight slots, which can serve 10.6 requests per second, and static waves."""
    return {
        "step_time": {"kind": "linear", "overhead_s": 0.02, "per_decode_s": 0.001, "per_prefill_token_s": 5e-5},
        "kv_cache": {"blocks": 100_000},
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": rate},
            "prompt_tokens": {"distribution": "constant", "value": 500},
            "output_tokens": {"distribution": "geometric", "mean": 20},
            "num_requests": requests,
        },
        "policies": {
            "whole": {"scheduler": "continuous", "max_num_seqs": 8},
            "chunked": {"scheduler": "chunked", "max_num_seqs": 8, "max_num_batched_tokens": 256},
        },
        **more,
    }


def test_the_number_of_workers_leaves_no_trace() -> None:
    """One process and two processes give the same JSON."""
    made = scenario(replications=4)
    assert sq.run(made, workers=1).to_json() == sq.run(made, workers=2).to_json()


def test_a_replication_does_not_depend_on_their_number() -> None:
    """The first three of five replications are those of a run with three."""
    few, many = (sq.run(scenario(replications=n)).replications for n in (3, 5))
    assert few.equals(many[many["replication"] < 3].reset_index(drop=True))


def test_policies_share_traffic_and_replications_do_not() -> None:
    """In a replication all policies get the same requests; two replications have no request in common."""
    requests = sq.run(scenario(replications=2)).requests
    traffic = {
        key: part[["arrival_s", "prompt_tokens", "output_tokens"]].to_numpy()
        for key, part in requests.groupby(["policy", "replication"])
    }
    assert np.array_equal(traffic["whole", 0], traffic["chunked", 0])
    assert not set(traffic["whole", 0][:, 0]) & set(traffic["whole", 1][:, 0])


def test_the_summary_is_of_the_replications_own_summaries() -> None:
    """Counts are sums, means are means of means, and intervals are over the replications' own values."""
    result = sq.run(scenario(replications=5))
    own = [row for row in result.replication_rows if row["policy"] == "whole"]
    row = result.summary_rows[0]
    assert (row["replications"], row["replication"], row["completed"]) == (5, None, 5 * 150)
    for name in INTERVAL_COLUMNS:
        values = [one[name] for one in own]
        if any(value is None for value in values):
            assert row[f"ci_low_{name}"] is None
            continue
        numbers = [float(value) for value in values]  # type: ignore[arg-type] # checked above
        if row[f"ci_low_{name}"] is not None:
            expected = estimate(numbers, value=float(row[name]) if is_percentile(name) else None)  # type: ignore[arg-type]
            assert row[name] == pytest.approx(expected.value)
            assert row[f"ci_high_{name}"] == pytest.approx(expected.high)
    assert list(result.summary.columns[-2:]) == ["ci_low_idle_slot_share", "ci_high_idle_slot_share"]
    json.loads(result.to_json())


def test_a_percentile_over_replications_is_that_of_all_requests() -> None:
    """It is the percentile of the pooled requests, or gaps; its effective number is of the shares above it."""
    result = sq.run(scenario(replications=5, requests=120))
    row = result.summary_rows[0]
    own = result.requests[result.requests["policy"] == "whole"]
    p99 = np.percentile(own["ttft_ms"], 99)
    assert row["p99_ttft_ms"] == pytest.approx(p99)
    above = own.groupby("replication")["ttft_ms"].agg(lambda values: (values > p99).mean())
    assert row["effective_n_p99_ttft_ms"] == pytest.approx(0.99 * 0.01 / (above.var(ddof=1) / 5))
    means = own.groupby("replication")["ttft_ms"].mean()
    expected = own["ttft_ms"].var(ddof=0) / (means.var(ddof=1) / 5)
    assert row["effective_n_mean_ttft_ms"] == pytest.approx(expected)
    gaps = [run.recording.gaps for run in result.runs if run.policy == "whole"]
    pooled = np.concatenate([np.repeat(table["gap_s"], table["tokens"]) for table in gaps])
    assert row["p99_itl_ms"] == pytest.approx(1000 * np.percentile(pooled, 99))


def test_too_few_requests_have_no_percentile() -> None:
    """Three runs of 25 requests have no value beyond a p99 and one has none beyond a p95: the first has no number."""
    row = sq.run(scenario(requests=25, replications=3)).summary_rows[0]
    assert row["p99_ttft_ms"] is None
    assert row["p95_ttft_ms"] is not None
    assert "n too small" in (too_small(row, "p99_ttft_ms") or "")
    steady = sq.run(scenario(requests=60, warmup_s=2.0)).summary_rows[0]
    assert (steady["p99_ttft_ms"], steady["replications"]) == (None, 1)
    assert steady["p95_ttft_ms"] is not None


def test_precision_of_a_percentile_needs_values() -> None:
    """A p99 of 50 requests a run cannot be made precise, and the error says what is missing."""
    made = scenario(requests=50, precision={"metric": "p99_ttft_ms", "relative": 0.2})
    with pytest.raises(InputError, match=r"needs at least 100 values a run; policy whole in replication 0 has 50"):
        sq.run(made, workers=1)


def test_precision_stops_by_what_the_table_shows() -> None:
    """The pooled p95 is known to 50 %: half its interval in the summary is at most that."""
    made = scenario(precision={"metric": "p95_ttft_ms", "relative": 0.5, "min_replications": 3}, rate=3.0, requests=40)
    del made["policies"]["chunked"]
    row = sq.run(made, workers=1, check=False).summary_rows[0]
    low, high, value = (float(row[f"{key}p95_ttft_ms"]) for key in ("ci_low_", "ci_high_", ""))  # type: ignore[arg-type]
    assert (high - low) / 2 <= 0.5 * value


def test_the_throughput_of_a_steady_window_is_the_rate_offered() -> None:
    """Long answers leave after the last arrival, but the window ends there: the interval has the 6.383 offered."""
    made = scenario(rate=6.383, requests=200, replications=12, warmup_s=6.0, seed=123)
    made["workload"]["output_tokens"] = {"distribution": "lognormal", "mean": 20.5, "cv": 3}
    del made["policies"]["chunked"]
    row = sq.run(made, check=False, workers=1).summary_rows[0]
    assert row["ci_low_request_throughput"] < 6.383 < row["ci_high_request_throughput"]  # type: ignore[operator]


def one_slot(load: float, requests: int, replications: int) -> dict[str, Any]:
    """Return M/M/1 with a mean service of 1 s, and a warm-up of a tenth of its requests."""
    made = scenario(rate=load, requests=requests, replications=replications, warmup_s=0.1 * requests / load)
    made["step_time"] = {"kind": "linear", "overhead_s": 1e-9, "per_decode_s": 0, "per_prefill_token_s": 1e-3}
    made["workload"]["prompt_tokens"] = {"distribution": "geometric", "mean": 1000}
    made["workload"]["output_tokens"] = {"distribution": "constant", "value": 1}
    made["policies"] = {"one": {"scheduler": "continuous", "max_num_seqs": 1}}
    return made


def test_what_cannot_be_known_from_so_few_says_so() -> None:
    """At 0.9, 200 requests are no steady state. At 0.3, 500 have a mean, but ten times 10 long waits are no p99."""
    few = sq.run(one_slot(0.9, 200, 8), check=False, workers=1).warnings
    assert any("one: too few for a steady state: a run is worth about" in line for line in few)
    more = sq.run(one_slot(0.3, 500, 10), check=False, workers=1).warnings
    assert not any("steady state" in line or "mean_ttft_ms" in line for line in more)
    assert any(line.startswith("one: too few for a percentile: p99_ttft_ms") for line in more)


def test_a_percentile_of_few_requests_has_no_interval() -> None:
    """60 requests per run are too few for a 99th percentile: it has no interval, and a note says so; p95 has one."""
    row = sq.run(scenario(requests=60, replications=3)).summary_rows[0]
    assert row["ci_low_p99_ttft_ms"] is None
    assert row["ci_low_p95_ttft_ms"] is not None
    assert "n too small" in (too_small(row, "p99_ttft_ms") or "")


def test_replicating_until_precise() -> None:
    """With precision the mean is known to the required 20 %, on any number of processes."""
    wanted = {"metric": "mean_e2el_ms", "relative": 0.2, "min_replications": 3}
    made = scenario(precision=wanted)
    result = sq.run(made, workers=1)
    again = sq.run(made, workers=2)
    assert result.summary.equals(again.summary)
    for row in result.summary_rows:
        low, high, mean = (row[name] for name in ("ci_low_mean_e2el_ms", "ci_high_mean_e2el_ms", "mean_e2el_ms"))
        assert max(high - mean, mean - low) <= 0.2 / 1.2 * mean  # type: ignore[operator] # defined in these runs
        assert row["replications"] >= 5  # type: ignore[operator] # 5 after 3: two checkpoints
    assert not any("not enough runs" in line for line in result.warnings)


def test_precision_that_is_not_reached_is_told() -> None:
    """If the largest number of replications is not enough, there is a warning."""
    wanted = {"metric": "p99_ttft_ms", "relative": 0.001, "min_replications": 2, "max_replications": 4}
    result = sq.run(scenario(precision=wanted), workers=1)
    assert result.summary_rows[0]["replications"] == 4
    assert any("not enough runs" in line for line in result.warnings)


def test_a_single_number_of_replications_is_not_chosen() -> None:
    """If only one number is allowed, the interval there needs no confirmation."""
    wanted = {"metric": "mean_e2el_ms", "relative": 0.5, "min_replications": 6, "max_replications": 6}
    result = sq.run(scenario(precision=wanted), workers=1)
    assert result.summary_rows[0]["replications"] == 6
    assert not any("not enough runs" in line for line in result.warnings)


def test_the_work_of_a_sequence_grows_with_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """A percentile of gaps is looked at once per checkpoint, and at the last two for the warning."""
    looks: list[int] = []

    def counted(*args: Any) -> Any:
        looks.append(len(args[1]))
        return estimated(*args)

    estimated = until_precise.column_estimate
    monkeypatch.setattr(until_precise, "column_estimate", counted)
    wanted = {"metric": "p99_itl_ms", "relative": 1e-6, "min_replications": 3, "max_replications": 20}
    made = scenario(precision=wanted, requests=30)
    del made["policies"]["chunked"]
    sq.run(made, check=False, workers=1)
    assert looks == [3, 5, 8, 12, 18, 20]


def test_an_interval_that_cannot_be_trusted_is_not_precise() -> None:
    """At 0.9, 200 requests are no steady state, however many runs there are; of whole runs the mean is known soon."""
    wanted = {"metric": "mean_ttft_ms", "relative": 0.9, "min_replications": 5, "max_replications": 45}
    made = {**one_slot(0.9, 200, 1), "precision": wanted}
    steady, whole = (sq.run({**made, "warmup_s": one}, check=False, workers=1) for one in (made["warmup_s"], 0.0))
    assert steady.summary_rows[0]["replications"] == 45
    (line,) = [line for line in steady.warnings if "not enough runs" in line]
    assert "is not known to 90 %; the intervals of one cannot be trusted yet" in line
    assert any("one: too few for a steady state" in line for line in steady.warnings)
    low, value, high = (float(steady.summary_rows[0][f"{key}mean_ttft_ms"]) for key in ("ci_low_", "", "ci_high_"))  # type: ignore[arg-type]
    assert max(value - low, high - value) <= 0.9 / 1.9 * value  # narrow enough, but for the doubt
    assert whole.summary_rows[0]["replications"] < 45  # type: ignore[operator] # a count
    assert not any("not enough runs" in line for line in whole.warnings)


def test_ten_replications_and_five_more_are_the_least() -> None:
    """By default a mean that is precise from the start on is accepted at the second checkpoint."""
    made = scenario(rate=0.5, requests=40, precision={"metric": "mean_e2el_ms", "relative": 0.9})
    assert sq.run(made, check=False, workers=1).summary_rows[0]["replications"] == 15


def test_an_overloaded_policy_does_not_hold_up_the_others() -> None:
    """A queue that grows in all replications has no steady state to wait for, and its latencies are not shown."""
    wanted = {"metric": "mean_ttft_ms", "relative": 0.6, "min_replications": 3, "max_replications": 40}
    result = sq.run(scenario(rate=16, requests=250, warmup_s=3.0, precision=wanted), check=False, workers=1)
    assert all(row["overloaded"] is True for row in result.summary_rows)
    assert result.summary_rows[0]["replications"] < 40  # type: ignore[operator] # a count


def test_an_automatic_warm_up_cuts_the_filling() -> None:
    """Near capacity, from an empty start, MSER-5 cuts something; the cut and both windows are shown."""
    made = scenario(rate=9.5, requests=1500, replications=6, warmup_s="auto")
    result = sq.run(made, check=False)
    row, whole = result.summary_rows[0], result.whole_run_rows[0]
    assert (row["window"], whole["window"]) == ("steady", "whole run")
    assert row["warmup_s"] == result.warmup_s > 0
    assert 0 < row["warmup_excluded"] < 0.6 * row["n_requests"]  # type: ignore[operator] # counts
    assert whole["warmup_excluded"] == 0
    assert row["mean_ttft_ms"] > whole["mean_ttft_ms"]  # type: ignore[operator] # the filling is short of waits
    content = json.loads(result.to_json(requests=False))
    assert content["summary_whole_run"][0]["mean_ttft_ms"] == whole["mean_ttft_ms"]


def test_each_replication_is_cut_at_its_own_request() -> None:
    """Bursty runs start at very different times; each loses the same number of its first requests, at most half."""
    made = scenario(requests=100, replications=12, warmup_s="auto")
    made["workload"]["arrivals"] = {"process": "on_off", "rate_rps": 6.4, "peak_to_mean": 4, "mean_burst_s": 20}
    result = sq.run(made, check=False)
    rows = result.replication_rows
    assert len({row["warmup_s"] for row in rows}) > 6
    for policy in result.policies:
        cut = {row["warmup_excluded"] for row in rows if row["policy"] == policy}
        assert len(cut) == 1
        assert 0 < cut.pop() <= 50  # type: ignore[operator] # a count
    both = [[row["warmup_s"] for row in rows if row["policy"] == policy] for policy in result.policies]
    assert both[0] == both[1]


def test_the_filling_of_the_system_is_cut() -> None:
    """Answers of 4 s hardly slow each other, so TTFT is flat; yet 20 requests must have come before as many leave.

    With constant steps and no limit, requests stay 4 s, and the number in the system is 5 a second times 4 s.
    """
    made = scenario(rate=5.0, requests=400, replications=3, warmup_s="auto")
    made["step_time"] = {"kind": "constant", "seconds": 0.01}
    made["workload"]["output_tokens"] = {"distribution": "constant", "value": 400}
    made["policies"] = {"p": {"scheduler": "continuous", "max_num_seqs": 100}}
    rows = sq.run(made, check=False, workers=1).replication_rows
    assert all(row["window"] == "steady" and row["warmup_excluded"] >= 50 for row in rows)  # type: ignore[operator]


def test_precision_goes_with_an_automatic_warm_up() -> None:
    """The first replications decide how many requests are cut, and every later run has a result."""
    wanted = {"metric": "mean_ttft_ms", "relative": 0.5, "min_replications": 5, "max_replications": 25}
    made = scenario(requests=100, precision=wanted, warmup_s="auto")
    made["workload"]["arrivals"] = {"process": "on_off", "rate_rps": 5.0, "peak_to_mean": 4, "mean_burst_s": 5}
    row = sq.run(made, check=False, workers=1).summary_rows[0]
    assert row["mean_ttft_ms"] is not None
    assert row["warmup_excluded"] <= row["n_requests"] / 2  # type: ignore[operator] # counts


def test_a_terminating_run_is_whole() -> None:
    """Without a warm-up nothing is cut and the window is the whole run."""
    row = sq.run(scenario()).summary_rows[0]
    assert (row["window"], row["warmup_s"], row["warmup_excluded"]) == ("whole run", 0.0, 0)


def test_an_overloaded_policy_shows_no_steady_state() -> None:
    """At 1.2 times the capacity a run with a warm-up is flagged; its latencies are null and its throughput is not."""
    result = sq.run(scenario(rate=12.8, requests=600, warmup_s=5.0))
    for row in result.summary_rows:
        assert row["overloaded"] is True
        assert row["load"] > 1  # type: ignore[operator] # known
        assert row["mean_ttft_ms"] is None
        assert row["p99_e2el_ms"] is None
        assert row["request_throughput"] is not None
    assert any("overloaded" in line for line in result.warnings)


def test_replications_that_look_overloaded_are_not_left_out() -> None:
    """Near capacity some replications pile up by chance: the policy is not overloaded, and the mean is over all."""
    result = sq.run(scenario(rate=10.5, requests=400, replications=12, warmup_s=4.0), check=False)
    own = [row for row in result.replication_rows if row["policy"] == "whole"]
    assert {row["overloaded"] for row in own} >= {True, None}
    assert result.summary_rows[0]["overloaded"] is not True
    values = [row["mean_ttft_ms"] for row in own]
    assert result.summary_rows[0]["mean_ttft_ms"] == pytest.approx(float(np.mean(np.array(values, dtype=float))))


def test_an_overloaded_terminating_run_keeps_its_numbers() -> None:
    """A finite run without a warm-up has latencies at any load, and is flagged as well."""
    row = sq.run(scenario(rate=12.8, requests=600)).summary_rows[0]
    assert row["overloaded"] is True
    assert row["mean_ttft_ms"] is not None


def test_a_run_in_which_nobody_meets_is_told() -> None:
    """One request in 30 s, as at the start of some traces: policies cannot differ, and the run says so (case 57)."""
    rows = [{"arrival_s": 30.0 * i, "prompt_tokens": 500, "output_tokens": 20} for i in range(25)]
    light = sq.run({**scenario(), "workload": {"requests": rows}})
    assert any("policies cannot differ" in line for line in light.warnings)
    busy = [{**row, "arrival_s": i / 3} for i, row in enumerate(rows)]
    assert not any("cannot differ" in line for line in sq.run({**scenario(), "workload": {"requests": busy}}).warnings)


def test_load_is_rate_over_capacity() -> None:
    """With steps of 20 ms + 1 ms per decode + 50 us per token, 8 slots can serve 10.6383 requests per second."""
    row = sq.run(scenario()).summary_rows[0]
    assert row["load"] == pytest.approx(6 / 10.6383, rel=1e-4)
    assert row["binding"] == "slots"


def test_an_offline_batch_has_no_load() -> None:
    """If all requests arrive at once there is no rate: load and overload are undefined, and the capacity is known."""
    made = scenario()
    made["workload"] = {**made["workload"], "arrivals": {"process": "all_at_once"}}
    row = sq.run(made).summary_rows[0]
    assert (row["load"], row["overloaded"], row["binding"]) == (None, None, "slots")


def test_load_is_known_where_nobody_finishes() -> None:
    """At six times the capacity, with short timeouts, no request is served, and the load shows why."""
    made = scenario(rate=60.0)
    made["workload"]["timeout_s"] = 0.03
    result = sq.run(made)
    row = result.summary_rows[0]
    assert (row["completed"], row["timed_out_share"], row["overloaded"]) == (0, 1.0, True)
    assert row["load"] == pytest.approx(60 / 10.6383, rel=1e-4)
    assert any("offered load 5.64" in line for line in result.warnings)


@pytest.mark.parametrize("loop", [{}, {"loop": {"users": {"count": 3, "think_s": 1.0}, "num_requests": 60}}])
def test_people_who_leave_hide_an_overload(loop: dict[str, Any]) -> None:
    """Open traffic at four times the capacity, with timeouts, and a closed loop: there is no statement on overload."""
    made = scenario()
    lengths = {key: made["workload"][key] for key in ("prompt_tokens", "output_tokens")}
    arrivals = {"process": "poisson", "rate_rps": 40.0}
    workloads = {"open": {"arrivals": arrivals, "num_requests": 600, "timeout_s": 0.6, **lengths}}
    workloads |= {name: {**keys, **lengths} for name, keys in loop.items()}
    del made["workload"], made["policies"]["chunked"]
    row = sq.run({**made, "workloads": workloads}).summary_rows[0]
    share = row["timed_out_share"]
    assert isinstance(share, float)
    assert share > 0.5
    if loop:
        assert (row["load"], row["overloaded"]) == (None, None)
    else:
        assert row["overloaded"] is True


def test_a_closed_loop_is_not_called_stable() -> None:
    """The number of users in a closed loop is fixed, so overload is undefined."""
    made = scenario()
    del made["workload"]["arrivals"]
    made["workload"] |= {"users": {"count": 5, "think_s": 0.1}, "num_requests": 400}
    row = sq.run(made).summary_rows[0]
    assert (row["completed"], row["load"], row["overloaded"]) == (400, None, None)


@pytest.mark.parametrize(("budget", "cautious"), [(1024, True), (2048, False), (8192, False)])
def test_a_tight_budget_puts_the_law_in_doubt(budget: int, *, cautious: bool) -> None:
    """If slots and a budget of one prompt limit together, prompts hold slots while they wait: there is a caution."""
    made = {
        "model": "llama-3.1-8b",
        "gpu": "h100-sxm",
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 16.0},
            "prompt_tokens": {"distribution": "lognormal", "median": 700, "sigma": 0.9, "min": 64, "max": 4096},
            "output_tokens": {"distribution": "lognormal", "median": 110, "sigma": 0.6, "min": 16, "max": 384},
            "num_requests": 100,
        },
        "policies": {"p": {"scheduler": "chunked", "max_num_seqs": 64, "max_num_batched_tokens": budget}},
    }
    assert bool(policy_loads(from_mapping(made).resolve())["p"].caution) == cautious


def test_a_comparison_is_paired_and_corrected() -> None:
    """Chunks of 256 delay the first tokens of prompts of 500 and shorten the longest gaps, and the verdicts say so."""
    result = sq.run(scenario(rate=7.0, replications=8))
    rows = {row.metric: row for row in compared(result, None, ["mean_ttft_ms", "p99_itl_ms"])}
    assert rows["mean_ttft_ms"].verdict == "worse"
    assert rows["p99_itl_ms"].verdict == "better"
    for row in rows.values():
        assert row.found is not None
        assert row.found.adjusted_p is not None
        assert row.found.p_value is not None
        assert row.found.adjusted_p >= row.found.p_value
    with pytest.raises(InputError, match="did you mean 'chunked'"):
        compared(result, "chunkd", ["mean_ttft_ms"])


def around(mean: float, error: float, n: int = 10) -> list[float]:
    """Return values with this mean and standard error."""
    shape = np.arange(n) - (n - 1) / 2
    return (mean + shape / shape.std(ddof=1) * error * n**0.5).tolist()


def test_the_rule_of_verify() -> None:
    """A mean differs if its t-test says so, and agrees only if an error of 5 % would have been found.

    With ten values, Student's t at 5 % is 2.262, and a shift of 3.6 standard errors exceeds it with probability 0.9.
    """
    assert judge(around(102, 1), 100) == (pytest.approx(0.036, rel=0.03), AGREES)
    assert judge(around(102.4, 1), 100)[1] == DIFFERS
    assert judge(around(100.5, 0.1), 100)[1] == DIFFERS
    assert judge(around(102.4, 1), 100, rows=28)[1] == NOT_ENOUGH  # 4.3 standard errors, and 6 are needed to be sure
    assert judge(around(102, 2), 100)[1] == NOT_ENOUGH
    assert judge(around(108.9, 2.99 / 2.262), 100)[1] == DIFFERS
    assert judge([100.0], 100) == (None, NOT_ENOUGH)


def test_an_approximate_theory_is_allowed_its_error() -> None:
    """Within 1.5 % of a theory that is that good there is no difference; the error adds to what can be detected."""
    exact, wide = judge(around(101, 0.1), 100), judge(around(101, 0.1), 100, error=0.015)
    assert (exact[1], wide[1]) == (DIFFERS, AGREES)
    assert wide[0] == pytest.approx(exact[0] + 0.015)


def test_verify_says_which_error_it_would_find(command: Callable[..., Any]) -> None:
    """Each row has its detectable error and its share of the significance, and the table explains them."""
    found = json.loads(command("verify", "--case", "slots-for-all", "--replications", "3", "--json").out)
    assert [row["significance"] for row in found] == [0.025, 0.025]
    for row in found:
        assert row["half_width"] / row["theory"] < row["detectable_error"] < 0.05
        assert row["verdict"] == AGREES


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"workload": {"requests": [{"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 1}]}}, "Poisson"),
        ({"model": "llama-3.1-8b", "gpu": "h100-sxm", "step_time": None}, "constant or linear"),
        (
            {"policies": {"whole": {"scheduler": "continuous", "max_num_seqs": 8, "prefill": "separate"}}},
            "prefill: mixed",
        ),
        ({"kv_cache": {"blocks": 60}}, "KV pool"),
    ],
)
def test_theory_says_where_it_does_not_apply(change: dict[str, Any], reason: str) -> None:
    """If no exact theory applies, the prediction says why."""
    made = from_mapping({**scenario(), **change}).resolve()
    found = predict(made, made.policy("whole"))
    assert not found.values
    assert reason in found.why_not


def test_no_theory_for_a_class_that_is_not_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """The theory of a scheduler holds for its own class only, whatever stands under its name."""
    keys = scenario(rate=0.5, policies={"one": {"scheduler": "continuous", "max_num_seqs": 1}})
    resolved = from_mapping(keys).resolve()
    assert predict(resolved, resolved.policy("one")).model == "M/G/1"
    monkeypatch.setitem(SCHEDULERS, "continuous", type("Continuous", (Continuous,), {"__module__": "mine"}))
    resolved = from_mapping(keys).resolve()
    found = predict(resolved, resolved.policy("one"))
    assert not found.values
    assert found.why_not == "no exact theory: the scheduler continuous must be that of simqueue"


def test_a_scheduler_without_a_law_says_so() -> None:
    """Every packaged policy has a capacity, or a reason why not."""
    for found in policy_loads(from_mapping(scenario()).resolve()).values():
        assert found.capacity is not None or found.why_not


@pytest.mark.parametrize("resolved", [False, True])
def test_seed_and_overrides_of_a_loaded_scenario(resolved: bool) -> None:
    """The seed applies to a loaded scenario as to its keys; overrides come too late and are an error."""
    keys = scenario(requests=20)
    loaded = from_mapping(keys).resolve() if resolved else from_mapping(keys)
    made = sq.run(loaded, seed=7)
    assert made.seed == made.scenario["seed"] == 7
    assert made.requests.equals(sq.run(keys, seed=7).requests)
    with pytest.raises(InputError, match=r"^overrides: must be given when the scenario is loaded"):
        sq.run(loaded, overrides=["seed=7"])
