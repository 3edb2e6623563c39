"""Recorded schedules of engines, compared step by step with simulated ones.

A recording holds an engine at a version, its flags, a linear step time in whole microseconds, the requests with the
identity of their tokens, and the decisions of the real scheduler at each step. It is turned into an ordinary scenario
and simulated. Compared are the steps, the tokens of each request and their order, the preemptions in order, the cache
hits, the free blocks before and after each step, and the times of first tokens and finishes to the microsecond.
Recordings of SGLang have a form of their own (`sglang`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from simqueue.conformance import sglang
from simqueue.conformance.virtual_time import US_PER_MS, US_PER_S, recorded_scenario, request_keys, time_differences
from simqueue.experiment.build import build
from simqueue.scenario import from_mapping
from simqueue.scenario.traffic import make_traffic
from simqueue.simulation import Recording, RunOptions, Simulation
from simqueue.simulation.options import SeenStep

_SAME = "="
NEEDED = ("engine", "version", "case", "config", "step_cost", "requests", "steps", "finished")
"""Keys that every file has."""
_NOT_FLAGS = ("block_size", "num_gpu_blocks", "usable_blocks", "max_model_len")


def scenario_of(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of the scenario that was recorded."""
    config = recorded["config"]
    return recorded_scenario(
        recorded,
        kv_cache={"block_size": config["block_size"], "blocks": config["usable_blocks"]},
        max_model_len=config["max_model_len"],
        requests=[_request(request) for request in recorded["requests"]],
        policy={"engine": recorded["engine"], "version": recorded["version"], "usage": "offline"},
        not_flags=_NOT_FLAGS,
    )


def _request(request: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **request_keys(request),
        "priority": request["priority"],
    }


def first_difference(recorded: Mapping[str, Any], *, fast: bool = False, check: bool = False) -> str | None:
    """Return the first difference between a recording and its simulation in one line, or None if there is none.

    Parameters
    ----------
    recorded : mapping
        The content of a recording.
    fast : bool
        Fold equal steps. Then only the requests are compared, not the steps.
    check : bool
        Check the invariants of the simulation too.
    """
    if recorded["engine"] == "sglang":
        return sglang.first_difference(recorded, fast=fast, check=check)
    steps, recording = _play(recorded, fast=fast, check=check)
    differences = _request_differences(recorded, recording)
    if not fast:
        differences = chain(_step_differences(recorded, steps), differences)
    return next(differences, None)


def _play(recorded: Mapping[str, Any], *, fast: bool, check: bool) -> tuple[list[dict[str, Any]], Recording]:
    scenario = from_mapping(scenario_of(recorded)).resolve()
    resolved = scenario.policy("recorded")
    policy = build(resolved, reject_oversized=False)
    traffic = make_traffic(scenario)
    seen: list[dict[str, Any]] = []
    observer = None if fast else _observer(seen, policy.kv.total)
    policy.observed = not fast
    options = RunOptions(fast=fast, check=check, ticks_per_s=US_PER_S)
    simulation = Simulation(traffic, policy, resolved.step_time, options, observer=observer)
    return seen, simulation.run()


def _observer(seen: list[dict[str, Any]], total_blocks: int) -> Callable[[SeenStep], None]:
    def observe(step: SeenStep) -> None:
        plan = step.plan
        members = {job.request.request_id: tokens for job, tokens in plan.members}
        seen.append(
            {
                "start_us": round(step.planned_s * US_PER_S),
                "exec_us": (round(step.start_s * US_PER_S), round(step.end_s * US_PER_S)),
                "scheduled": members,
                "preempted": [job.request.request_id for job in plan.preempted],
                "free_blocks": total_blocks - plan.blocks_used,
                "free_blocks_after": step.free_blocks,
                "running": plan.running,
                "waiting": plan.waiting,
                "cached": {job.request.request_id: cached for job, cached in plan.admitted if cached},
                "admitted": [job.request.request_id for job, _ in plan.admitted],
                "finished": [job.request.request_id for job in plan.finishing],
            }
        )

    return observe


def _step_differences(recorded: Mapping[str, Any], ours: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    theirs = [step for step in _recorded_steps(recorded) if step["scheduled"]]
    ordered = "steps_format" not in recorded
    for number, (real, simulated) in enumerate(zip(theirs, ours, strict=False)):
        for key in real:
            value, mine = (_comparable(step, key, ordered=ordered) for step in (real, simulated))
            if value != mine:
                yield f"step {number} at {real['start_us'] / US_PER_MS} ms: {key} {mine}, recorded {value}"
    if len(theirs) != len(ours):
        yield f"{len(ours)} steps, recorded {len(theirs)}"


def _comparable(step: Mapping[str, Any], key: str, *, ordered: bool) -> Any:
    """Return a value of a step such that equality compares order only if the recording has an order."""
    if key == "scheduled" and ordered:
        return list(step[key].items())
    return sorted(step[key]) if key == "finished" else step[key]


def _recorded_steps(recorded: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the recorded steps in one form. Each has only the keys that the file gives."""
    compact = "steps_format" in recorded
    ones: list[str] = []
    for step in recorded["steps"]:
        if compact:
            ones = ones if step["one"] == _SAME else _ids(step["one"])
            yield _compact_step(step, ones)
        else:
            yield _plain_step(step)


def _plain_step(step: Mapping[str, Any]) -> dict[str, Any]:
    result = {
        "start_us": round(step["start_ms"] * US_PER_MS),
        "scheduled": step["scheduled"],
        "preempted": step["preempted"],
        "free_blocks": step["free_blocks"],
        "free_blocks_after": step["free_blocks_after"],
        "running": step["running"],
        "waiting": step["waiting"],
        "cached": step.get("cached", {}),
        "admitted": _admitted(step),
        "finished": step.get("finished", []),
    }
    if "exec_start_ms" in step:
        result["exec_us"] = (round(step["exec_start_ms"] * US_PER_MS), round(step["exec_end_ms"] * US_PER_MS))
    return result


def _compact_step(step: Mapping[str, Any], ones: Sequence[str]) -> dict[str, Any]:
    return {
        "start_us": round(step["s"] * US_PER_MS),
        "scheduled": dict.fromkeys(ones, 1) | step.get("n", {}),
        "preempted": step.get("p", []),
        "free_blocks": step["f"],
        "free_blocks_after": step.get("e", step["f"]),
        "waiting": step.get("w", 0),
        "cached": step.get("cached", {}),
        "finished": step.get("finished", []),
    }


def _admitted(step: Mapping[str, Any]) -> list[str]:
    """Return the ids of admitted requests, new and resumed ones, in the order of scheduling."""
    entered = {*step.get("new", []), *step.get("resumed", [])}
    return [name for name in step["scheduled"] if name in entered]


def _ids(ranges: str) -> list[str]:
    """Return the ids that a text such as ``3-7,9`` stands for."""
    names = []
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        names += [str(number) for number in range(int(first), int(last or first) + 1)]
    return names


def _request_differences(recorded: Mapping[str, Any], recording: Recording) -> Iterator[str]:
    columns = recording.requests
    for row, name in enumerate(columns["request_id"]):
        real = recorded["finished"].get(name)
        if real is None:
            yield f"request {name} is not in the recording"
            continue
        yield from time_differences(name, real, columns, row)
        for key, column in (("preemptions", "preemptions"), ("output_tokens", "tokens_emitted")):
            if columns[column][row] != real[key]:
                yield f"request {name}: {key} {columns[column][row]}, recorded {real[key]}"
