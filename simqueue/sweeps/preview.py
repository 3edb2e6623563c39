"""What a sweep would do: its cells, what is stored of them, and how long the others take."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from simqueue.errors import SimqueueError
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.sweeps.cells import Cells
from simqueue.sweeps.design import Points
from simqueue.sweeps.keys import Keys
from simqueue.sweeps.outcome import played, replications_of
from simqueue.sweeps.running import error_text, reject_hopeless
from simqueue.sweeps.store import Store

_PLAYED: Final = 3
"""Cells that are played for an estimate."""
_REQUESTS: Final = 1000
"""Requests with which they are played, if they have more."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a sweep would do.

    Attributes
    ----------
    cells, stored, missing, alike : int
        Number of cells, of those that are stored, of those to run, and of those that are the same run as another one.
        With the cells that cannot be settled, the last three are all cells.
    rows : int
        Rows of all requests in the table. A cell that cannot be settled has one, with its error.
    least : bool
        Whether there can be more rows, because a precision decides the number of replications.
    errors : tuple of (int, str)
        Number of each cell that cannot be settled, and why.
    seconds : float or None
        Estimated time of the cells to run, one after the other; None if it is not known.
    basis : str
        What the estimate rests on, or why there is none.
    """

    cells: int
    stored: int
    missing: int
    alike: int
    rows: int
    least: bool
    errors: tuple[tuple[int, str], ...]
    seconds: float | None
    basis: str

    def plain(self) -> dict[str, Any]:
        """Return the values by name."""
        errors = [{"cell": number, "error": text} for number, text in self.errors]
        return {
            **{
                name: getattr(self, name)
                for name in ("cells", "stored", "missing", "alike", "rows", "seconds", "basis")
            },
            "errors": errors,
        }


def preview(cells: Cells, points: Points, store: Store) -> Preview:
    """Return what a sweep would do. A few cells are played for the estimate of the time; nothing is stored.

    Raises
    ------
    InputError
        As `run_missing`.
    """
    reject_hopeless(cells, points)
    keys = Keys()
    wanted: dict[str, ResolvedScenario] = {}
    errors: list[tuple[int, str]] = []
    rows, least = 0, False
    for number, values in enumerate(points.values):
        try:
            scenario = cells.settled(values).scenario
            wanted[keys.key(scenario)] = scenario
        except Exception as error:  # as in a sweep
            errors.append((number, error_text(error)))
            rows += 1
            continue
        rows += len(scenario.policies) * replications_of(scenario)
        least = least or scenario.precision is not None
    missing = [scenario for key, scenario in wanted.items() if not store.has(key)]
    seconds, basis = _estimated(missing) if wanted else (None, "no cell can be run")
    return Preview(
        cells=len(points.values),
        stored=len(wanted) - len(missing),
        missing=len(missing),
        alike=len(points.values) - len(errors) - len(wanted),
        rows=rows,
        least=least,
        errors=tuple(errors),
        seconds=seconds,
        basis=basis,
    )


def _estimated(missing: Sequence[ResolvedScenario]) -> tuple[float | None, str]:
    """Return the time of cells, one after the other, and what that rests on."""
    if not missing:
        return 0.0, "all cells that can be run are stored"
    last = len(missing) - 1
    chosen = sorted({round(i * last / (_PLAYED - 1)) for i in range(_PLAYED)})
    taken: list[float] = []
    short = False
    for number in chosen:
        part, factor = _shortened(missing[number])
        short = short or factor > replications_of(missing[number])
        started = time.perf_counter()
        try:
            played(part)
        except SimqueueError as error:
            return None, f"a cell that was played for an estimate fails: {error_text(error)}"
        taken.append(factor * (time.perf_counter() - started))
    cells = "1 cell" if len(chosen) == 1 else f"{len(chosen)} cells"
    how = f"with {_REQUESTS:,} requests each" if short else "once each"
    return math.fsum(taken) / len(taken) * len(missing), f"{cells} played {how}"


def _shortened(scenario: ResolvedScenario) -> tuple[ResolvedScenario, float]:
    """Return a scenario with one replication and not too many requests, and how many times as long the whole takes."""
    once = scenario.with_(precision=None).with_(replications=1)
    factor = float(replications_of(scenario))
    workload = scenario.workload
    if workload is None or workload.arrivals is None:
        return once, factor
    rate_rps = getattr(workload.arrivals, "rate_rps", None)
    counts = [workload.num_requests] if workload.num_requests is not None else []
    if workload.arrivals_for_s is not None and rate_rps is not None:
        counts.append(round(rate_rps * workload.arrivals_for_s))
    if not counts or min(counts) <= _REQUESTS:
        return once, factor
    return once.with_(num_requests=_REQUESTS, warmup_s=0.0), factor * min(counts) / _REQUESTS
