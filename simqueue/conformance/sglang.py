"""Recorded schedules of SGLang, compared turn by turn with simulated ones.

Compared are all turns in which the scheduler did something or was idle: what runs, in batch order, with the tokens
found; the queue in order; what was retracted or preempted; the ratio and the budgets; free and evictable tokens, before
and after the step; and the times of decisions, first tokens and finishes to the microsecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from simqueue.conformance.virtual_time import US_PER_MS, US_PER_S, recorded_scenario, request_keys, time_differences
from simqueue.errors import InputError
from simqueue.experiment.build import build
from simqueue.scenario import from_mapping
from simqueue.scenario.traffic import make_traffic
from simqueue.schedulers.sglang import Sglang
from simqueue.simulation import Recording, RunOptions, Simulation
from simqueue.simulation.options import SeenStep

STOP_STREAM = "stop"
"""The token that ends an answer before its limit: in recordings the same for all requests."""
_NOT_FLAGS = ("max_total_num_tokens", "context_len", "max_req_len", "tree_core")
_ABSENT: Mapping[str, Any] = {
    "prefix": {},
    "decoding": [],
    "running": [],
    "retracted": [],
    "preempted": [],
    "chunked": None,
    "budget": None,
}
"""What a step has if the file leaves a key out."""
_RATIO_DIGITS = 12
_BUDGET_DIGITS = 9


def scenario_of(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of the scenario that was recorded."""
    config = recorded["config"]
    return recorded_scenario(
        recorded,
        kv_cache={"blocks": config["max_total_num_tokens"] // config["page_size"]},
        max_model_len=config["context_len"],
        requests=[_request(request) for request in recorded["requests"]],
        policy={"engine": "sglang", "version": recorded["version"]},
        not_flags=_NOT_FLAGS,
    )


def _request(request: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **request_keys(request),
        "max_output_tokens": request["max_new_tokens"],
        "ignore_eos": request["ignore_eos"],
        "priority": request.get("priority") or 0,
        "routing_key": request.get("routing_key"),
    }


def first_difference(recorded: Mapping[str, Any], *, fast: bool, check: bool) -> str | None:
    """Return the first difference in one line, or None if there is none.

    Parameters
    ----------
    recorded : mapping
        The content of a recording.
    fast : bool
        Fold equal steps. Then only the requests are compared, not the steps.
    check : bool
        Check the invariants of the simulation too.

    Raises
    ------
    InputError
        If the recording has a version or flag that is unknown.
    """
    policy, ends, recording = _play(recorded, fast=fast, check=check)
    differences = _request_differences(recorded, recording, policy)
    if not fast:
        differences = chain(_turn_differences(recorded, policy, ends), differences)
    return next(differences, None)


Ends = dict[int, tuple[SeenStep, int, int]]
"""Of each plan, by identity: the step, and free and evictable tokens after it."""


def _play(recorded: Mapping[str, Any], *, fast: bool, check: bool) -> tuple[Sglang, Ends, Recording]:
    scenario = from_mapping(scenario_of(recorded)).resolve()
    resolved = scenario.policy("recorded")
    policy = build(resolved, reject_oversized=False)
    if not isinstance(policy, Sglang):
        raise InputError(f"engine {recorded['engine']}: not the scheduler of a recording of sglang")
    policy.observed = not fast
    policy.idle_s = recorded["step_cost"]["idle_us"] / US_PER_S
    policy.stop_stream = STOP_STREAM
    pool, ends = policy.pool, Ends()

    def observe(step: SeenStep) -> None:
        ends[id(step.plan)] = step, pool.available, pool.tree.evictable

    options = RunOptions(fast=fast, check=check, ticks_per_s=US_PER_S)
    observer = None if fast else observe
    run = Simulation(make_traffic(scenario), policy, resolved.step_time, options, observer=observer)
    return policy, ends, run.run()


def _turn_differences(recorded: Mapping[str, Any], policy: Sglang, ends: Ends) -> Iterator[str]:
    turns = policy.log.turns
    for number, (real, mine) in enumerate(zip(_recorded_turns(recorded), turns, strict=False)):
        where = f"step {number} at {real['start_ms']} ms"
        for key, value in real["decided"].items():
            found = _rounded(key, mine[key])
            if found != value:
                yield f"{where}: {key} {found}, recorded {value}"
        if real["decided"]["kind"] != "idle":
            yield from _end_differences(where, real, ends.get(id(mine["plan"])))
    if len(turns) != len(recorded["steps"]):
        yield f"{len(turns)} steps, recorded {len(recorded['steps'])}"


def _rounded(key: str, value: Any) -> Any:
    """Return a value of ours in the form of the file."""
    if key == "scheduled":
        return list(value.items())
    if key == "ratio":
        return round(value, _RATIO_DIGITS)
    if key == "budget" and value is not None:
        return [None if part is None else round(part, _BUDGET_DIGITS) for part in value]
    return value


def _end_differences(where: str, real: Mapping[str, Any], end: tuple[SeenStep, int, int] | None) -> Iterator[str]:
    if end is None:
        yield f"{where}: never ended"
        return
    step, available, evictable = end
    mine: dict[str, Any] = {
        "start_ms": round(step.planned_s * US_PER_S),
        "finished": [job.request.request_id for job in step.plan.finishing],
        "available_after": available,
        "evictable_after": evictable,
        "exec_start_ms": round(step.start_s * US_PER_S),
        "exec_end_ms": round(step.end_s * US_PER_S),
    }
    for key, value in real["ended"].items():
        if mine[key] != value:
            yield f"{where}: {key} {mine[key]}, recorded {value}"


def _recorded_turns(recorded: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the recorded turns with all their keys: what was decided, and how the step ended."""
    scheduled: list[tuple[str, int]] = []
    waiting: list[str] = []
    for step in recorded["steps"]:
        kind = step["kind"]
        if "scheduled" in step:
            scheduled = list(step["scheduled"].items())
        waiting = step.get("waiting", waiting)
        decided = {key: step.get(key, absent) for key, absent in _ABSENT.items()}
        if kind == "decode":
            del decided["running"]  # the batch itself
        decided |= {"kind": kind, "scheduled": [] if kind == "idle" else scheduled, "waiting": waiting}
        decided |= {key: step[key] for key in ("full", "ratio", "available", "evictable")}
        ended = {
            "start_ms": round(step["start_ms"] * US_PER_MS),
            "finished": step.get("finished", []),
            "available_after": step.get("available_after", step["available"]),
            "evictable_after": step.get("evictable_after", step["evictable"]),
        }
        for key in ("exec_start_ms", "exec_end_ms"):
            if key in step:
                ended[key] = round(step[key] * US_PER_MS)
        yield {"start_ms": step["start_ms"], "decided": decided, "ended": ended}


def _request_differences(recorded: Mapping[str, Any], recording: Recording, policy: Sglang) -> Iterator[str]:
    columns = recording.requests
    for row, name in enumerate(columns["request_id"]):
        real = recorded["finished"].get(name)
        if real is None:
            yield f"request {name} is not in the recording"
            continue
        yield from time_differences(name, real, columns, row)
        if columns["tokens_emitted"][row] != real["output_tokens"]:
            yield f"request {name}: {columns['tokens_emitted'][row]} tokens, recorded {real['output_tokens']}"
        if policy.observed and (retracted := _retractions(policy, name)) != real["retractions"]:
            yield f"request {name}: {retracted} retractions, recorded {real['retractions']}"


def _retractions(policy: Sglang, name: str) -> int:
    return sum([name in turn["retracted"] for turn in policy.log.turns])
