"""The front end: what requests go through before the scheduler, and what holds back first tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.errors import InputError
from simqueue.experiment import run
from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.replication import replicate
from simqueue.results.result import Result
from simqueue.results.signs import Signs
from simqueue.scenario import from_mapping
from simqueue.statistics.verdict import Law

from ..helpers.both_ways import play_both_ways
from ..helpers.profiles import examples

STEP_S = 0.125


def scenario(front_end: dict[str, float] | None, requests: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return listed requests before a server with steps of one duration and room for all."""
    return {
        "name": "front",
        "step_time": {"kind": "constant", "seconds": STEP_S},
        "kv_cache": {"blocks": 10_000},
        "workload": {"requests": requests} | more.pop("workload", {}),
        "policies": {"p": {"scheduler": "chunked", "max_num_seqs": 64}},
        **({} if front_end is None else {"front_end": front_end}),
        **more,
    }


def asked(arrival_s: float, prompt: int = 16, output: int = 4, **more: float) -> dict[str, Any]:
    """Return a listed request."""
    return {"arrival_s": arrival_s, "prompt_tokens": prompt, "output_tokens": output, **more}


def row(result: Result) -> dict[str, Any]:
    """Return the summary of the only policy."""
    return dict(result.summary_rows[0])


def test_an_idle_server_answers_later_by_what_the_front_end_takes() -> None:
    """TTFT = round trip + work before the scheduler + a step + the delay of the first token, by hand."""
    times = {"network_ms": 10, "request_ms": 5, "prompt_us": 250, "first_token_ms": 20, "first_token_us": 500}
    found = run(scenario(times, [asked(1.0)])).requests.iloc[0]
    before_ms, after_ms = 10 + 5 + 16 * 0.25, 20 + 16 * 0.5
    assert found["front_end_ms"] == pytest.approx(before_ms)
    assert found["queue_ms"] == pytest.approx(0.0, abs=1e-9)
    assert found["first_token_delay_ms"] == pytest.approx(after_ms)
    assert found["ttft_ms"] == pytest.approx(before_ms + 1000 * STEP_S + after_ms)
    assert found["tpot_ms"] == pytest.approx(1000 * STEP_S)
    assert found["e2el_ms"] == pytest.approx(before_ms + 4 * 1000 * STEP_S)  # all tokens are there before its end


def test_an_answer_is_not_there_before_its_first_token() -> None:
    """With one token, or a long delay, the end of the answer is its first token."""
    found = run(scenario({"first_token_ms": 900}, [asked(0.0, output=1), asked(0.0, output=3)])).requests
    assert found["e2el_ms"].tolist() == found["ttft_ms"].tolist() == pytest.approx([900 + 1000 * STEP_S] * 2)


@given(
    gaps=st.lists(st.integers(0, 6), min_size=1, max_size=12),
    prompts=st.lists(st.integers(1, 40), min_size=12, max_size=12),
    outputs=st.lists(st.integers(1, 6), min_size=12, max_size=12),
    times=st.tuples(*[st.integers(0, 4)] * 4),
)
@examples(25, 100)
def test_requests_take_turns(gaps: list[int], prompts: list[int], outputs: list[int], times: tuple[int, ...]) -> None:
    """The scheduler gets each request when Lindley's recursion says, folded and stepped, with ties in time."""
    tick = 2.0**-7
    network, each, prompt, output = times
    front_end = {
        "network_ms": 1e3 * network * tick,
        "request_ms": 1e3 * each * tick,
        "prompt_us": 1e6 * prompt * tick / 8,
        "output_us": 1e6 * output * tick / 4,
    }
    arrivals = np.cumsum(gaps) * tick
    found = play_both_ways(
        scenario(front_end, [asked(float(t), p, o) for t, p, o in zip(arrivals, prompts, outputs, strict=False)])
    ).requests
    free_s = 0.0
    for i, arrival_s in enumerate(arrivals):
        passed_s = max(free_s, arrival_s + network * tick) + each * tick + prompts[i] * prompt * tick / 8
        free_s = passed_s + outputs[i] * output * tick / 4
        on_the_way_ms = found["front_end_ms"][i] if "front_end_ms" in found else 0.0
        assert on_the_way_ms == pytest.approx(1e3 * (passed_s - arrival_s), abs=1e-6)
        assert found["first_scheduled_s"][i] >= passed_s - 1e-9


def test_clients_that_give_up_in_the_front_end_leave_from_there() -> None:
    """The second request waits 0.4 s for its turn and leaves after 0.3 s: no replica ever had it."""
    impatient = run(scenario({"request_ms": 400}, [asked(0.0), asked(0.0)], workload={"timeout_s": 0.5})).requests
    assert impatient["status"].tolist() == ["timed_out", "timed_out"]  # the first one while it decodes
    assert impatient["finish_s"].tolist()[1] == 0.5
    assert np.isnan(impatient["first_scheduled_s"][1])
    assert impatient["first_scheduled_s"][0] == pytest.approx(0.4)


def test_whom_no_replica_had_has_none() -> None:
    """One request runs; one is turned away, one gives up in the front end, and one is there at the horizon."""
    one = scenario({"request_ms": 500}, [asked(0.0, output=100), asked(0.0), asked(0.0, timeout_s=1.2), asked(0.0)])
    one |= {"max_queued_requests": 0, "horizon_s": 1.75}
    one["policies"] = {"p": {"scheduler": "chunked", "max_num_seqs": 1}}
    found = run(one).requests
    assert found["status"].tolist() == ["unfinished", "rejected", "timed_out", "unfinished"]
    assert found["replica"].isna().tolist() == [False, True, True, True]


def test_a_full_queue_rejects_behind_the_front_end() -> None:
    """Whether the queue is full is asked when a request gets there, not when its client sends it."""
    found = run(
        scenario({"request_ms": 10}, [asked(0.0, output=100)] * 3, max_queued_requests=0)
        | {"policies": {"p": {"scheduler": "chunked", "max_num_seqs": 1}}}
    ).requests
    assert found["status"].tolist() == ["finished", "rejected", "rejected"]
    assert found["finish_s"].tolist()[1:] == pytest.approx([0.02, 0.03])


def test_a_closed_loop_waits_for_its_first_token() -> None:
    """A client of one-token answers sends its next request when it has seen the token."""
    more = {"max_concurrency": 1}
    found = run(scenario({"first_token_ms": 100}, [asked(0.0, output=1)] * 3, workload=more)).requests
    assert found["finish_s"].tolist() == pytest.approx([STEP_S + i * (STEP_S + 0.1) for i in range(3)])


def test_an_answer_that_comes_too_late_times_out() -> None:
    """The server is done at 0.25 s, and the token would be there at 1.025 s: the client leaves at 0.5 s without it."""
    requests = [asked(0.0, output=2, timeout_s=0.5), asked(0.0, output=2), asked(0.0, output=2)]
    found = play_both_ways(scenario({"first_token_ms": 900}, requests, workload={"max_concurrency": 1})).requests
    assert found["status"].tolist() == ["timed_out", "finished", "finished"]
    assert found["arrival_s"].tolist() == pytest.approx([0.0, 0.5, 1.525])  # its place is free when it leaves
    assert found["finish_s"][0] == 0.5
    assert found["ttft_ms"].isna().tolist() == found["first_token_delay_ms"].isna().tolist() == [True, False, False]
    assert found["e2el_ms"].isna().tolist() == [True, False, False]
    assert found["tokens_emitted"].tolist() == [2, 2, 2]
    assert found["replica"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(("delay_ms", "ttft_ms"), [(100, 225.0), (375, 500.0), (376, None), (900, None)])
@pytest.mark.parametrize("output", [1, 4, 100])
def test_a_token_counts_from_when_it_is_seen(delay_ms: float, ttft_ms: float | None, output: int) -> None:
    """Tokens are made each 125 ms, and the client waits 500 ms; what is there at that instant is there."""
    one = scenario({"first_token_ms": delay_ms}, [asked(0.0, output=output)], workload={"timeout_s": 0.5})
    found = play_both_ways(one).requests.iloc[0]
    assert found["status"] == ("finished" if ttft_ms is not None and output <= 4 else "timed_out")
    assert (None if np.isnan(found["ttft_ms"]) else found["ttft_ms"]) == pytest.approx(ttft_ms)


@given(
    gaps=st.lists(st.integers(0, 60), min_size=1, max_size=10),
    outputs=st.lists(st.integers(1, 6), min_size=10, max_size=10),
    timeouts=st.lists(st.integers(1, 150), min_size=10, max_size=10),
    times=st.tuples(st.integers(0, 20), st.integers(0, 80), st.integers(0, 8)),
    limit=st.sampled_from([None, 1, 2]),
    horizon=st.sampled_from([None, 100, 300]),
)
@examples(20, 100)
def test_clients_give_up_on_what_they_have_not_seen(
    gaps: list[int],
    outputs: list[int],
    timeouts: list[int],
    times: tuple[int, int, int],
    limit: int | None,
    horizon: int | None,
) -> None:
    """Who is done has seen the answer in time, and who gives up has not, with ties in time."""
    tick = 2.0**-6
    each, delay, per_token = (1e3 * tick * n for n in times)
    front_end = {"request_ms": each, "first_token_ms": delay, "first_token_us": 1e3 * per_token / 16}
    sent = zip(np.cumsum(gaps) * tick, outputs, timeouts, strict=False)
    requests = [asked(float(at_s), output=o, timeout_s=t * tick) for at_s, o, t in sent]
    ends = {} if horizon is None else {"horizon_s": horizon * tick}
    found = play_both_ways(scenario(front_end, requests, workload={"max_concurrency": limit}, **ends)).requests
    for i, row in found.iterrows():
        gives_up_s = requests[int(row["request_id"])]["arrival_s"] + requests[int(row["request_id"])]["timeout_s"]
        seen_s = row["first_token_s"] + 1e-3 * (delay + per_token)
        assert np.isnan(row["ttft_ms"]) == (not seen_s <= gives_up_s), i
        if row["status"] == "finished":
            assert max(seen_s, row["finish_s"]) <= gives_up_s
        elif row["status"] == "timed_out":
            assert gives_up_s <= row["finish_s"] < gives_up_s + STEP_S
            assert row["tokens_emitted"] < row["output_tokens"] or row["finish_s"] == gives_up_s < seen_s


def test_what_takes_no_time_changes_no_byte(play: Callable[..., Result]) -> None:
    """A front end of zeros is none."""
    requests = [asked(0.01 * i, 10 + i, 1 + i % 5) for i in range(20)]
    without, zeros = (play(scenario(one, requests)) for one in (None, {"network_ms": 0}))
    assert without.requests.equals(zeros.requests)
    assert "front_end_ms" not in without.requests


def test_null_in_a_policy_is_none() -> None:
    """A policy can leave out the front end of the scenario."""
    one = scenario({"request_ms": 5}, [asked(0.0)])
    one["policies"] |= {"bare": {"scheduler": "chunked", "front_end": None}}
    found = run(one).requests.set_index("policy")["front_end_ms"]
    assert found.to_dict() == pytest.approx({"p": 5.0, "bare": 0.0})


def test_what_a_policy_without_front_end_does_not_hold_back_is_zero() -> None:
    """A delay that is not known of one policy is not 0 because another policy has none."""
    requests = [asked(0.0, output=1), asked(0.0, output=1, timeout_s=0.5)]
    one = scenario({"first_token_ms": 900}, requests)
    one["policies"] |= {"bare": {"scheduler": "chunked", "front_end": None}}
    delays_ms = run(one).requests["first_token_delay_ms"].tolist()
    assert delays_ms == pytest.approx([900.0, np.nan, 0.0, 0.0], nan_ok=True)


def poisson(front_end: dict[str, float] | None, rate_rps: float, n: int = 4000) -> dict[str, Any]:
    """Return Poisson arrivals before a server whose seats and steps are never the limit."""
    return {
        "name": "station",
        "step_time": {"kind": "constant", "seconds": 0.005},
        "kv_cache": {"blocks": 100_000},
        "front_end": front_end,
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": rate_rps},
            "prompt_tokens": {"distribution": "uniform", "low": 1, "high": 199},
            "output_tokens": {"distribution": "geometric", "mean": 10},
            "num_requests": n,
        },
        "policies": {"p": {"scheduler": "continuous", "max_num_seqs": 200}},
        "replications": 8,
    }


def signs(front_end: dict[str, float] | None, rate_rps: float, seed: int, **more: Any) -> Signs:
    """Return what a run of a server with four seats, whose requests slow each other, shows of itself."""
    one = poisson(front_end, rate_rps, 150) | {"seed": seed, "replications": 1}
    one |= more | {"workload": one["workload"] | more.pop("workload", {})}
    one["step_time"] = {"kind": "linear", "overhead_s": 0.01, "per_decode_s": 0.005}
    one["policies"] = {"p": {"scheduler": "continuous", "max_num_seqs": 4}}
    return replicate(from_mapping(one).resolve(), 0, check=True).runs[0].signs


def test_a_long_way_to_the_server_is_no_wait() -> None:
    """A second of network makes a run later and no request wait; 10 ms of work, at 6 requests a second, hardly do."""
    for seed in range(8):
        bare, behind = (signs(one, 6.0, seed) for one in (None, {"network_ms": 1000}))
        assert behind.overloaded(Law()) is bare.overloaded(Law()) is not True
    assert all(signs({"prompt_us": 100}, 6.0, seed).overloaded(Law()) is False for seed in range(8))


def test_who_gives_up_on_the_way_is_no_load() -> None:
    """All clients wait 0.5 s, and the way is 1 s: no request came to the server, so that nothing is known of it."""
    assert signs({"network_ms": 1000}, 6.0, 0, workload={"timeout_s": 0.5}).overloaded(Law()) is None


def test_the_wait_for_a_front_end_shows_its_overload() -> None:
    """At 1.5 times what the front end can do, the run itself says so."""
    assert signs({"request_ms": 100}, 15.0, 0).overloaded(Law()) is True


@pytest.mark.parametrize("rate_rps", [6.0, 60.0])
def test_work_that_is_done_for_clients_who_left_is_done(rate_rps: float) -> None:
    """No client sees its answer within 900 s, and the server makes all of them as for patient clients."""
    late = {"first_token_ms": 1e6}
    bare, behind = signs(None, rate_rps, 0), signs(late, rate_rps, 0, workload={"timeout_s": 900})
    assert behind.overloaded(Law()) is bare.overloaded(Law()) is (rate_rps > 20)
    assert behind.bounded is bare.bounded is False


@pytest.mark.parametrize("rate_rps", [10, 14, 20])
def test_a_microsecond_in_front_leaves_the_verdict_on_a_full_queue(rate_rps: float) -> None:
    """The run is the same one, later by a microsecond: the same could have been done, whatever the law says."""
    for seed in range(4):
        bare, behind = (signs(one, rate_rps, seed, max_queued_requests=0) for one in (None, {"network_ms": 0.001}))
        assert behind.overloaded(Law()) is bare.overloaded(Law())
        assert behind.bounded is bare.bounded is True


def test_the_wait_is_that_of_pollaczek_and_khinchine() -> None:
    """M/G/1 at a load of 0.7 with uniform service times: simulated, and in the estimate of TTFT."""
    low_s, high_s, rate_rps = 1e-4, 199e-4, 70.0
    mean_s, square_s = (low_s + high_s) / 2, (200 * 399 / 6) * 1e-8
    wait_s = rate_rps * square_s / (2 * (1 - rate_rps * mean_s))
    one = poisson({"prompt_us": 100}, rate_rps)
    means_ms = run(one).requests.groupby("replication")["front_end_ms"].mean()
    error_ms = float(means_ms.std()) / len(means_ms) ** 0.5
    assert abs(float(means_ms.mean()) - 1e3 * (wait_s + mean_s)) < 4 * error_ms
    assert error_ms < 1  # 5 % of the mean
    assert policy_loads(from_mapping(one).resolve())["p"].load == pytest.approx(rate_rps * mean_s, rel=1e-9)


def test_estimates_have_the_wait_for_the_front_end() -> None:
    """M/D/1 at a load of 0.7 is added to the TTFT of the server behind it."""
    mean_s, rate_rps = 0.01, 70.0
    wait_s = rate_rps * mean_s**2 / (2 * (1 - rate_rps * mean_s))
    both = [poisson(front_end, rate_rps) for front_end in ({"prompt_us": 100}, None)]
    for one in both:
        one["workload"] |= {"prompt_tokens": {"distribution": "constant", "value": 100}}
    behind, bare = (policy_loads(from_mapping(one).resolve())["p"] for one in both)
    assert behind.load == pytest.approx(rate_rps * mean_s, rel=1e-9)
    assert behind.capacity is not None
    assert behind.capacity.binding == "front end"
    assert behind.estimate is not None
    assert bare.estimate is not None
    assert behind.estimate.ttft_s - bare.estimate.ttft_s == pytest.approx(wait_s + mean_s, rel=1e-3)


def test_a_front_end_that_cannot_keep_up_is_overloaded() -> None:
    """The GPU is nearly idle, and latencies grow all the same: the run says so, and what limits it."""
    found = row(run(poisson({"prompt_us": 100}, 150.0, 2000) | {"replications": 1}))
    assert found["overloaded"] is True
    assert found["binding"] == "front end"
    assert found["load"] == pytest.approx(1.5)


@pytest.mark.parametrize("key", ["network_ms", "request_ms", "prompt_us", "output_us", "first_token_ms"])
def test_times_are_not_negative(key: str) -> None:
    """The error names the key."""
    with pytest.raises(InputError, match=f"front_end.{key} = -1.0: must be >= 0"):
        run(scenario({key: -1.0}, [asked(0.0)]))
