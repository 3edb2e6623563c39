"""Which values of which runs are compared with theory."""

from __future__ import annotations

from typing import Any

import pytest

import simqueue as sq
from simqueue.experiment import verification
from simqueue.experiment.matching import predict
from simqueue.experiment.verification import NO_THEORY, verify
from simqueue.scenario import from_mapping

CLASSES = {"a": {"weight": 1}, "b": {"weight": 1}}


def scenario(**more: Any) -> dict[str, Any]:
    """Return M/D/1 at half load with a few requests."""
    return {
        "step_time": {"kind": "constant", "seconds": 0.1},
        "kv_cache": {"blocks": 100_000},
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 5.0},
            "prompt_tokens": {"distribution": "constant", "value": 10},
            "output_tokens": {"distribution": "constant", "value": 1},
            "num_requests": 120,
            **more,
        },
        "policies": {"one": {"scheduler": "continuous", "max_num_seqs": 1}},
        "replications": 5,
    }


def test_classes_of_requests_are_no_replications() -> None:
    """Two classes change nothing in a queue without an order: five runs are five values, and the verdicts are equal."""
    plain, classed = (list(verify(from_mapping(scenario(**more)))) for more in ({}, {"classes": CLASSES}))
    assert [one.simulated and one.simulated.n for one in classed] == [5] * 3
    assert classed == plain


def test_the_values_of_a_result_are_one_per_replication() -> None:
    """The values of a policy are means over all of its requests, also where classes have rows of their own."""
    result = sq.run(scenario(classes=CLASSES), workers=1)
    requests = result.requests.groupby("replication")
    assert result.values("one", "mean_ttft_ms") == pytest.approx(requests["ttft_ms"].mean().tolist())


@pytest.mark.parametrize("where", ["workload", "class"])
def test_requests_that_time_out_have_no_exact_theory(where: str) -> None:
    """A timeout of a single class is a timeout, too; classes without one change no theory."""
    timed = {"timeout_s": 0.5}
    late = timed if where == "workload" else {"classes": CLASSES | {"b": {"weight": 1, **timed}}}
    resolved = from_mapping(scenario(**late)).resolve()
    found = predict(resolved, resolved.policies[0])
    assert not found.values
    assert "timeout_s" in found.why_not
    usual = from_mapping(scenario(classes=CLASSES)).resolve()
    assert predict(usual, usual.policies[0]).model == "M/D/1"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("front_end", {"network_ms": 100}),
        ("front_end", {"output_us": 1}),
        ("max_queued_requests", 1000),
        ("max_model_len", 10),
    ],
)
def test_what_the_theory_does_not_know_is_named(key: str, value: Any) -> None:
    """It changes who is served, or when: there is nothing to compare with, and the reason names the key."""
    (found,) = verify(from_mapping(scenario() | {key: value}))
    assert found.verdict == NO_THEORY
    resolved = from_mapping(scenario() | {key: value}).resolve()
    assert key in predict(resolved, resolved.policies[0]).why_not


def test_a_front_end_that_takes_no_time_changes_no_theory() -> None:
    """Also one that the policy leaves out; and max_model_len, if no request is longer (10 + 1 tokens)."""
    for made in (
        scenario() | {"front_end": {"network_ms": 0}},
        scenario() | {"max_model_len": 11},
        scenario()
        | {"front_end": {"network_ms": 9}, "policies": {"one": scenario()["policies"]["one"] | {"front_end": None}}},
    ):
        resolved = from_mapping(made).resolve()
        assert predict(resolved, resolved.policies[0]).model == "M/D/1"


def test_nothing_runs_where_there_is_no_theory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if other scenarios have rows that are looked at together."""
    monkeypatch.setattr(verification, "run", lambda *_, **__: pytest.fail("it ran"))
    (found,) = verify(from_mapping(scenario(timeout_s=0.5)), rows=3)
    assert found.verdict == NO_THEORY
