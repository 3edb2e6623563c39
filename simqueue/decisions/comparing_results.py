"""Compare two results, each of them saved, kept as a baseline, or run now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simqueue.datafiles.regular import is_folder
from simqueue.decisions.baseline import is_baseline, read_baseline
from simqueue.decisions.changes import Changes, changes_between, checked_limits
from simqueue.decisions.recorded import Recorded, recorded
from simqueue.errors import InputError, show
from simqueue.execution import Workers
from simqueue.experiment.metric_names import numeric_columns
from simqueue.experiment.runner import as_resolved, run
from simqueue.results.result import Result
from simqueue.results.stored import StoredResult
from simqueue.scenario.model import Scenario
from simqueue.scenario.resolved import ResolvedScenario

if TYPE_CHECKING:
    from simqueue.experiment.replication import Progress

Source = Recorded | Result | StoredResult | str | Path
ScenarioSource = Scenario | ResolvedScenario | Mapping[str, Any]


def changes(
    baseline: Source,
    result: Source | ScenarioSource,
    *,
    metrics: Sequence[str] | None = None,
    limits: Sequence[str] = (),
    replications: int | None = None,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    progress: Progress | None = None,
    workers: Workers = None,
) -> Changes:
    """Compare a result with an earlier one.

    Parameters
    ----------
    baseline : Result, or str or Path
        A result, the folder of a saved one, or a file written by `write_baseline`.
    result : Result, str or Path, or scenario
        The same, or a scenario in any form that `run` takes: it is run now, with the seed and the number of
        replications of the baseline.
    metrics : sequence of str, optional
        Columns of the summary.
    limits : sequence of str
        Such as ``p99_ttft_ms=+5%``: not more than 5 % higher. See `simqueue.decisions.limits.parse_limits`.
    replications, seed : int, optional
        Of a scenario, instead of the baseline's.
    overrides, progress, workers
        Of a scenario, as for `run`.

    Returns
    -------
    Changes

    Raises
    ------
    InputError
        If a source cannot be read, a name is unknown, a limit is wrong, or the results have no policy in common.
    RunError
        If a run fails.
    """
    before = kept(baseline)
    if before is None:
        raise InputError(f"{show(str(baseline))}: must be a folder written by `simqueue run`, or a baseline file")
    after = kept(result)
    if after is not None and (overrides or seed is not None or replications is not None):
        raise InputError(f"{after.label}: is a result; overrides, a seed and replications need a scenario")
    if after is None:
        wanted = as_resolved(result, overrides, before.seed if seed is None else seed)  # type: ignore[arg-type] # see kept
        checked_limits(metrics, limits, (*before.columns, *numeric_columns(wanted)))  # before the run
        after = recorded(run(_as_often(wanted, before, replications), progress=progress, workers=workers))
    return changes_between(before, after, metrics, limits)


def kept(source: object) -> Recorded | None:
    """Return a result that is there already; None for a scenario, which has to be run.

    Raises
    ------
    InputError
        If it is a result that cannot be read.
    """
    if isinstance(source, Recorded):
        return source
    if isinstance(source, Result | StoredResult):
        return recorded(source)
    if not isinstance(source, str | Path):
        return None
    path = Path(source)
    if not is_kept(path):
        return None
    return recorded(path) if is_folder(path) else read_baseline(path)


def is_kept(path: Path) -> bool:
    """Return whether a path is that of a folder or of a baseline file, and not of a scenario."""
    return is_folder(path) or is_baseline(path)


def _as_often(scenario: ResolvedScenario, before: Recorded, replications: int | None) -> ResolvedScenario:
    """Return a scenario with as many replications as the baseline has, unless a number is given."""
    wanted = before.replications if replications is None else replications
    return scenario.with_(replications=wanted, precision=None)
