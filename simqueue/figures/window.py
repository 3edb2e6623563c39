"""Which part of a run figures of single steps show: a chosen one, or the busiest one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.figures.view import steps_of_one

if TYPE_CHECKING:
    import pandas as pd

    from simqueue.figures.view import ResultView

Window = tuple[float, float]
"""Start and end of a part of a run, in seconds."""
Floats = NDArray[np.float64]

_MOST_ROWS: Final = 400
"""So many rows of the steps table can be told apart in a figure."""
_STARTS: Final = 500


def busiest_window(result: ResultView, most_rows: int = _MOST_ROWS) -> Window | None:
    """Return the part of a run with the most requests in the system; None if the whole run can be shown.

    In the part, no policy has more than `most_rows` rows of steps. Requests in the system are those that wait or run,
    averaged over the part and taken relative to the policy's highest average; all policies count the same.
    """
    courses = [_Course(steps_of_one(result, policy)) for policy in result.policies]
    courses = [course for course in courses if len(course.start_s)]
    if not any(len(course.start_s) > most_rows for course in courses):
        return None
    first = min(float(course.start_s[0]) for course in courses)
    last = max(float(course.end_s[-1]) for course in courses)
    starts = np.linspace(first, last, _STARTS, endpoint=False)
    ends = np.min([course.ends_after(starts, most_rows, last) for course in courses], axis=0)
    # A part that is cut by the end of the run would be shorter than the others.
    ends = np.where(ends >= last, np.inf, ends)
    full = np.isfinite(ends)
    starts, ends = (starts[full], ends[full]) if full.any() else (starts[:1], np.array([last]))
    busy = np.sum([course.relative(starts, ends) for course in courses], axis=0)
    best = int(np.argmax(busy))
    return float(starts[best]), float(ends[best])


def parsed_window(text: str) -> Window:
    """Return the window that `text` describes, such as ``60:75``, in seconds.

    Raises
    ------
    InputError
        If it is not START:END with 0 <= START < END.
    """
    start, colon, end = text.partition(":")
    try:
        window = float(start), float(end)
    except ValueError:
        window = (0.0, 0.0)
    if not colon or not 0 <= window[0] < window[1] < float("inf"):
        raise InputError(f"--window {text}: must be START:END in seconds with 0 <= START < END, such as 60:75")
    return window


def check_window(result: ResultView, window: Window) -> None:
    """Raise InputError if a window starts after the last step of a run."""
    steps = result.steps
    last_s = float((steps["start_s"] + steps["duration_s"]).max()) if len(steps) else 0.0
    if window[0] >= last_s:
        raise InputError(f"--window {window[0]:g}:{window[1]:g}: the last step of the run ends at {last_s:.4g} s")


class _Course:
    """The requests of one policy in the system over time."""

    def __init__(self, steps: pd.DataFrame) -> None:
        self.start_s: Floats = steps["start_s"].to_numpy(dtype=np.float64)
        self.end_s: Floats = self.start_s + steps["duration_s"].to_numpy(dtype=np.float64)
        present = (steps["running"] + steps["waiting"]).to_numpy(dtype=np.float64)
        edges = np.column_stack([self.start_s, self.end_s]).ravel()
        area = np.column_stack([np.zeros(len(steps)), present * (self.end_s - self.start_s)]).ravel()
        self._edges, self._area = edges, np.cumsum(area)

    def ends_after(self, starts: Floats, rows: int, last: float) -> Floats:
        """Return when `rows` further rows have started after each of these times, or `last` if there are fewer."""
        at = np.searchsorted(self.start_s, starts) + rows
        found: Floats = np.append(self.start_s, last)[np.minimum(at, len(self.start_s))]
        return found

    def relative(self, starts: Floats, ends: Floats) -> Floats:
        """Return the average number of requests in each part, divided by the largest of them."""
        areas = np.interp(ends, self._edges, self._area) - np.interp(starts, self._edges, self._area)
        average: Floats = areas / (ends - starts)
        most = float(average.max(initial=0.0))
        return average / most if most > 0 else average
