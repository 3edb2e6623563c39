"""What ``simqueue compare`` and ``simqueue capacity`` answer, as tables in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simqueue.errors import InputError
from simqueue.execution import Workers, opened
from simqueue.experiment.comparing import DEFAULT_METRICS, compared
from simqueue.experiment.held import held
from simqueue.experiment.metric_names import check_names, numeric_columns
from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.replication import Progress
from simqueue.experiment.runner import as_resolved, run
from simqueue.scenario.model import Scenario
from simqueue.scenario.resolved import ResolvedScenario

if TYPE_CHECKING:
    import pandas as pd

REPLICATIONS = 10
"""Replications of a comparison, if the scenario asks for a single run."""


def to_compare(scenario: ResolvedScenario, replications: int | None = None) -> ResolvedScenario:
    """Return a scenario with the replications that a comparison needs.

    Parameters
    ----------
    scenario : ResolvedScenario
    replications : int, optional
        By default those of the scenario, and `REPLICATIONS` if it has one and no precision.

    Raises
    ------
    InputError
        If the scenario has a single policy.
    """
    if len(scenario.policies) < 2:
        raise InputError(f"{scenario.name}: a comparison needs at least two policies; the scenario has one")
    if replications is not None:
        return scenario.with_(replications=replications, precision=None)
    if scenario.replications == 1 and scenario.precision is None:
        return scenario.with_(replications=REPLICATIONS)
    return scenario


def compare(
    scenario: Scenario | ResolvedScenario | str | Path | Mapping[str, Any],
    *,
    baseline: str | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    replications: int | None = None,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    progress: Progress | None = None,
    workers: Workers = None,
    with_model_error: bool = False,
) -> pd.DataFrame:
    """Run a scenario several times and compare its policies on the same traffic.

    Parameters
    ----------
    scenario, overrides, seed, progress, workers
        As for `run`.
    baseline : str, optional
        Policy to compare with; by default the first one.
    metrics : sequence of str
        Columns of the summary.
    replications : int, optional
        See `to_compare`.
    with_model_error : bool
        Also compare with the step times of each policy off by the published error of its preset. The table has another
        column `holds_within_model_error`: holds, flips, not shown, or unknown.

    Returns
    -------
    DataFrame
        One row per metric and policy, with the columns of ``simqueue compare --json``: difference and ratio with their
        intervals, p-value, p-value with Holm's correction, and verdict. Undefined values are missing.

    Raises
    ------
    InputError
        If the scenario is wrong or has a single policy, or a name is unknown.
    RunError
        If a run fails.
    """
    wanted = to_compare(as_resolved(scenario, overrides, seed), replications)
    check_names(wanted.policy_names, baseline, metrics, numeric_columns(wanted))
    with opened(workers) as where:
        runs = partial(run, progress=progress, workers=where)
        if with_model_error:
            rows = held(wanted, runs, baseline, metrics).rows
            return _table([{**one.row.plain(), "holds_within_model_error": one.holds} for one in rows])
        return _table([row.plain() for row in compared(runs(wanted), baseline, metrics)])


def capacity(
    scenario: Scenario | ResolvedScenario | str | Path | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    seed: int | None = None,
) -> pd.DataFrame:
    """Compute what each policy of a scenario can sustain, without a simulation.

    Parameters
    ----------
    scenario, overrides, seed
        As for `run`.

    Returns
    -------
    DataFrame
        One row per policy, with the keys of ``simqueue capacity --json`` as columns: capacity in requests/s, what
        limits it, load at the scenario's rate, estimated latencies in ms, and a note. Undefined values are missing.

    Raises
    ------
    InputError
        If the scenario is wrong.
    """
    found = policy_loads(as_resolved(scenario, overrides, seed))
    return _table([{"policy": name, **_flat(one.plain())} for name, one in found.items()])


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with those of mappings inside under ``outer.inner``."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= {f"{key}.{name}": inner for name, inner in value.items()} if isinstance(value, dict) else {key: value}
    return flat


def _table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    from pandas import DataFrame  # noqa: PLC0415 - pandas loads slowly, and the commands print other tables

    return DataFrame(rows).convert_dtypes()
