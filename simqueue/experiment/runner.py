"""Run a scenario: every policy on the same requests."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from simqueue.errors import InputError, show
from simqueue.execution import Executor, Workers, opened
from simqueue.experiment.at_errors import widened
from simqueue.experiment.hidden_time import hidden_time_notes
from simqueue.experiment.replication import Progress, Replication
from simqueue.experiment.replications import all_replications
from simqueue.experiment.run_loads import RunLoads
from simqueue.experiment.until_precise import precision_note
from simqueue.experiment.warmup import WarmUp, warm_up, with_windows
from simqueue.installation import VERSION
from simqueue.outputs import Place
from simqueue.results.grouping import common_notes
from simqueue.results.result import Result
from simqueue.scenario.load import from_mapping, load
from simqueue.scenario.model import Scenario
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.scenario.traffic import is_random_run
from simqueue.statistics.intervals import CONFIDENCE

_NOTHING_RANDOM = (
    "nothing in the traffic is random, and no fleet draws anything, so every replication would be the same run: each "
    "policy runs once, and there are no intervals"
)

CHECK_SWITCH = "SIMQUEUE_CHECK"
"""Environment variable: 1 checks the invariants of every run after every step."""


def run(
    scenario: Scenario | ResolvedScenario | str | Path | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    progress: Progress | None = None,
    check: bool | None = None,
    workers: Workers = None,
    stream_to: str | Path | Place | None = None,
    with_model_error: bool = False,
) -> Result:
    """Run every policy of a scenario on the same requests.

    Parameters
    ----------
    scenario : Scenario, ResolvedScenario, path or mapping
        A scenario, a scenario file, the name of a packaged scenario, or the keys of a scenario.
    overrides : sequence of str
        ``key.path=value``, as with ``--set``. Only for a file, a name or keys: a `Scenario` is changed before it is
        run, by `ResolvedScenario.with_` or ``model_copy``.
    seed : int, optional
        Overrides the seed of the scenario.
    progress : callable, optional
        See `Progress`.
    check : bool, optional
        Check the invariants of the run after every step. By default the environment variable SIMQUEUE_CHECK decides
        (1: yes).
    workers : int or Executor, optional
        Number of processes for replications, at most one per core, which is the default; or an executor, such as of a
        cluster, see `simqueue.executor`. The result does not depend on it.
    stream_to : str, Path or Place, optional
        Folder to which the requests, steps and gaps between tokens of each policy are written during the run, as
        Parquet. Memory then does not grow with the run. Only with a single replication. It must be missing, empty, or
        an earlier stream, which is replaced when the run has ended; until then, and if the run is stopped, the tables
        are in ``NAME.partial``, in parts.
    with_model_error : bool
        Also run with the step times of each policy off by the published error of its preset, in both directions, and
        widen the intervals of the summary to what these runs give. Not with `stream_to`.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        If the scenario is wrong, or if there are overrides for one that is loaded already.
    RunError
        If the run itself fails, or if its tables cannot be written to `stream_to`.
    """
    if stream_to is not None and (not isinstance(stream_to, str | Path | Place) or stream_to == ""):
        raise InputError(f"stream_to = {show(stream_to)}: must be the path of a folder")
    chosen = as_resolved(scenario, overrides, seed)
    if with_model_error:
        if stream_to is not None:
            raise InputError("stream_to: cannot be combined with with_model_error, which needs several runs")
        with opened(workers) as where:
            return widened(chosen, partial(run, progress=progress, check=check, workers=where))
    played, notes = _as_often_as_it_differs(chosen)
    verified = os.environ.get(CHECK_SWITCH) == "1" if check is None else check
    with opened(workers) as where:
        if stream_to is None:
            made = all_replications(played, where, check=verified, progress=progress)
        else:
            made = _streamed(played, stream_to, where, check=verified, progress=progress)
    loads = RunLoads(chosen, made[0])
    return result_of(chosen, played, made, warm_up(played, made, loads), loads, notes)


def result_of(
    chosen: ResolvedScenario,
    played: ResolvedScenario,
    made: Sequence[Replication],
    warm: WarmUp,
    loads: RunLoads,
    notes: Sequence[str] = (),
) -> Result:
    """Return the result of replications of a scenario.

    Parameters
    ----------
    chosen, played : ResolvedScenario
        As it was given, and as it was run.
    made : sequence of Replication
        The first has all policies.
    warm : WarmUp
        What is cut at the start of each run.
    loads : RunLoads
        Those of the scenario as it was given.
    notes : sequence of str
        Warnings about how it was run.
    """
    measured = with_windows(played, warm, made)
    return Result(
        chosen.values,
        VERSION,
        chosen.seed,
        [run for policy in chosen.policies for one in measured for run in one.runs if run.policy == policy.name],
        slo=chosen.slo,
        class_slo=chosen.class_slos,
        warnings=[
            *chosen.warnings,
            *notes,
            *hidden_time_notes(chosen.policies),
            *common_notes([one.notes for one in made]),
            *warm.notes,
            *precision_note(played, made, loads),
            *loads.warnings,
        ],
        offered=loads.offered,
        confidence=chosen.precision.confidence if chosen.precision else CONFIDENCE,
        origins=chosen.origins,
        base_dir=chosen.base_dir,
    )


def _as_often_as_it_differs(scenario: ResolvedScenario) -> tuple[ResolvedScenario, tuple[str, ...]]:
    """Return the scenario with a single replication if all replications would be the same run, and a note on it."""
    several = scenario.replications > 1 or scenario.precision is not None
    if not several or is_random_run(scenario):
        return scenario, ()
    return scenario.with_(replications=1, precision=None), (_NOTHING_RANDOM,)


def _streamed(
    scenario: ResolvedScenario,
    path: str | Path | Place,
    where: Executor,
    *,
    check: bool,
    progress: Progress | None,
) -> list[Replication]:
    """Return the only replication of a scenario; its tables are in files."""
    from simqueue.results.streaming import stream_in  # noqa: PLC0415 - pyarrow loads slowly, and few runs stream

    with stream_in(path) as stream:
        made = all_replications(scenario, where, check=check, progress=progress, stream=stream)
        stream.finish(VERSION)
        return made


def as_resolved(
    scenario: Scenario | ResolvedScenario | str | Path | Mapping[str, Any], overrides: Sequence[str], seed: int | None
) -> ResolvedScenario:
    """Return the scenario that the parameters of `run` name, with every value decided.

    Raises
    ------
    InputError
        As for `run`.
    """
    if isinstance(scenario, Mapping):
        return from_mapping(scenario, overrides, seed).resolve()
    if not isinstance(scenario, Scenario | ResolvedScenario):
        return load(scenario, overrides, seed).resolve()
    if overrides:
        raise InputError("overrides: must be given when the scenario is loaded, as this one is already")
    resolved = scenario.resolve() if isinstance(scenario, Scenario) else scenario
    return resolved if seed is None else resolved.with_(seed=seed)
