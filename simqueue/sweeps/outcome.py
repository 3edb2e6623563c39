"""What is kept of a cell that is done, as text: its rows and warnings. Numbers keep all their digits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simqueue.errors import RunError
from simqueue.execution import Workers
from simqueue.experiment import run
from simqueue.results.summary import Row
from simqueue.scenario.resolved import ResolvedScenario


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a cell.

    Attributes
    ----------
    rows : tuple of dict
        The summary of each policy and replication, and of each class of requests.
    warnings : tuple of str
    """

    rows: tuple[Row, ...]
    warnings: tuple[str, ...]


def played(scenario: ResolvedScenario, *, check: bool | None = None, workers: Workers = 1) -> str:
    """Run a cell and return its outcome as text, which depends on nothing but the scenario.

    Parameters
    ----------
    scenario : ResolvedScenario
    check : bool, optional
        As for `simqueue.experiment.run`.
    workers : int or Executor, optional
        What does the replications of the cell.

    Raises
    ------
    InputError, RunError
        As for `simqueue.experiment.run`.
    """
    result = run(scenario, workers=workers, check=check)
    content = {"rows": result.replication_rows, "warnings": result.warnings}
    return json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def replications_of(scenario: ResolvedScenario) -> int:
    """Return how many replications a cell has, at least if a precision decides it."""
    return scenario.replications if scenario.precision is None else scenario.precision.min_replications


def outcome_of(text: str) -> Outcome:
    """Return the outcome that a text holds.

    Raises
    ------
    RunError
        If it holds none.
    """
    try:
        content: Mapping[str, Any] = json.loads(text)
        return Outcome(tuple(content["rows"]), tuple(content["warnings"]))
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"a stored cell is damaged ({error}); use another folder") from None
