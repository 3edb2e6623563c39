"""Whether a run has a steady state, and which parts of its summary describe one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from simqueue.request import Status
from simqueue.results.latencies import CAPACITY, OVERLOADED_SHARE, parsed
from simqueue.results.metrics import has_status
from simqueue.results.signs import stay
from simqueue.statistics.overload import overlap_share
from simqueue.statistics.verdict import Law

if TYPE_CHECKING:
    from simqueue.results.signs import Signs
    from simqueue.results.summary import Row
    from simqueue.simulation.recording import Recording
    from simqueue.steptime.model_error import ModelError

WHOLE_RUN: Final = "whole run"
STEADY: Final = "steady"
_LEAST_FOR_NOTICE: Final = 20
_LEAST_OVERLAP: Final = 0.05


@dataclass(frozen=True, slots=True)
class OfferedLoad:
    """The offered load of a policy.

    Attributes
    ----------
    load : float or None
        Arrival rate over capacity; None if either is unknown.
    binding : str or None
        The resource that limits the capacity: slots, tokens, kv, compute or front end.
    doubtful : bool
        Whether the capacity is less accurate than usual.
    capacity_rps : float or None
        Admitted requests per second that it can serve.
    overloaded_share : float or None
        Share of the time in which more requests arrive than that.
    varies : bool
        Whether the rate of arrivals changes with time.
    model_error : ModelError or None
        The expected error of the step times; None if they were not fitted to measurements.
    """

    load: float | None = None
    binding: str | None = None
    doubtful: bool = False
    capacity_rps: float | None = None
    overloaded_share: float | None = None
    varies: bool = False
    model_error: ModelError | None = None

    @property
    def law(self) -> Law:
        """What this says about overload."""
        return Law(self.load, self.capacity_rps, doubtful=self.doubtful)

    @property
    def rushes(self) -> bool:
        """Whether more requests arrive than can be served in a part of the time that is worth a column."""
        return self.varies and bool(self.overloaded_share)


def judged(rows: list[Row], signs: Signs, offered: OfferedLoad, warmup_s: float) -> list[Row]:
    """Return the rows of one run with load, overload, error of the model, window and warmup_s filled in."""
    error = offered.model_error
    added: Row = {
        "load": offered.load,
        "binding": offered.binding,
        "overloaded": signs.overloaded(offered.law),
        "bounded": signs.bounded,
        "model_error_pct": None if error is None else error.percent,
        "model_error_regime": None if error is None else error.regime,
        "window": STEADY if warmup_s > 0 else WHOLE_RUN,
        "warmup_s": warmup_s,
    }
    if rows and OVERLOADED_SHARE in rows[0]:
        added |= {CAPACITY: offered.capacity_rps, OVERLOADED_SHARE: offered.overloaded_share}
    return [row | added for row in rows]


def unsteady(row: Row) -> bool:
    """Return whether a policy has no steady state: it is overloaded, and nothing keeps its queue from growing."""
    return row["overloaded"] is True and row["bounded"] is not True


def shown(row: Row, *, hidden: bool) -> Row:
    """Return a row; if it has no steady state (`hidden`), without the latencies of one.

    With a warm-up, latencies describe the steady state. With replications, all rows of the policy are treated alike: to
    remove only the replications that look overloaded would bias the mean.
    """
    if not (hidden and row["window"] == STEADY):
        return row
    return {name: None if _is_latency(name) else value for name, value in row.items()}


def _is_latency(name: str) -> bool:
    """Return whether a column is a latency of a steady state, or an end of its interval."""
    plain = name.removeprefix("ci_low_").removeprefix("ci_high_")
    return plain == "mean_queue_ms" or parsed(plain) is not None


def too_light(recordings: list[Recording]) -> str | None:
    """Return a warning if the load is so low in all runs that policies cannot differ.

    Runs with fewer than 20 finished requests do not count: if requests are rejected, few are in the system together.
    """
    shares = [
        overlap_share(*stay(recording)) for recording in recordings if len(recording.requests) and _enough(recording)
    ]
    known = [share for share in shares if share is not None]
    if not known or max(known) >= _LEAST_OVERLAP:
        return None
    return (
        f"at most {100 * max(known):.1f} % of the requests arrived while another request was in the system: at such a "
        "low load policies cannot differ; raise the rate, or use another part of the trace"
    )


def _enough(recording: Recording) -> bool:
    return int(has_status(recording.requests, Status.FINISHED).sum()) >= _LEAST_FOR_NOTICE
