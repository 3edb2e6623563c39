"""What happened to the requests of a run, wherever they were served: who is inside, and one row for each that ended."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

from simqueue.errors import RunError
from simqueue.request import Job, Status
from simqueue.simulation.columns import Sinks
from simqueue.simulation.requestrows import ENDED_AT_ONCE, FrontEndOf, RequestRows
from simqueue.simulation.stays import whole


class RequestLog:
    """The requests of one run.

    Parameters
    ----------
    front_end : callable, optional
        A request -> what delays its first token on the way to its client.
    routed : bool
        Whether a router chose the replicas: then the table says where each request went and why.

    Attributes
    ----------
    inside : dict of Job to None
        Requests that have arrived and not ended; of each its present stay.
    max_concurrent : int
        The most of them at one time.
    inside_area_s : float
        Their number, integrated over time, up to the last change.
    ended_count : int
    last_end_s : float
    rows : RequestRows
    before_rows : list of callable
        Called before rows are read; completes what jobs know of their tokens.
    """

    def __init__(self, front_end: FrontEndOf | None = None, *, routed: bool = False) -> None:
        self.inside: dict[Job, None] = {}
        self.max_concurrent = 0
        self.inside_area_s = 0.0
        self.ended_count = 0
        self.last_end_s = 0.0
        self.rows = RequestRows(front_end, routed=routed)
        self.before_rows: list[Callable[[], None]] = []
        self._changed_s = 0.0

    def stream_to(self, sinks: Sinks) -> None:
        """Write the table to the sink named requests, instead of keeping it."""
        self.rows.columns.stream_to(sinks("requests"))

    # -- questions -----------------------------------------------------------------------------------------------

    def unseen(self, job: Job) -> bool:
        """Return whether the client of a request whose tokens are all made gives up before it sees the first one."""
        return job.request.gives_up_s is not None and isnan(self.rows.delay_s(whole(job)))

    # -- what happens --------------------------------------------------------------------------------------------

    def arrived(self, job: Job, now_s: float) -> None:
        """Log that `job` has arrived and was not rejected."""
        self._inside_changes(now_s)
        self.inside[job] = None
        self.max_concurrent = max(self.max_concurrent, len(self.inside))

    def goes_on(self, job: Job, successor: Job) -> None:
        """Log that a request goes on with another stay."""
        del self.inside[job]
        self.inside[successor] = None

    def left(self, job: Job, now_s: float, status: Status, reason: str | None = None, replica: int = 0) -> None:
        """Log that `job` ends now.

        Raises
        ------
        RunError
            If it is not inside.
        """
        if job not in self.inside:
            raise RunError(f"'{job.request.request_id}' leaves twice")
        self._inside_changes(now_s)
        del self.inside[job]
        self.ended(job, now_s, status, reason, replica)

    def ended(self, job: Job, now_s: float, status: Status, reason: str | None = None, replica: int = -1) -> None:
        """Log the end of a request that was never inside: rejected at its arrival, or never sent."""
        self.ended_count += 1
        self.last_end_s = now_s
        ended = self.rows.ended
        ended.append((job, status, now_s, reason, replica))
        if len(ended) >= ENDED_AT_ONCE * max(1, len(self.before_rows) // 8):
            self.flush()

    def flush(self) -> None:
        """Read the rows of the requests that have ended."""
        for complete in self.before_rows:
            complete()
        self.rows.flush()

    def _inside_changes(self, now_s: float) -> None:
        self.inside_area_s += len(self.inside) * (now_s - self._changed_s)
        self._changed_s = now_s
