"""Run a scenario: every policy on the same traffic."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from simqueue.experiment.build import build
from simqueue.results.result import PolicyRun, Result
from simqueue.scenario.load import load
from simqueue.scenario.model import Scenario
from simqueue.scenario.resolve import effective, resolved
from simqueue.simulation import RunOptions, Simulation
from simqueue.simulation.replica import NEVER_S
from simqueue import __version__
from simqueue.workload.generate import generate

CHECK_SWITCH = "SIMQUEUE_CHECK"
"""Environment variable: 1 verifies the invariants of every run after every step."""

Progress = Callable[[str, int, int], None]
"""Called with the policy's name, how many requests have left and how many there are."""


def run(
    scenario: Scenario | str | Path | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    progress: Progress | None = None,
    check: bool | None = None,
) -> Result:
    """Run every policy of a scenario on the same traffic.

    Parameters
    ----------
    scenario : Scenario, path or mapping
        A scenario, the file it is in, or its keys as a mapping.
    overrides : sequence of str
        ``key.path=value``, as with ``--set``; for files only.
    seed : int, optional
        Takes the place of the scenario's own; for files only.
    progress : callable, optional
        See `Progress`.
    check : bool, optional
        Verify the invariants of the run after every step. By default as the environment variable SIMQUEUE_CHECK
        says (1: yes).

    Returns
    -------
    Result

    Raises
    ------
    InputError
        If something written down is wrong.
    RunError
        If the run itself fails.
    """
    chosen = _scenario(scenario, overrides, seed)
    options = _options(chosen, check=os.environ.get(CHECK_SWITCH) == "1" if check is None else check)
    all_parts = {
        name: build(effective(chosen, name), refuse_oversized=chosen.unservable == "reject")
        for name in chosen.policies
    }
    traffic = generate(chosen.workload, seed=chosen.seed, base_dir=chosen.base_dir)
    runs = []
    for name, parts in all_parts.items():
        on_end = _reporter(progress, name, len(traffic.requests))
        simulation = Simulation(traffic.requests, parts.policy, parts.step_time, options, on_end)
        runs.append(PolicyRun(name, 0, simulation.run()))
    return Result(
        resolved(chosen),
        __version__,
        chosen.seed,
        runs,
        slo=chosen.slo.model_dump(exclude_none=True) if chosen.slo else None,
        warmup_s=chosen.warmup_s,
        warnings=traffic.notes,
    )


def _scenario(scenario: Scenario | str | Path | Mapping[str, Any], overrides: Sequence[str], seed: int | None) -> Scenario:
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, Mapping):
        return Scenario.model_validate(dict(scenario))
    return load(scenario, overrides, seed)


def _options(scenario: Scenario, *, check: bool) -> RunOptions:
    resolution_s = scenario.clock_resolution_s
    return RunOptions(
        horizon_s=NEVER_S if scenario.horizon_s is None else scenario.horizon_s,
        fast=scenario.fast,
        check=check,
        ticks_per_s=None if resolution_s is None else round(1 / resolution_s),
    )


def _reporter(progress: Progress | None, policy: str, total: int) -> Callable[[int], None] | None:
    if progress is None:
        return None
    step = max(1, total // 200)

    def on_end(left: int) -> None:
        if left % step == 0 or left == total:
            progress(policy, left, total)

    return on_end
