"""The part of a run that its summary describes: the whole run, or the window after a warm-up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simqueue.results.metrics import Floats, Integers, Mask
from simqueue.simulation.recording import Recording

Requests = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Window:
    """A window of time in which a run is taken to be steady.

    Attributes
    ----------
    start_s : float
        End of the warm-up.
    end_s : float
        When the traffic ends, or the run.
    ended_by : str
        The workload whose end ends it; empty if all workloads end then.
    traffic_s : float
        When the last of the workloads ends, or the run.
    """

    start_s: float
    end_s: float
    ended_by: str = ""
    traffic_s: float = 0.0

    @property
    def left_out(self) -> float:
        """Share of the time with traffic after the warm-up that comes after the window; 0 without any."""
        rest_s = self.traffic_s - self.end_s
        return rest_s / (self.traffic_s - self.start_s) if self.ended_by and rest_s > 0 else 0.0

    @property
    def duration_s(self) -> float:
        """Length of the window; 0 if the traffic ends before the warm-up does."""
        return max(0.0, self.end_s - self.start_s)

    def arrived(self, requests: Requests) -> Mask:
        """Return a mask of the requests that arrive in the window, both ends included."""
        arrival_s = requests["arrival_s"]
        return np.asarray((arrival_s >= self.start_s) & (arrival_s <= self.end_s), dtype=np.bool_)

    def left(self, requests: Requests) -> Mask:
        """Return a mask of the requests that leave after the start of the window, up to its end."""
        finish_s = requests["finish_s"]
        return np.asarray((finish_s > self.start_s) & (finish_s <= self.end_s), dtype=np.bool_)


def steady_window(recording: Recording, warmup_s: float, ends_s: Mapping[str, float] | None = None) -> Window:
    """Return the window after a warm-up: to the end of the traffic, or to the horizon if it comes first.

    Several workloads are a steady mixture only while all of them send requests. So the first one that ends after the
    warm-up ends the window. Workloads that have ended before are no part of it.

    Parameters
    ----------
    recording : Recording
    warmup_s : float
    ends_s : mapping of str to float, optional
        When each workload ends; infinity if the horizon ended it. By default the last arrival ends the only one.
    """
    given_s = ends_s or {"": last_entry_s(recording.requests)}
    known_s = {name: min(end_s, recording.end_s) for name, end_s in given_s.items()}
    going_s = {name: end_s for name, end_s in known_s.items() if end_s > warmup_s} or known_s
    first = min(going_s, key=lambda name: going_s[name])
    last_s = max(going_s.values())
    return Window(warmup_s, going_s[first], first if going_s[first] < last_s else "", last_s)


def last_entry_s(requests: Requests) -> float:
    """Return when the last request arrived that keeps the traffic up (`entries`); 0 without any request."""
    arrival_s = requests["arrival_s"][entries(requests)]
    return float(arrival_s.max()) if len(arrival_s) else 0.0


def entries(requests: Requests) -> Mask:
    """Return a mask of the requests that keep the traffic up: first attempts of requests, and first turns of sessions.

    What follows them, such as later turns, can come after the traffic has ended. Users of a closed loop count only if
    there is no other traffic, because they go on after it has ended.
    """
    found = np.ones(len(requests["arrival_s"]), dtype=np.bool_)
    if "attempt" in requests:
        found &= np.asarray(requests["attempt"] == 0, dtype=np.bool_)
    if "session" in requests:
        found &= _first_turns(requests["session"])
    if "client" in requests:
        open_loop = found & np.array([label is None for label in requests["client"]], dtype=np.bool_)
        return open_loop if open_loop.any() else found
    return found


def _first_turns(sessions: NDArray[Any]) -> Mask:
    """Return a mask of the requests of no session, and of the first of each session."""
    seen: set[Any] = set()
    found = np.ones(len(sessions), dtype=np.bool_)
    for i, session in enumerate(sessions.tolist()):
        if session is not None:
            found[i] = session not in seen
            seen.add(session)
    return found


class TokensMade:
    """Counts the output tokens that a run made until a time, by request.

    A request that runs gets one token a step. So the tokens between its first and its last are spread evenly over the
    steps between them. This is exact unless a step in between gave it none, as after a preemption.

    Parameters
    ----------
    recording : Recording
    """

    def __init__(self, recording: Recording) -> None:
        self._requests = recording.requests
        self._steps = _StepCount(recording)

    def until(self, time_s: float) -> Floats:
        """Return how many tokens each request had got by a time, shape (n_requests,)."""
        first_s, last_s = self._requests["first_token_s"], self._requests["last_token_s"]
        emitted: Integers = self._requests["tokens_emitted"]
        made = np.where(last_s <= time_s, emitted, 0).astype(np.float64)
        halfway = np.flatnonzero((first_s <= time_s) & (last_s > time_s))
        if len(halfway):
            start, end = (self._steps.ended_by(times_s[halfway]) for times_s in (first_s, last_s))
            now = self._steps.ended_by(np.array([time_s]))[0]
            passed = np.divide(now - start, end - start, out=np.zeros(len(halfway)), where=end > start)
            made[halfway] = 1 + np.clip(passed, 0, 1) * np.maximum(emitted[halfway] - 1, 0)
        return made


class _StepCount:
    """How many steps have ended by a time. Steps of a row get longer, or shorter, by the same amount each."""

    _SLACK: Final = 1e-6
    """Share of a step by which its computed end may come late."""

    def __init__(self, recording: Recording) -> None:
        names = ("start_s", "duration_s", "repeat", "last_step_s")
        parts = [[part[name] for name in names] for part in recording.steps.parts(*names)]
        columns: list[NDArray[Any]] = [np.concatenate([part[i] for part in parts] or [np.empty(0)]) for i in range(4)]
        self._start_s, self._duration_s, self._repeat, self._last_s = columns
        self._before = np.concatenate([[0], np.cumsum(self._repeat)])

    def ended_by(self, times_s: Floats) -> Floats:
        """Return the number of steps that ended at or before each time."""
        rows = np.searchsorted(self._start_s, times_s, side="right") - 1
        found = np.zeros(len(times_s))
        inside = rows >= 0
        rows = rows[inside]
        found[inside] = self._before[rows] + self._of_row(rows, times_s[inside])
        return found

    def _of_row(self, rows: Integers, times_s: Floats) -> Floats:
        n = self._repeat[rows].astype(np.float64)
        passed_s = times_s - self._start_s[rows]
        mean_s, last_s = self._duration_s[rows] / n, self._last_s[rows]
        growth_s = np.divide(2 * (last_s - mean_s), n - 1, out=np.zeros(len(rows)), where=n > 1)
        first_s = last_s - growth_s * (n - 1)
        # k steps take first k + growth k (k - 1) / 2
        b = first_s - growth_s / 2
        root = np.sqrt(np.maximum(b * b + 2 * growth_s * passed_s, 0))
        steps = 2 * passed_s / np.maximum(b + root, np.finfo(np.float64).tiny)
        return np.asarray(np.clip(np.floor(steps + self._SLACK), 0, n))
