"""Recordings of sglang-router and vllm-router: a changed decision, size or count is found; all rules are reached."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simqueue.conformance import first_routing_difference
from simqueue.conformance.http_routers import Walk
from simqueue.datafiles.text import read_json
from simqueue.errors import InputError

FOLDER = Path(__file__).parents[1] / "data" / "routers"
FILES = sorted(FOLDER.glob("*-router-*/*.json.gz"))


def recording(name: str) -> dict[str, Any]:
    """Return a recording by its name."""
    return read_json(FOLDER / f"{name}.json.gz")


CERTAIN = [
    "sglang-router-0.3.2/ca_fuzz_0",
    "sglang-router-0.3.2/ca_scale",
    "sglang-router-0.3.2/rr_scale",
    "vllm-router-0.1.17/ca_fuzz_2",
    "vllm-router-0.1.17/ch_unhealthy",
    "vllm-router-0.1.17/sll_sessions",
    "vllm-router-0.1.17/kv_load_0",
    "vllm-router-0.1.12/ch_keys",
]


@pytest.mark.parametrize("name", CERTAIN)
def test_any_other_worker_is_a_difference(name: str) -> None:
    """Where the rule has one answer, each decision that is changed by itself is found, in its step."""
    recorded = recording(name)
    sends = [number for number, step in enumerate(recorded["steps"]) if step["op"] == "send"]
    for number in sends[:: max(1, len(sends) // 25)]:
        altered = copy.deepcopy(recorded)
        step = altered["steps"][number]
        step["worker"] = next(worker for worker in range(len(recorded["workers"])) if worker != step["worker"])
        assert (first_routing_difference(altered) or "").startswith(f"step {number} (send {step['id']}): worker")


def test_any_other_worker_of_a_pool_is_a_difference() -> None:
    """Both decisions are compared; the line names the pool."""
    recorded = recording("vllm-router-0.1.17/pd_ca")
    for pool, workers in (("prefill", (0, 1)), ("decode", (3, 4))):
        altered = copy.deepcopy(recorded)
        altered["steps"][0][pool] = workers[altered["steps"][0][pool] == workers[0]]
        assert (first_routing_difference(altered) or "").startswith(f"step 0 (send 0): {pool}: worker")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("version", ["0.2.3", "0.2.4", "0.3.2"])
def test_any_other_size_is_a_difference(version: str, when: str) -> None:
    """A character more or less at an eviction is found, whatever the order of uses at the same time."""
    recorded = recording(f"sglang-router-{version}/ca_evict")
    number = next(number for number, step in enumerate(recorded["steps"]) if step["op"] == "evict")
    recorded["steps"][number][when][0] += 1
    assert f"step {number} (evict): characters {when}" in (first_routing_difference(recorded) or "")


def test_counts_that_are_too_far_off_are_a_difference() -> None:
    """Twenty choices in a hundred and fifty that go elsewhere are found."""
    recorded = recording("vllm-router-0.1.17/p2c_stat")
    step = next(step for step in recorded["steps"] if step["op"] == "burst")
    largest, smallest = step["counts"].index(max(step["counts"])), step["counts"].index(min(step["counts"]))
    step["counts"][largest] += 20
    step["counts"][smallest] -= 20
    assert "recorded" in (first_routing_difference(recorded) or "")


def test_a_burst_with_one_answer_is_counted_exactly() -> None:
    """Seven turns of round robin over three workers, after one: 2, 3, 2; the counter goes on."""
    workers = [f"http://w{i}" for i in range(3)]
    send = {"op": "send", "prompt": [[1, 0, 2]], "loads": [0, 0, 0], "hold": False}
    burst = {"op": "burst", "n": 7, "prompt": [[1, 0, 2]], "loads": [0, 0, 0], "counts": [2, 3, 2]}
    steps = [{**send, "id": "a", "worker": 0}, burst, {**send, "id": "b", "worker": 2}]
    recorded = {"router": "vllm-router", "version": "0.1.12", "case": "b", "policy": "round_robin", "config": {}}
    assert first_routing_difference({**recorded, "workers": workers, "steps": steps}) is None
    burst["counts"] = [3, 2, 2]
    found = first_routing_difference({**recorded, "workers": workers, "steps": steps})
    assert found == "step 1 (burst): counts [2, 3, 2], recorded [3, 2, 2]"


def test_counts_of_pools_are_compared_each() -> None:
    """Of a burst before two pools, round robin in each: 5 requests after one are 2 and 3, and 2, 2 and 1."""
    recorded: dict[str, Any] = {"router": "vllm-router", "version": "0.1.17", "case": "b", "policy": "round_robin"}
    recorded |= {"config": {}, "workers": [f"http://w{i}" for i in range(5)]}
    recorded["roles"] = ["prefill", "decode", "decode", "prefill", "decode"]
    prompt: dict[str, Any] = {"prompt": [[1, 0, 2]], "loads": [0] * 5}
    send = {"op": "send", "id": "a", **prompt, "hold": False, "prefill": 0, "decode": 1}
    burst = {"op": "burst", "n": 5, **prompt, "counts": [2, 1, 2, 3, 2]}
    assert first_routing_difference({**recorded, "steps": [send, burst]}) is None
    burst["counts"] = [2, 2, 1, 3, 2]
    found = first_routing_difference({**recorded, "steps": [send, burst]})
    assert found == "step 1 (burst): decode: counts [0, 1, 2, 0, 2], recorded [0, 2, 1, 0, 2]"


def test_keys_are_in_flight_until_their_own_request_ends() -> None:
    """With min_group, a key of a held request counts until that request ends, whatever was sent since."""
    recorded: dict[str, Any] = {"router": "sglang-router", "version": "0.3.2", "case": "m", "policy": "manual"}
    recorded |= {"config": {"assignment_mode": "min_group"}, "workers": ["http://w0", "http://w1"]}
    sends = [
        {"op": "send", "id": key, "prompt": [[1, 0, 2]], "headers": {"x-smg-routing-key": key}, "loads": [0, 0]}
        | {"hold": True, "worker": worker}
        for key, worker in (("a", 0), ("b", 1), ("c", 0), ("d", 1), ("e", 1), ("f", 1))
    ]
    ends = [{"op": "finish", "id": key} for key in ("b", "d")]
    steps = [*sends[:4], *ends, *sends[4:]]
    assert first_routing_difference({**recorded, "steps": steps}) is None
    steps[-1] = {**steps[-1], "worker": 0}
    assert first_routing_difference({**recorded, "steps": steps}) == "step 7 (send f): worker 1 (new key), recorded 0"


def test_the_first_header_that_is_not_empty_names_the_session() -> None:
    """Requests that are the same by it stay together, whatever other headers they have."""
    recorded: dict[str, Any] = {
        "router": "vllm-router",
        "version": "0.1.17",
        "case": "s",
        "policy": "sticky_least_loaded",
    }
    recorded |= {"config": {}, "workers": ["http://w0", "http://w1"]}
    headers = [{"x-user-id": "u"}, {"x-session-id": "", "x-user-id": "u", "x-trace-id": "t"}, {"x-trace-id": "u"}]
    send: dict[str, Any] = {"op": "send", "prompt": [[1, 0, 2]], "loads": [0, 0], "hold": False}
    for worker in (0, 1):
        steps = [{**send, "id": str(i), "headers": one, "worker": worker} for i, one in enumerate(headers)]
        found = first_routing_difference({**recorded, "steps": steps})
        if found is None:
            break
    assert found is None
    other = {**send, "id": "x", "headers": {"x-request-id": "x"}, "worker": worker}
    assert first_routing_difference({**recorded, "steps": [*steps, other]}) == (
        f"step 3 (send x): worker {1 - worker} (fewest sessions), recorded {worker}"
    )


def test_without_a_healthy_worker_there_is_no_decision() -> None:
    """A request that no worker got agrees only if none is healthy; it leaves nothing behind."""
    down, up = ({"op": "health", "worker": 0, "ok": ok} for ok in (False, True))
    send = {"op": "send", "prompt": [[1, 0, 2]], "loads": [0], "hold": False}
    none = {**send, "id": "a", "worker": None}
    recorded = {"router": "sglang-router", "version": "0.3.2", "case": "d", "policy": "cache_aware", "config": {}}
    recorded["workers"] = ["http://w0"]
    assert first_routing_difference({**recorded, "steps": [down, none, up, {**send, "id": "b", "worker": 0}]}) is None
    found = first_routing_difference({**recorded, "steps": [down, up, none]})
    assert found == "step 2 (send a): worker 0 (miss), recorded none"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"version": "0.3.3"}, "version"),
        ({"policy": "cache_awear"}, "policy"),
        ({"config": {"cache_treshold": 0.3}}, "cache_threshold"),
        ({"version": "0.2.4", "policy": "bucket"}, "0.3.2"),
    ],
)
def test_keys_that_are_not_known_are_told(change: dict[str, Any], text: str) -> None:
    """A version, a policy or a key that is not known cannot be compared: one line says so."""
    with pytest.raises(InputError, match=text) as caught:
        first_routing_difference({**recording("sglang-router-0.3.2/ca_evict"), **change})
    assert "\n" not in str(caught.value)


def test_recordings_reach_every_rule() -> None:
    """Of each version with a tree: hits, misses and imbalance; and keys, sessions, ranges, pools, joins and leaves."""
    reasons: dict[str, Counter[str]] = {}
    steps: Counter[str] = Counter()
    for file in FILES:
        recorded = read_json(file)
        walk = Walk(recorded)
        found = reasons.setdefault(f"{recorded['policy']} {file.parent.name}", Counter())
        for step in recorded["steps"]:
            steps[step["op"]] += 1
            if "roles" not in recorded and step["op"] == "send":
                found[walk.rank(walk.pools[0], walk.ask(step)).reason] += 1
            list(walk.step(step))
    for folder in dict.fromkeys(file.parent.name for file in FILES):
        assert {"hit", "miss", "imbalanced"} <= reasons[f"cache_aware {folder}"].keys()
    assert {"key", "new key"} <= reasons["manual sglang-router-0.3.2"].keys()
    assert {"session", "fewest sessions"} <= reasons["sticky_least_loaded vllm-router-0.1.17"].keys()
    assert steps.keys() == {"send", "finish", "health", "add", "remove", "evict", "finish_session", "sleep", "burst"}
