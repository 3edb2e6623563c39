"""Whether anything of a workload is random: every key that draws says so, and what says no gives equal requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.request import Request
from simqueue.workload.generate import generate
from simqueue.workload.randomness import is_random
from simqueue.workload.settings import WorkloadSettings

CONSTANT = {"distribution": "constant", "value": 20}
EVEN = {"process": "constant", "rate_rps": 5.0}
SPREAD = {"distribution": "uniform", "low": 1, "high": 9}
TRACE = {"format": "csv", "path": "trace.csv"}
USERS = {"count": 2}
SESSIONS = {"arrivals": EVEN, "num_sessions": 3, "turns": {"distribution": "constant", "value": 2}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a small trace, two of whose rows have one time."""
    rows = ["0,10,5", "1,20,5", "1,30,5", "2,40,5", "3,10,5", "4,10,5", "5,10,5", "6,10,5"]
    (tmp_path / "trace.csv").write_text("\n".join(["arrival_s,prompt_tokens,output_tokens", *rows]) + "\n")
    (tmp_path / "one.csv").write_text("tokens\n7\n7\n")
    (tmp_path / "two.csv").write_text("tokens\n7\n8\n")
    return tmp_path


def open_loop(**keys: Any) -> dict[str, Any]:
    """Return even arrivals of equal lengths, with some keys changed."""
    return {"arrivals": EVEN, "num_requests": 40, "prompt_tokens": CONSTANT, "output_tokens": CONSTANT, **keys}


def closed_loop(source: str, **keys: Any) -> dict[str, Any]:
    """Return users or sessions with equal lengths, with some keys of the source changed."""
    base, end = (USERS, {"num_requests": 8}) if source == "users" else (SESSIONS, {})
    return {source: {**base, **keys}, "prompt_tokens": CONSTANT, "output_tokens": CONSTANT, **end}


def made(workload: dict[str, Any], folder: Path, replication: int) -> list[Any]:
    """Return all that a replication hands to a simulation."""
    settings = WorkloadSettings.model_validate(workload)
    traffic = generate(settings, seed=3, replication=replication, base_dir=folder)
    found: list[Any] = list(traffic.requests)
    for group in traffic.session_groups:
        for session in group.sessions:
            turns = iter(session.turns)
            found.append((session.start_s, [next(turns, None) for _ in range(6)]))
    waits = [[rule.retry.wait_s(f"{n}", 1) for n in range(5)] for rule in traffic.rules.values() if rule.retry]
    return [*found, waits]


RANDOM: dict[str, dict[str, Any]] = {
    "Poisson arrivals": open_loop(arrivals={"process": "poisson", "rate_rps": 5.0}),
    "gamma arrivals": open_loop(arrivals={"process": "gamma", "rate_rps": 5.0, "cv": 0.1}),
    "Weibull arrivals": open_loop(arrivals={"process": "weibull", "rate_rps": 5.0, "cv": 2.0}),
    "a ramp of Poisson gaps": open_loop(arrivals={"process": "ramp", "from_rps": 1.0, "to_rps": 9.0}),
    "a Poisson process with a rate for each interval": open_loop(
        arrivals={"process": "piecewise", "pieces": [{"for_s": 99.0, "rate_rps": 5.0}]}
    ),
    "groups at random times": open_loop(arrivals={"process": "batches", "rate_rps": 5.0, "batch_size": CONSTANT}),
    "prompt lengths": open_loop(prompt_tokens=SPREAD),
    "output lengths": open_loop(output_tokens=SPREAD),
    "lengths from a file": open_loop(output_tokens={"distribution": "empirical", "path": "two.csv"}),
    "a mixture of two constants": open_loop(
        output_tokens={
            "distribution": "mixture",
            "components": [{"weight": 1.0, "law": {**CONSTANT, "value": value}} for value in (5, 6)],
        }
    ),
    "classes": open_loop(classes={"gold": {"weight": 1.0}, "free": {"weight": 1.0}}),
    "one of several system prompts": open_loop(system_prompt={"tokens": 10, "variants": 3}),
    "jitter of retries": open_loop(timeout_s=1.0, retry={"limit": 2, "jitter": 0.5}),
    "a share of a trace": {"trace": {**TRACE, "thin": 0.5}},
    "rows spread over time": {"trace": {**TRACE, "spread_s": 0.5}},
    "classes of a trace": {"trace": TRACE, "classes": {"gold": {"weight": 1.0}, "free": {"weight": 1.0}}},
    "think times of users": closed_loop("users", think_s={"distribution": "exponential", "mean_s": 1.0}),
    "output lengths of users": {**closed_loop("users"), "output_tokens": SPREAD},
    "starts of sessions": closed_loop("sessions", arrivals={"process": "poisson", "rate_rps": 5.0}),
    "turns of sessions": closed_loop("sessions", turns=SPREAD),
    "think times of sessions": closed_loop(
        "sessions", think_s={"distribution": "uniform", "low_s": 1.0, "high_s": 2.0}
    ),
}

SAME: dict[str, dict[str, Any]] = {
    "even arrivals": open_loop(),
    "all at once": open_loop(arrivals={"process": "all_at_once"}),
    "evenly spaced gamma arrivals": open_loop(arrivals={"process": "gamma", "rate_rps": 5.0, "burstiness": "inf"}),
    "an even ramp": open_loop(arrivals={"process": "ramp", "from_rps": 1.0, "to_rps": 9.0, "burstiness": "inf"}),
    "a range of one value": open_loop(prompt_tokens={"distribution": "uniform", "low": 9, "high": 9}),
    "a distribution clipped to one value": open_loop(
        prompt_tokens={"distribution": "lognormal", "median": 100.0, "sigma": 1.0, "min": 50, "max": 50}
    ),
    "a geometric length of 1": open_loop(output_tokens={"distribution": "geometric", "mean": 1.0}),
    "a file of one length": open_loop(output_tokens={"distribution": "empirical", "path": "one.csv"}),
    "a mixture of equal constants": open_loop(
        output_tokens={"distribution": "mixture", "components": [{"weight": 1.0, "law": CONSTANT}] * 2}
    ),
    "one class": open_loop(classes={"gold": {"weight": 1.0}}),
    "one system prompt": open_loop(system_prompt={"tokens": 10}),
    "timeouts and retries without jitter": open_loop(timeout_s=1.0, retry={"limit": 2}),
    "jitter of no wait": open_loop(timeout_s=1.0, retry={"limit": 2, "jitter": 0.5, "backoff_s": 0.0}),
    "a concurrency limit": open_loop(max_concurrency=4),
    "a trace": {"trace": TRACE},
    "all of a trace": {"trace": {**TRACE, "thin": 1.0, "rate_scale": 2.0, "repeat": 2}},
    "a trace with a limit": {"trace": TRACE, "num_requests": 3, "max_concurrency": 2},
    "a list": {"requests": [{"arrival_s": 0.0, "prompt_tokens": 5, "output_tokens": 5}]},
    "users": closed_loop("users", think_s=2.0, ramp_up_s=1.0),
    "sessions": closed_loop("sessions", think_s=2.0),
    "think times that never come": closed_loop(
        "sessions",
        turns={"distribution": "constant", "value": 1},
        think_s={"distribution": "exponential", "mean_s": 1.0},
    ),
}


@pytest.mark.parametrize("name", RANDOM)
def test_a_key_that_draws_says_so(name: str, folder: Path) -> None:
    """Two replications of such a workload differ, and it is random."""
    workload = RANDOM[name]
    assert made(workload, folder, 0) != made(workload, folder, 1)
    assert is_random(WorkloadSettings.model_validate(workload), folder)


@pytest.mark.parametrize("name", SAME)
def test_without_a_draw_two_replications_are_equal(name: str, folder: Path) -> None:
    """Two replications of such a workload are the same requests, and it is not random."""
    workload = SAME[name]
    assert made(workload, folder, 0) == made(workload, folder, 1)
    assert not is_random(WorkloadSettings.model_validate(workload), folder)


_TOKENS = st.integers(1, 30)
_LAWS = st.one_of(
    st.builds(
        lambda low, more: {"distribution": "uniform", "low": low, "high": low + more}, _TOKENS, st.integers(0, 3)
    ),
    st.builds(lambda value: {"distribution": "constant", "value": value}, _TOKENS),
    st.builds(lambda cv: {"distribution": "gamma", "mean": 10.5, "cv": cv}, st.sampled_from([0.001, 0.1])),
    st.builds(
        lambda low, more, bounds: {"distribution": "geometric", "mean": 9.0, "min": low, "max": low + more} | bounds,
        st.integers(1, 4),
        st.integers(0, 2),
        st.sampled_from([{"bounds": "clip"}, {"bounds": "resample"}]),
    ),
)


@given(_LAWS, _LAWS)
def test_what_is_not_random_has_equal_lengths(prompt: dict[str, Any], output: dict[str, Any]) -> None:
    """Whatever the bounds, lengths of 200 requests in two replications are equal exactly if nothing is random."""
    workload = open_loop(num_requests=200, prompt_tokens=prompt, output_tokens=output)
    requests: list[Request] = [*made(workload, Path(), 0)[:-1], *made(workload, Path(), 1)[:-1]]
    lengths = {(request.prompt_tokens, request.output_tokens) for request in requests}
    assert is_random(WorkloadSettings.model_validate(workload), Path()) == (len(lengths) > 1)
