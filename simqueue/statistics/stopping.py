"""The number of replications: checkpoints at which a sequence can stop.

A sequence that may stop after every replication stops where its interval happens to be short, and such intervals cover
less than they promise. So it is looked at only at a few sizes, each half as large again as the one before (Heidelberger
and Welch 1983, Simulation run length control in the presence of an initial transient), and what it shows must hold at
successive checkpoints. The relative error is that of Law 2015, Simulation Modeling and Analysis, section 9.4.
"""

from __future__ import annotations

import math

GROWTH = 1.5
"""Size of a checkpoint over that of the one before."""
IN_A_ROW = 2
"""Successive checkpoints at which a precision must hold."""


def checkpoints(least: int, most: int) -> tuple[int, ...]:
    """Return the numbers of replications at which a sequence can stop, from `least` >= 1 to `most` >= `least`."""
    sizes = [least]
    while sizes[-1] < most:
        sizes.append(min(most, math.ceil(GROWTH * sizes[-1])))
    return tuple(sizes)


def deciding(sizes: tuple[int, ...], made: int) -> tuple[int, ...]:
    """Return the checkpoints that decide whether a sequence can stop after `made` replications.

    Empty if it has not come far enough. If only one number of replications is allowed there is no choice of it, and so
    nothing that must be confirmed.
    """
    passed = [size for size in sizes if size <= made]
    needed = min(IN_A_ROW, len(sizes))
    return tuple(passed[-needed:]) if len(passed) >= needed else ()


def largest_width(relative_error: float) -> float:
    """Return how wide an interval may be, relative to the estimate, so that the estimate has this relative error.

    The error is relative to the true value. If no value of the interval is farther from the estimate than a share w of
    the estimate, it is at most w / (1 - w) of the true value.
    """
    return relative_error / (1 + relative_error)
