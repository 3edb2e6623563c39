"""Arrival processes: when requests arrive. `settings` is light, the other modules need numpy."""

from simqueue.workload.arrivals.settings import ArrivalSettings

__all__ = ["ArrivalSettings"]
