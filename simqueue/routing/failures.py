"""What happens to the replicas of a fleet, and to the requests at a replica that fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

InFlight = Literal["lose", "resend", "restart", "resume"]
"""What happens to the requests at a replica that fails: they are lost; those without a token are sent again, and the
others are lost; all are sent again from the beginning; all are sent again, and keep their tokens."""


@dataclass(frozen=True, slots=True)
class FleetEvent:
    """Something that happens to a replica at a given time.

    Attributes
    ----------
    at_s : float
    replica : int
        Its number in the fleet.
    kind : {"fail", "drain", "start"}
    repair_s : float or None
        Time until a replica that fails is back; None: it stays down.
    deadline_s : float or None
        Time until what is left at a replica that drains is ended; None: never.
    """

    at_s: float
    replica: int
    kind: Literal["fail", "drain", "start"]
    repair_s: float | None = None
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True)
class RandomFailures:
    """Failures of each replica by itself, with exponential times between.

    Attributes
    ----------
    mtbf_s : float
        Mean time from the start or the repair of a replica to its next failure.
    repair_s : float
        Mean time until it is back.
    """

    mtbf_s: float
    repair_s: float
