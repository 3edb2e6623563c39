"""A scenario is resolved once; the result can be varied and sent to other processes."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.execution.packed import packed, unpacked
from simqueue.experiment import build, replication
from simqueue.experiment import run as run_scenario
from simqueue.scenario import from_mapping, model, resolve
from simqueue.scenario.precision import PrecisionSettings
from simqueue.scenario.traffic import make_traffic
from simqueue.workload.arrivals.settings import AllAtOnceSettings

SCENARIO: dict[str, Any] = {
    "seed": 3,
    "horizon_s": 50.0,
    "kv_cache": {"blocks": 500},
    "step_time": {"kind": "constant", "seconds": 0.01},
    "workload": {
        "arrivals": {"process": "gamma", "rate_rps": 5.0, "burstiness": 2.0},
        "arrivals_for_s": 4.0,
        "prompt_tokens": {"distribution": "constant", "value": 10},
        "output_tokens": {"distribution": "constant", "value": 5},
    },
    "policies": {"a": {"scheduler": "chunked"}, "b": {"engine": "vllm", "version": "0.33.0"}},
}


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[Any]:
    """Replace a function by one that counts; return the list of the first arguments of its calls."""
    calls: list[Any] = []
    function = getattr(module, name)

    def counting(first: Any, *arguments: Any, **keywords: Any) -> Any:
        calls.append(first)
        return function(first, *arguments, **keywords)

    monkeypatch.setattr(module, name, counting)
    return calls


@pytest.mark.parametrize("number", [1, 3])
def test_a_run_resolves_once_and_builds_once_per_replication(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Loading, running and describing a scenario use the same resolved object; only replications build policies."""
    resolved = counted(monkeypatch, model, "resolve")
    policies = counted(monkeypatch, resolve, "_policy")
    step_times = counted(monkeypatch, resolve, "build_step_time")
    built = counted(monkeypatch, build, "build")
    run_scenario({**SCENARIO, "replications": number}, workers=1)
    assert len(resolved) == 1
    assert len(policies) == len(step_times) == 2
    assert [policy.name for policy in built] == ["a", "b"] * number


def test_later_calls_return_the_same_object_and_copies_are_resolved_again() -> None:
    """Resolving again returns the same object; a changed copy is resolved on its own."""
    scenario = from_mapping(SCENARIO)
    assert scenario.resolve() is scenario.resolve()
    assert scenario.model_copy(update={"seed": 8}).resolve().seed == 8


def test_a_varied_scenario_is_the_scenario_with_these_keys() -> None:
    """`with_` gives the scenario that the changed keys would give."""
    varied = (
        from_mapping(SCENARIO)
        .resolve()
        .with_(seed=8, replications=2, horizon_s=None, warmup_s=1.0, precision=None, rate_rps=2.0, num_requests=30)
    )
    written = {**SCENARIO, "seed": 8, "replications": 2, "horizon_s": None, "warmup_s": 1.0}
    workload = {key: value for key, value in SCENARIO["workload"].items() if key != "arrivals_for_s"}
    arrivals = {**SCENARIO["workload"]["arrivals"], "rate_rps": 2.0}
    written["workload"] = {**workload, "arrivals": arrivals, "num_requests": 30}
    expected = from_mapping(written).resolve()
    assert varied.values == expected.values
    assert varied.origins.keys() == expected.origins.keys()
    assert [request.arrival_s for request in make_traffic(varied, 1).requests] == [
        request.arrival_s for request in make_traffic(expected, 1).requests
    ]
    assert run_scenario(varied).replication_rows == run_scenario(expected).replication_rows


def test_arrivals_and_policies_can_be_varied() -> None:
    """The arrival process and the set of policies can be changed."""
    varied = (
        from_mapping(SCENARIO)
        .resolve()
        .with_(policies=["b"], arrivals=AllAtOnceSettings(process="all_at_once"), num_requests=3)
    )
    assert varied.policy_names == ("b",)
    assert list(varied.values["policies"]) == ["b"]
    assert not any(path.startswith("policies.a") for path in varied.origins)
    assert [request.arrival_s for request in make_traffic(varied).requests] == [0.0, 0.0, 0.0]


def test_what_cannot_be_varied_is_told() -> None:
    """A process without a rate, several workloads and an unknown policy are errors."""
    scenario = from_mapping(SCENARIO).resolve()
    at_once = scenario.with_(arrivals=AllAtOnceSettings(process="all_at_once"), num_requests=3)
    with pytest.raises(
        InputError, match=r"^workload\.arrivals\.process = 'all_at_once': must be a process with a rate"
    ):
        at_once.with_(rate_rps=1.0)
    with pytest.raises(InputError, match="unknown policy 'c'; known: a, b"):
        scenario.with_(policies=["c"])
    workload = SCENARIO["workload"]
    several = {key: value for key, value in SCENARIO.items() if key != "workload"} | {"workloads": {"w": workload}}
    with pytest.raises(InputError, match="only the arrivals of a single workload can vary"):
        from_mapping(several).resolve().with_(rate_rps=1.0)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"replications": 0}, "replications = 0: must be >= 1"),
        ({"replications": -2}, "replications = -2: must be >= 1"),
        ({"replications": 20_000}, "replications = 20000: must be <= 10000"),
        ({"policies": []}, "policies: must have at least 1 entry"),
        ({"policies": ["a", "b", "a"]}, "policies: must be different names; they are a, b, a"),
        ({"policies": "a"}, "policies = 'a': must be a list"),
        ({"num_requests": 0}, "num_requests = 0: must be >= 1"),
        ({"num_requests": 1.5}, "num_requests = 1.5: must be a whole number >= 1"),
        ({"seed": -1}, "seed = -1: must be >= 0"),
        ({"rate_rps": -1.0}, "rate_rps = -1.0: must be > 0"),
        ({"rate_rps": float("nan")}, "rate_rps = .nan: must be a finite number > 0"),
        ({"rate_rps": "3"}, "rate_rps = '3': must be a number > 0, written without quotes"),
        ({"arrivals": 3}, "arrivals = 3: must be a mapping"),
        ({"warmup_s": 50.0}, "warmup_s = 50.0: must be less than horizon_s, which is 50"),
        ({"warmup_s": 2.0, "horizon_s": 1.0}, "warmup_s = 2.0: must be less than horizon_s, which is 1"),
        (
            {"replications": 3, "precision": PrecisionSettings()},
            "replications = 3: must be 1 with precision, which decides the number of replications",
        ),
        ({"sede": 1}, "sede: unknown key 'sede'; did you mean 'seed'?"),
    ],
)
def test_changes_are_checked_as_keys_of_a_file_are(changes: dict[str, Any], line: str) -> None:
    """A value that a scenario file cannot have is one line of error."""
    with pytest.raises(InputError) as caught:
        from_mapping(SCENARIO).resolve().with_(**changes)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(line)


def test_changes_are_checked_with_the_values_that_stay() -> None:
    """A warm-up or precision that the scenario has already limits what can be changed."""
    late = from_mapping({**SCENARIO, "warmup_s": 5.0}).resolve()
    with pytest.raises(InputError, match=r"^warmup_s = 5\.0: must be less than horizon_s, which is 3"):
        late.with_(horizon_s=3.0)
    precise = from_mapping({**SCENARIO, "precision": {"relative": 0.5}}).resolve()
    with pytest.raises(InputError, match=r"^replications = 7: must be 1 with precision"):
        precise.with_(replications=7)
    assert precise.with_(replications=7, precision=None).replications == 7


def test_a_changed_workload_is_checked_as_a_whole() -> None:
    """An arrival process that does not end with the limits of the workload is an error."""
    with pytest.raises(InputError, match=r"^workload: process all_at_once needs num_requests$"):
        from_mapping(SCENARIO).resolve().with_(arrivals=AllAtOnceSettings(process="all_at_once"))


def test_a_resolved_scenario_crosses_processes() -> None:
    """A pickled scenario gives the same replication."""
    scenario = from_mapping(SCENARIO).resolve()
    sent = unpacked(packed(scenario))
    here, there = (replication.replicate(one, 1, check=False) for one in (scenario, sent))
    for run, again in zip(here.runs, there.runs, strict=True):
        assert run.recording.requests["finish_s"].tolist() == again.recording.requests["finish_s"].tolist()
