"""Whether a policy meets the limits on means and percentiles of its run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from simqueue.results.classes import ALL_CLASSES
from simqueue.results.latencies import MET, Extras, column, parsed
from simqueue.workload.slo import of_requests, of_run

if TYPE_CHECKING:
    from simqueue.results.summary import Row, Value

Limits = Mapping[str, float]


def value_column(limit: str) -> str:
    """Return the column with the value that a limit of a run is about: ``median_ttft_ms`` for ``p50_ttft_ms``."""
    found = parsed(limit)
    return limit if found is None or found[0] is None else column(found[1], found[0])


def percentiles_of(slo: Limits) -> list[float]:
    """Return the percentiles that limits of a run are about."""
    return [found[0] for name in of_run(slo) if (found := parsed(name)) is not None and found[0] is not None]


def extras_of(
    limits: Iterable[Limits], percentiles: Iterable[float], *, clients: bool, rushes: bool, fleets: bool
) -> Extras:
    """Return the optional columns of a summary with these limits of classes and chosen percentiles; see `Extras`."""
    found = tuple(limits)
    wanted = chain(percentiles, *map(percentiles_of, found))
    return Extras.of(wanted, clients=clients, good=any(map(of_requests, found)), rushes=rushes, fleets=fleets)


def judged_limits(row: Row, slo: Limits, class_slo: Mapping[str, Limits]) -> Row:
    """Return a row with a column for each limit of a run: whether it is met, None if that is unknown.

    Over replications a limit is met if the whole interval of the mean is within it, and not met if the whole interval
    is beyond it; else it is unknown. Without an interval the value decides. A workload or class has its own limits, or
    those of the scenario. ITL is not known by class.
    """
    names = [name for limits in (slo, *class_slo.values()) for name in of_run(limits)]
    limits = slo if row["request_class"] == ALL_CLASSES else class_slo.get(str(row["request_class"]), slo)
    return {**row, **{MET + name: _met(row, name, limits.get(name)) for name in dict.fromkeys(names)}}


def _met(row: Row, name: str, limit_ms: float | None) -> Value:
    source = value_column(name)
    value, low, high = (row.get(key) for key in (source, f"ci_low_{source}", f"ci_high_{source}"))
    if limit_ms is None or not isinstance(value, int | float):
        return None
    if isinstance(low, int | float) and isinstance(high, int | float) and low <= limit_ms < high:
        return None
    return value <= limit_ms
