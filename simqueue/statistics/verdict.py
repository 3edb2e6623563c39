"""What is said about overload: a capacity law and what a run shows, weighed against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from simqueue.statistics.overload import Evidence, Sign
from simqueue.statistics.stays import Stays

CONFIRMED: Final = 0.9
"""Share of the capacity that a run has to reach to confirm the law."""
LAW_ERROR: Final = 0.03
"""Relative error of the capacity law where it has no caution; nearer to a load of 1 the law does not outweigh a run."""
SHORT_STAY: Final = 0.03
"""Share of a run up to which its longest stay says by itself that nothing grows: a queue that grows at a load of
1 + x makes the last request stay for about x of the run."""
AS_LONG: Final = 0.9
"""Share of the longest stay that is as long. In the first half of a queue that grows, no stay is much longer than half
of those at the end."""
LEVEL: Final = 1.5
"""Growth of the mean number of requests from the second quarter of a run to the last one, up to which it is level. A
number that grows evenly grows by 2.3."""


@dataclass(frozen=True, slots=True)
class Law:
    """What a capacity law says about a run.

    Attributes
    ----------
    load : float or None
        Arrival rate over capacity; None if it is not known.
    capacity_rps : float or None
        Requests per second that can be served.
    doubtful : bool
        Whether the law has a caution.
    """

    load: float | None = None
    capacity_rps: float | None = None
    doubtful: bool = False

    @property
    def stable(self) -> bool:
        """Whether the load is surely below 1."""
        return self.load is not None and not self.doubtful and self.load <= 1 - LAW_ERROR

    def confirmed_by(self, found: Evidence | None) -> bool:
        """Return whether the fullest part of a run did as much as the capacity: then its requests only came early."""
        return found is not None and self.capacity_rps is not None and found.done_rps >= CONFIRMED * self.capacity_rps


def is_overloaded(law: Law, found: Evidence | None, *, dependent: bool = False) -> bool | None:
    """Return whether more work comes than can be done: the load is at least 1, or a run shows it.

    Parameters
    ----------
    law : Law
    found : Evidence or None
    dependent : bool
        Whether some requests wait for earlier responses before they arrive, which bounds their number. Then work shows
        overload only while it piles up, and never its absence.

    Returns
    -------
    bool or None
        None if it cannot be told.
    """
    sign = Sign.UNCLEAR if found is None or (dependent and not found.growing) else found.sign
    if law.load is not None and law.load >= 1 and not (law.doubtful and sign is Sign.NONE):
        return True
    if law.stable and (sign is not Sign.STRONG or law.confirmed_by(found)):
        return False
    if sign in (Sign.STRONG, Sign.WEAK):
        return True
    return False if sign is Sign.NONE and not dependent else None


def is_bounded(stays: Stays) -> bool:
    """Return whether requests that leave without an answer keep the number in the system from growing.

    Where clients give up, or a full queue refuses requests, there is a steady state whatever the load. It is reached in
    a run if some left so, and if one of these holds: no request stayed for long; some left so in the first half of the
    arrivals, and a full queue refused them, or stays became hardly longer after it; or the number in the system was
    level from the second quarter of the arrivals to the last one.
    """
    if not stays.lost.any():
        return False
    start_s, end_s = float(np.min(stays.arrival_s)), float(np.max(stays.arrival_s))
    span_s = end_s - start_s
    if span_s <= 0:
        return False
    stayed_s = stays.gone_s - stays.arrival_s
    longest_s = float(np.max(stayed_s))
    early = stays.gone_s <= start_s + span_s / 2
    left = stays.lost & early
    as_long = float(np.max(stayed_s, where=early, initial=0.0)) >= AS_LONG * longest_s
    if longest_s <= SHORT_STAY * span_s or (stays.refused & early).any() or (as_long and left.any()):
        return True
    spent = np.diff(stays.spent(np.linspace(start_s, end_s, 5)))
    return bool(spent[3] <= LEVEL * spent[1])


def majority(flags: Sequence[object]) -> bool | None:
    """Return what more than half of several runs say; None if neither answer has as many."""
    for answer in (True, False):
        if 2 * sum(flag is answer for flag in flags) > len(flags):
            return answer
    return None
