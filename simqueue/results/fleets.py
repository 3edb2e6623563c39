"""What each replica of a fleet did in a run, and what its groups did."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from simqueue.request import Status
from simqueue.results import metrics

if TYPE_CHECKING:
    from simqueue.results.metrics import Floats, Mask
    from simqueue.results.summary import Row
    from simqueue.results.window import Window
    from simqueue.simulation.recording import FleetRecord, PrefixStatistics, Recording

RUNS: Final = ("ready", "draining")
"""States in which a replica runs."""
FLEET_TYPES: Final = {
    "replicas": "Int64",
    "imbalance_load": "float64",
    "imbalance_kv": "float64",
    "mean_router_ms": "float64",
    "resent": "Int64",
    "lost": "Int64",
    "discarded_tokens": "Int64",
}
"""Columns that a summary has if any policy has a fleet, with their types."""


@dataclass(frozen=True, slots=True)
class Use:
    """How much one replica was used.

    Attributes
    ----------
    ready_s : float
        How long it was ready or draining during the run.
    busy_s : float
        How long its GPU was busy, with steps that did not end.
    full_steps_s, batch_area_s : float
        The same without these steps, and that time multiplied by the requests in each step.
    blocks_peak, blocks_total : int
    prefix : PrefixStatistics or None
    """

    ready_s: float
    busy_s: float
    full_steps_s: float
    batch_area_s: float
    blocks_peak: int
    blocks_total: int
    prefix: PrefixStatistics | None

    @property
    def busy_share(self) -> float | None:
        """Share of its ready time in which it was busy."""
        return metrics.share(self.busy_s, self.ready_s)

    @property
    def kv_peak_share(self) -> float | None:
        """The most of its KV pool that was in use at one time."""
        return metrics.share(self.blocks_peak, self.blocks_total)


def together(uses: Sequence[Use]) -> Row:
    """Return the columns of a summary about some replicas together."""
    known = [use.prefix for use in uses if use.prefix is not None]
    queried, hit = sum(one.queried_tokens for one in known), sum(one.hit_tokens for one in known)
    return {
        "mean_batch": metrics.share(_sum(uses, "batch_area_s"), _sum(uses, "full_steps_s")),
        "kv_peak_share": metrics.share(_sum(uses, "blocks_peak"), _sum(uses, "blocks_total")),
        "prefix_queried_tokens": queried if known else None,
        "prefix_hit_rate": metrics.share(hit, queried) if known else None,
        "self_hit_tokens": sum(one.self_hit_tokens for one in known) if known else None,
        "gpu_busy_share": metrics.share(_sum(uses, "busy_s"), _sum(uses, "ready_s")),
    }


def _sum(uses: Sequence[Use], name: str) -> float:
    return math.fsum(getattr(use, name) for use in uses)


def uses_of(recording: Recording, run: Window | None) -> tuple[Use, ...]:
    """Return how much each replica was used, by number; `run` is the time of the run, None if nothing arrived."""
    fleet = recording.fleet
    if fleet is None:
        return ()
    busy, areas = _step_times(recording, len(fleet.replicas), -np.inf if run is None else run.end_s)
    return tuple(
        Use(
            ready_s=0.0 if run is None else ready_s(fleet, number, run),
            busy_s=busy[number] + (facts.lost_step_s or 0.0),
            full_steps_s=busy[number],
            batch_area_s=areas[number],
            blocks_peak=facts.blocks_peak,
            blocks_total=facts.blocks_total,
            prefix=facts.prefix,
        )
        for number, facts in enumerate(fleet.replicas)
    )


def ready_s(fleet: FleetRecord, replica: int, run: Window) -> float:
    """Return how long a replica was ready or draining during a run, in seconds."""
    own = fleet.lives["replica"] == replica
    times_s = np.clip(np.append(fleet.lives["time_s"][own], run.end_s), run.start_s, run.end_s)
    runs = np.array([state in RUNS for state in fleet.lives["state"][own]], dtype=np.bool_)
    return float(np.diff(times_s)[runs].sum())


def ready_s_of_all(fleet: FleetRecord, run: Window) -> float:
    """Return the ready time of all replicas together."""
    return math.fsum(ready_s(fleet, number, run) for number in range(len(fleet.replicas)))


def _step_times(recording: Recording, replicas: int, end_s: float) -> tuple[list[float], list[float]]:
    """Return the busy time of each replica, and that time multiplied by the requests in each step."""
    busy, areas = ([_ExactSum() for _ in range(replicas)] for _ in range(2))
    for steps in recording.steps.parts("replica", "start_s", "duration_s", "decode_seqs", "prefill_seqs"):
        part_s = metrics.busy_s(steps, end_s)
        area = part_s * (steps["decode_seqs"] + steps["prefill_seqs"])
        order = np.argsort(steps["replica"], kind="stable")
        numbers, starts = np.unique(steps["replica"][order], return_index=True)
        for number, own in zip(numbers.tolist(), np.split(order, starts[1:]), strict=False):
            busy[number].add(part_s[own])
            areas[number].add(area[own])
    return [one.total for one in busy], [one.total for one in areas]


class _ExactSum:
    """A sum that does not depend on how its numbers are cut: each part leaves its sum, and what that lacks."""

    def __init__(self) -> None:
        self._parts: list[float] = []

    def add(self, values: Floats) -> None:
        """Add a part."""
        rounded = math.fsum(values.data)
        self._parts += [rounded, math.fsum([*values.tolist(), -rounded])]

    @property
    def total(self) -> float:
        """The sum so far."""
        return math.fsum(self._parts)


# -- the summary ---------------------------------------------------------------------------------------------------


def fleet_columns(recording: Recording, inside: Mask) -> Row:
    """Return the columns of a fleet about requests, those in the mask; without a fleet they are undefined."""
    fleet, requests = recording.fleet, recording.requests
    if fleet is None:
        return dict.fromkeys(FLEET_TYPES)
    wait_s = (requests["routed_s"] - requests["arrival_s"])[inside]
    failed = np.zeros(len(inside), dtype=np.bool_)
    failed[fleet.stays["request"]] = True
    return dict.fromkeys(FLEET_TYPES) | {
        "mean_router_ms": metrics.mean(1000 * wait_s[~np.isnan(wait_s)]),
        "resent": int(np.sum(requests["resent"][inside])),
        "lost": int(np.sum(inside & failed & metrics.has_status(requests, Status.REJECTED))),
        "discarded_tokens": int(np.sum(requests["discarded_tokens"][inside])),
    }


def balance(uses: Sequence[Use]) -> Row:
    """Return how many replicas there are, and how unequally they were used; without any it is undefined."""
    return {
        "replicas": len(uses) or None,
        "imbalance_load": imbalance(use.busy_share for use in uses),
        "imbalance_kv": imbalance(use.kv_peak_share for use in uses),
    }


def imbalance(shares: Iterable[float | None]) -> float | None:
    """Return the largest share over the mean; None if there is none above 0."""
    known = [value for value in shares if value is not None]
    return metrics.share(max(known) * len(known), math.fsum(known)) if known else None


# -- groups --------------------------------------------------------------------------------------------------------

_GROUP: Final = "group "
"""Begin of the labels of requests by group: a group can have the name of something else, such as ``all``."""


def group_labels(recording: Recording) -> NDArray[Any]:
    """Return the label of each request's group: that of its last replica; None if it never got to one."""
    fleet, numbers = recording.fleet, recording.requests["replica"]
    labels = np.full(len(numbers), None, dtype=object)
    for name, members in {} if fleet is None else members_of(fleet).items():
        labels[np.isin(numbers, members)] = f"{_GROUP}{name}"
    return labels


def members_of(fleet: FleetRecord) -> dict[str, list[int]]:
    """Return the numbers of the replicas of each group."""
    return {
        name: [number for number, facts in enumerate(fleet.replicas) if facts.group == name] for name in fleet.groups
    }


def group_rows(recording: Recording, run: Window | None, row_of: Callable[[str, Mask], Row]) -> list[Row]:
    """Return a row for each group: what `row_of` says about its requests, and how its replicas were used."""
    fleet = recording.fleet
    if fleet is None:
        return []
    uses, labels = uses_of(recording, run), group_labels(recording)
    rows = []
    for name, members in members_of(fleet).items():
        own = [uses[number] for number in members]
        label = f"{_GROUP}{name}"
        inside = np.asarray(labels == label, dtype=np.bool_)
        rows.append(row_of(label, inside) | together(own) | balance(own))
    return rows


def group_of(label: object) -> str:
    """Return the name of a group from its label."""
    return str(label).removeprefix(_GROUP)
