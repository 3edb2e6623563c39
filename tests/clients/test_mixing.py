"""Promises of several workloads in one scenario, and of classes inside one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.workload import WorkloadSettings
from simqueue.workload.generate import generate, generate_all

from .conftest import MANY_SEATS, Play, constant

LENGTHS = {"prompt_tokens": constant(16), "output_tokens": constant(10)}
CHAT = {"arrivals": {"process": "poisson", "rate_rps": 5.0}, "num_requests": 300, **LENGTHS}
BATCH = {"arrivals": {"process": "all_at_once", "at_s": 3.0}, "num_requests": 80, **LENGTHS}


def row(result: Any, name: str) -> dict[str, Any]:
    """Return the summary row of a class."""
    return next(found for found in result.summary_rows if found["request_class"] == name)


def test_each_workload_has_its_own_row(play: Play) -> None:
    """Chat and batch together: every request is there once, under its workload's name, and the rows add up."""
    result = play({}, workloads={"chat": CHAT, "batch": BATCH})
    assert {found["request_class"] for found in result.summary_rows} == {"all", "chat", "batch"}
    assert (row(result, "chat")["completed"], row(result, "batch")["completed"]) == (300, 80)
    assert row(result, "all")["completed"] == 380
    ids = result.requests["request_id"]
    assert ids.is_unique
    assert set(ids.str.partition("/")[0]) == {"chat", "batch"}


def test_a_workload_is_the_same_alone_and_in_company() -> None:
    """Adding, removing or reordering workloads changes no arrival and no length of the others."""
    chat, batch = WorkloadSettings.model_validate(CHAT), WorkloadSettings.model_validate(BATCH)

    def chats(workloads: dict[str, WorkloadSettings]) -> list[tuple[str, float]]:
        requests = generate_all(workloads, seed=4, base_dir=Path()).requests
        return [(r.request_id, r.arrival_s) for r in requests if r.request_class == "chat"]

    together = chats({"chat": chat, "batch": batch})
    assert together == chats({"batch": batch, "chat": chat}) == chats({"chat": chat})
    other = generate_all({"talk": chat}, seed=4, base_dir=Path()).requests
    assert [r.arrival_s for r in other] != [at_s for _, at_s in together]


def test_workloads_share_no_tokens() -> None:
    """The same system prompt keys in two workloads are two system prompts: workloads share no tokens."""
    shared = WorkloadSettings.model_validate({**CHAT, "num_requests": 5, "system_prompt": {"tokens": 64}})
    requests = generate_all({"a": shared, "b": shared}, seed=4, base_dir=Path()).requests
    systems = {(r.request_class, (r.prompt or ())[0]) for r in requests}
    assert len(systems) == 2
    assert len({piece for _, piece in systems}) == 2


def test_classes_come_by_weight_and_bring_their_rules() -> None:
    """Each request is of one class (|z| < 4), with the priority and timeout of the class, or else of the workload."""
    keys = {
        **CHAT,
        "num_requests": 20_000,
        "timeout_s": 9.0,
        "priority": 5,
        "classes": {"gold": {"weight": 1, "priority": -1, "timeout_s": 2.0}, "free": {"weight": 3}},
    }
    requests = generate(WorkloadSettings.model_validate(keys), seed=1, base_dir=Path()).requests
    gold = [r for r in requests if r.request_class == "gold"]
    free = [r for r in requests if r.request_class == "free"]
    assert len(gold) + len(free) == 20_000
    assert abs(len(gold) - 5000) < 4 * math.sqrt(20_000 * 3 / 16)
    assert {r.priority for r in gold} == {-1}
    assert {r.priority for r in free} == {5}
    assert {round((r.gives_up_s or 0) - r.arrival_s, 6) for r in gold} == {2.0}
    assert {round((r.gives_up_s or 0) - r.arrival_s, 6) for r in free} == {9.0}
    plain = generate(
        WorkloadSettings.model_validate({**CHAT, "num_requests": 20_000}), seed=1, base_dir=Path()
    ).requests
    assert [r.arrival_s for r in plain] == [r.arrival_s for r in requests]


def test_goodput_is_judged_by_the_slo_of_the_class(play: Play) -> None:
    """Each class has its own limits; the row of all requests adds up the goodput of the classes."""
    workloads = {
        "chat": {**CHAT, "num_requests": 40, "slo": {"ttft_ms": 20}},
        "batch": {**BATCH, "num_requests": 80, "slo": {"e2el_ms": 1_000_000}},
    }
    result = play({}, {**MANY_SEATS, "max_num_seqs": 4}, workloads=workloads)
    chat = result.requests[result.requests["request_class"] == "chat"]
    span_s = row(result, "all")["measured_duration_s"]
    good = int((chat["ttft_ms"] <= 20).sum())
    assert 0 < good < 40
    assert row(result, "chat")["request_goodput"] == pytest.approx(good / span_s)
    assert row(result, "batch")["request_goodput"] == pytest.approx(80 / span_s)
    assert row(result, "all")["request_goodput"] == pytest.approx((good + 80) / span_s)


def test_classes_inside_workloads_have_rows_and_their_workload_too(play: Play) -> None:
    """chat/gold and chat/free are rows, and chat is the row of both."""
    chat = {**CHAT, "classes": {"gold": {"weight": 1, "slo": {"ttft_ms": 1}}, "free": {"weight": 2}}}
    result = play({}, workloads={"chat": chat, "batch": BATCH}, slo={"ttft_ms": 1e9})
    names = {found["request_class"] for found in result.summary_rows}
    assert names == {"all", "chat", "chat/gold", "chat/free", "batch"}
    parts = [row(result, "chat/gold"), row(result, "chat/free")]
    assert row(result, "chat")["n_requests"] == sum(part["n_requests"] for part in parts) == 300
    assert parts[0]["request_goodput"] == 0
    assert row(result, "chat")["request_goodput"] == parts[1]["request_goodput"] > 0


def test_urgent_classes_go_first(play: Play) -> None:
    """With order: priority the urgent class waits less than the other, on the same arrivals."""
    keys = {
        **CHAT,
        "arrivals": {"process": "poisson", "rate_rps": 30.0},
        "classes": {"gold": {"weight": 1, "priority": -1}, "free": {"weight": 1}},
    }
    result = play(keys, {**MANY_SEATS, "max_num_seqs": 2, "order": "priority"})
    assert row(result, "gold")["mean_queue_ms"] < 0.5 * row(result, "free")["mean_queue_ms"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "workload: this key is missing; give workload or workloads"),
        ({"workload": CHAT, "workloads": {"a": CHAT}}, "workloads: cannot be combined with workload"),
        ({"workloads": {}}, "workloads"),
        ({"workloads": {"a/b": CHAT}}, "the name of a workload must be letters"),
        ({"workloads": {"a": {}}}, "exactly one of arrivals, trace, requests, users, sessions"),
        ({"workload": {**CHAT, "retry": {"limit": 1}}}, "retry: needs timeout_s"),
        ({"workload": {**CHAT, "max_concurrency": 0}}, ">= 1"),
        ({"workload": {"users": {"count": 2}, **LENGTHS}}, "users need an end: num_requests or arrivals_for_s"),
        ({"workload": {"users": {"count": 0}, **LENGTHS, "num_requests": 1}}, ">= 1"),
        ({"workload": {"users": {"count": 2}, "num_requests": 1}}, "users need prompt_tokens and output_tokens"),
        ({"workload": {**CHAT, "classes": {"a": {"weight": 0}}}}, "> 0"),
    ],
    ids=str,
)
def test_contradictions_are_rejected(keys: dict[str, Any], said: str) -> None:
    """Keys that contradict each other are an error before the run, with the key."""
    base = {
        "step_time": {"kind": "constant", "seconds": 0.01},
        "kv_cache": {"layout": "paged", "block_size": 16, "blocks": 300},
        "policies": {"chunked": MANY_SEATS},
    }
    with pytest.raises(InputError) as caught:
        sq.run({**base, **keys})
    assert said in str(caught.value)


def test_a_light_trace_is_noticed_and_a_window_helps(tmp_path: Path) -> None:
    """Case 57: with a nearly idle start all schedulers look the same, with a warning; start_row skips it.

    Origin: HPMLL/BurstGPT#11, whose first twenty hours run at a ninetieth of a later rate.
    """
    times = np.concatenate((30.0 * np.arange(25), 750 + np.arange(25) / 3))
    rows = "".join(f"{t:.4f},ChatGPT,64,300,364,API log\n" for t in times)
    (tmp_path / "b.csv").write_text("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n" + rows)

    def run(**keys: Any) -> Any:
        trace = {"format": "burstgpt", "path": str(tmp_path / "b.csv"), **keys}
        return sq.run(
            {
                "step_time": {"kind": "constant", "seconds": 0.01},
                "kv_cache": {"layout": "paged", "block_size": 16, "blocks": 3000},
                "workload": {"trace": trace},
                "policies": {"chunked": MANY_SEATS},
            }
        )

    head, busy = run(limit=25), run(start_row=25)
    assert any("policies cannot differ" in line for line in head.warnings)
    assert not any("policies cannot differ" in line for line in busy.warnings)
    assert busy.requests["arrival_s"].max() == pytest.approx(8, abs=1e-3)
    assert run(start_s=750.0).requests["arrival_s"].tolist() == busy.requests["arrival_s"].tolist()
    assert head.summary_rows[0]["gpu_busy_share"] < 0.15
    assert busy.summary_rows[0]["gpu_busy_share"] > 0.9
