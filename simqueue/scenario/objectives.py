"""A resolved scenario with other limits on latency, or with more percentiles in its summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simqueue.engines import GIVEN

if TYPE_CHECKING:
    from simqueue.scenario.resolved import ResolvedScenario
    from simqueue.workload.clients import ClassSettings


def with_limits(scenario: ResolvedScenario, slo: Mapping[str, float]) -> ResolvedScenario:
    """Return a scenario with these limits instead of its own and those of its workloads and classes.

    Parameters
    ----------
    scenario : ResolvedScenario
    slo : mapping
        Upper bounds in milliseconds, see `simqueue.workload.slo`; empty: none.

    Returns
    -------
    ResolvedScenario
        Its values are a scenario again.
    """
    limits = dict(slo) or None
    workloads = {
        name: found.model_copy(update={"slo": None, "classes": _without_slo(found.classes)})
        for name, found in scenario.workloads.items()
    }
    values = {**_without_own(scenario.values), "slo": limits}
    origins = {path: origin for path, origin in scenario.origins.items() if path.partition(".")[0] != "slo"}
    origins |= {f"slo.{name}": GIVEN for name in limits or ()}
    return replace(scenario, slo=limits, class_slos={}, workloads=workloads, values=values, origins=origins)


def with_percentiles(scenario: ResolvedScenario, percentiles: Iterable[float]) -> ResolvedScenario:
    """Return a scenario whose summary has columns of these percentiles too, each > 0 and < 100."""
    summary = scenario.values.get("summary") or {}
    levels = sorted({*(summary.get("percentiles") or ()), *map(float, percentiles)})
    return replace(scenario, values={**scenario.values, "summary": {**summary, "percentiles": levels or None}})


def _without_slo(classes: Mapping[str, ClassSettings] | None) -> dict[str, ClassSettings] | None:
    return None if classes is None else {name: one.model_copy(update={"slo": None}) for name, one in classes.items()}


def _without_own(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a scenario without the limits of its workloads and their classes."""
    found = dict(values)
    if found.get("workload"):
        found["workload"] = _freed(found["workload"])
    if found.get("workloads"):
        found["workloads"] = {name: _freed(own) for name, own in found["workloads"].items()}
    return found


def _freed(workload: Mapping[str, Any]) -> dict[str, Any]:
    classes = workload.get("classes")
    kinds = classes and {name: {**kind, "slo": None} for name, kind in classes.items()}
    return {**workload, "slo": None, "classes": kinds}
