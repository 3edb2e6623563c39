"""The capacity under limits on latency: where it is known without a simulation, and where there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simqueue as sq
from simqueue.decisions.answers import Answer, Answers
from simqueue.execution import ThisProcess
from simqueue.theory.constant_service import constant_service

SERVICE_S = 0.1
ONE_SEAT: dict[str, Any] = {
    "name": "one-seat",
    "step_time": {"kind": "constant", "seconds": SERVICE_S},
    "kv_cache": {"blocks": 1000},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 4},
        "num_requests": 100,
        "prompt_tokens": {"distribution": "constant", "value": 10},
        "output_tokens": {"distribution": "constant", "value": 1},
    },
    "policies": {"one": {"scheduler": "continuous", "max_num_seqs": 1}},
}
SEATS: dict[str, Any] = {
    **ONE_SEAT,
    "workload": {**ONE_SEAT["workload"], "output_tokens": {"distribution": "geometric", "mean": 5}},
    "policies": {
        "four": {"scheduler": "continuous", "max_num_seqs": 4},
        "eight": {"scheduler": "continuous", "max_num_seqs": 8},
    },
}
"""A seat serves 2 requests/s, as a request takes 5 steps of 100 ms on average."""
TRACE: dict[str, Any] = {
    **ONE_SEAT,
    "workload": {
        "trace": None,
        "arrivals": {"process": "constant", "rate_rps": 4},
        **{key: ONE_SEAT["workload"][key] for key in ("num_requests", "prompt_tokens", "output_tokens")},
    },
}


def only(found: Answers) -> Answer:
    """Return the answer for the only policy."""
    (one,) = found.each
    return one


@pytest.mark.parametrize("seed", [1, 2])
def test_the_interval_has_the_exact_rate(seed: int) -> None:
    """Three quarters of the requests of M/D/1 wait less than 150 ms up to a rate that theory knows."""
    slo = "p75_ttft_ms<=250"
    found = only(sq.capacity(ONE_SEAT, slo=[slo], precision=0.3, requests=250, seed=seed, workers=1))
    assert found.capacity_rps is not None
    assert found.low_rps is not None
    assert found.high_rps is not None
    # no wait of 150 ms at the low end for three quarters; some more at the high end: times in units of a service
    assert constant_service(found.low_rps, SERVICE_S).wait_quantile(0.75) < 1.5
    assert constant_service(found.high_rps, SERVICE_S).wait_quantile(0.75) > 1.5
    assert found.low_rps < found.capacity_rps < found.high_rps
    assert max(found.high_rps - found.capacity_rps, found.capacity_rps - found.low_rps) <= 0.3 * found.capacity_rps
    assert (found.binding, found.stopped) == (slo, "precision")
    assert found.attained["p75_ttft_ms"] == pytest.approx(250, rel=0.05)
    assert found.load == pytest.approx(found.capacity_rps * SERVICE_S)


def test_without_a_limit_that_binds_it_is_the_stable_rate() -> None:
    """A time per token never gets longer than a step; so seats over the time of a request limit, side by side."""
    found = sq.capacity(SEATS, slo=["mean_tpot_ms<=150"], precision=0.5, requests=100, workers=1)
    for one, seats in zip(found.each, (4, 8), strict=True):
        assert one.capacity_rps == pytest.approx(2 * seats, rel=0.03)
        assert one.low_rps is not None
        assert one.high_rps is not None
        assert one.low_rps <= 2 * seats <= one.high_rps
        assert one.binding == "stable rate (slots)"
    assert found.table["policy"].tolist() == ["four", "eight"]


def test_no_rate_meets_what_one_request_alone_does_not() -> None:
    """A request takes 100 ms by itself."""
    found = only(sq.capacity(ONE_SEAT, slo=["p90_ttft_ms<=90"], requests=150, workers=1))
    assert (found.capacity_rps, found.low_rps) == (None, None)
    assert found.why_not == "no rate meets p90_ttft_ms<=90: it is 100, even with one request at a time"


def test_without_randomness_it_is_a_bracket() -> None:
    """Evenly spaced requests never wait up to 10 requests/s, and wait for ever above: the steady state ends there."""
    found = only(sq.capacity(TRACE, slo=["p90_ttft_ms<=101"], precision=0.05, requests=200, workers=1))
    assert found.capacity_rps == pytest.approx(10, rel=0.05)
    assert found.high_rps is not None
    assert found.high_rps >= 9.7


def test_the_budget_ends_a_search() -> None:
    """It says so, and keeps to it."""
    found = only(sq.capacity(ONE_SEAT, slo=["p75_ttft_ms<=250"], precision=1e-3, requests=200, max_runs=40, workers=1))
    assert found.runs <= 40
    assert found.stopped == "budget of 40 runs"


def test_one_budget_for_all_that_is_run() -> None:
    """The searches for the error of the model share it, and the answer says that it ended them."""
    keys = {
        **ONE_SEAT,
        "model": "llama-3.1-8b",
        "gpu": "h100-sxm",
        "step_time": {"kind": "roofline", "preset": "vllm-h100"},
        "kv_cache": {},
    }
    asked: dict[str, Any] = {"slo": ["mean_ttft_ms<=40"], "precision": 0.5, "requests": 100, "workers": 1}
    found = only(sq.capacity(keys, **asked, max_runs=40, with_model_error=True))
    assert found.runs <= 40
    assert found.stopped == "budget of 40 runs"


class NotWorthIt(ThisProcess):
    """An executor that would not be faster, and is not to be used."""

    def unordered(self, function: object, tasks: object) -> Any:
        """Fail."""
        pytest.fail("processes were started for short work")


def test_short_searches_start_no_processes() -> None:
    """The executor is asked whether it pays."""
    asked: dict[str, Any] = {"slo": ["mean_ttft_ms<=200"], "precision": 0.9, "requests": 100}
    assert only(sq.capacity(ONE_SEAT, **asked, workers=NotWorthIt())).capacity_rps is not None


def test_workers_do_not_change_the_answer() -> None:
    """The same numbers, by this process and by two."""
    asked: dict[str, Any] = {"slo": ["mean_ttft_ms<=200"], "precision": 0.9, "requests": 100}
    found = [json.dumps(sq.capacity(ONE_SEAT, **asked, workers=workers).plain()) for workers in (1, 2)]
    assert found[0] == found[1]
    plain = json.loads(found[0])
    assert plain["conditions"] == ["mean_ttft_ms<=200", "lost_share<=0.01"]
    assert plain["policies"][0]["capacity_low_rps"] < plain["policies"][0]["capacity_rps"] < 10


def test_prices_and_model_errors() -> None:
    """Per GPU and per dollar; without a preset the interval has no model error, and the reason is given."""
    keys = {**ONE_SEAT, "gpu": "h100-sxm", "tensor_parallel": 2, "usd_per_gpu_hour": 3.0, "model": "llama-3.1-8b"}
    asked: dict[str, Any] = {"slo": ["mean_ttft_ms<=200"], "precision": 0.9, "requests": 100, "workers": 1}
    found = only(sq.capacity(keys, **asked, with_model_error=True))
    assert found.capacity_rps is not None
    assert found.per_gpu_rps == pytest.approx(found.capacity_rps / 2)
    assert found.requests_per_usd == pytest.approx(3600 * found.capacity_rps / 6)
    assert found.model is not None
    assert found.model.share is None
    assert found.model.reason.startswith("its step times are not those of a preset")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"slo": ["request_throughput>=1"]}, "a higher rate makes it easier"),
        ({"slo": ["mean_ttft_ms>=1"]}, "a higher rate makes it easier"),
        ({"slo": ["mean_ttft_ms<=1"], "precision": 0}, "precision = 0: must be > 0 and < 1"),
        ({"slo": ["mean_ttft_ms<=1"], "max_runs": 1}, "max_runs = 1: must be a whole number >= 10"),
        ({"slo": ["mean_ttft_ms<=1"], "budget_s": 0}, "budget_s = 0: must be > 0"),
        ({"slo": ["p99_ttft_ms<=1"], "requests": 124}, "requests = 124: p99_ttft_ms needs at least 125"),
        (
            {"slo": ["p99.9_ttft_ms<=100"], "requests": 200},
            "requests = 200: p99.9_ttft_ms needs at least 1250, warm-up included",
        ),
        ({"slo": ["mean_tpot_ms<=100"]}, "mean_tpot_ms is undefined"),
    ],
)
def test_what_cannot_be_asked(asked: dict[str, Any], said: str) -> None:
    """Each is one line."""
    with pytest.raises(sq.InputError) as caught:
        sq.capacity(ONE_SEAT, **asked, workers=1)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_command(command: Callable[..., Any], scenario_file: Callable[..., Path], tmp_path: Path) -> None:
    """The table has the answer and what limits it; the figure is written; without --slo nothing is simulated."""
    file, picture = scenario_file(ONE_SEAT), tmp_path / "knee.png"
    asked = ["--slo", "mean_ttft_ms<=200", "--precision", "0.9", "--requests", "100", "--workers", "1"]
    found = command("capacity", file, *asked, "--figure", picture)
    assert (found.code, found.err) == (0, "")
    assert "mean_ttft_ms<=200" in found.out
    assert "at least (req/s)" in found.out
    assert picture.stat().st_size > 10_000
    law = json.loads(command("capacity", file, "--json").out)
    assert law["one"]["capacity_rps"] == pytest.approx(10)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--precision", "0.1"], "--precision: needs --slo"),
        (["--slo", "mean_ttft_ms<=200", "--check"], "--check: cannot be combined with --slo"),
        (["--slo", "mean_ttft_ms<=200", "--figure", "knee.pdf"], "knee.pdf must end in .png or .svg"),
    ],
)
def test_options_that_do_not_go_together(
    command: Callable[..., Any], scenario_file: Callable[..., Path], options: list[str], said: str
) -> None:
    """Options of the search without --slo, and options of the law with it, are errors."""
    found = command("capacity", scenario_file(ONE_SEAT), *options)
    assert found.code == 2
    assert said in found.err
