"""Which columns of the summary can be compared, and which of their values are better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.report.lines import SECTIONS
from simqueue.results.latencies import Extras, parsed
from simqueue.results.objectives import extras_of
from simqueue.results.summary import SUMMARY_TYPES, column_type
from simqueue.scenario.resolved import ResolvedScenario

NUMBERS: Final = ("int64", "Int64", "float64")
OF_ROWS: Final = ("replication", "replications")
_BETTER: Final = {line.column: line.better for lines in SECTIONS.values() for line in lines}


def extras(scenario: ResolvedScenario) -> Extras:
    """Return the optional columns that the summary of a scenario can have."""
    chosen = (scenario.values.get("summary") or {}).get("percentiles") or ()
    limits = (scenario.slo or {}, *scenario.class_slos.values())
    return extras_of(
        limits, chosen, clients=True, rushes=True, fleets=any(policy.fleet for policy in scenario.policies)
    )


def numeric_columns(scenario: ResolvedScenario) -> tuple[str, ...]:
    """Return the columns that the summary of a scenario can have and that are numbers."""
    columns = (*SUMMARY_TYPES, *extras(scenario).columns)
    return tuple(name for name in columns if column_type(name) in NUMBERS and name not in OF_ROWS)


def check_names(policies: Sequence[str], baseline: str | None, metrics: Sequence[str], known: Sequence[str]) -> None:
    """Check the names of the baseline and of the metrics of a comparison.

    Parameters
    ----------
    policies : sequence of str
    baseline : str or None
    metrics : sequence of str
    known : sequence of str
        The columns that can be compared.

    Raises
    ------
    InputError
        For an unknown policy or metric.
    """
    if baseline is not None and baseline not in policies:
        raise InputError(f"--baseline: {unknown('policy', baseline, policies)}")
    for metric in metrics:
        if metric not in known:
            raise InputError(f"--metric: {unknown('metric', metric, known)}")


def better(metric: str) -> Literal["", "higher", "lower"]:
    """Return which values of a column are better; empty if neither are."""
    if metric.endswith(("throughput", "goodput")):
        return "higher"
    if parsed(metric) is not None or metric.endswith("_ms"):
        return "lower"
    return _BETTER.get(metric, "")
