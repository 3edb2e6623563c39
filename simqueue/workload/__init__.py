"""Workloads: where requests come from.

Settings are light to import. `generate` makes requests from them; it needs numpy and scipy.
"""

from simqueue.workload.settings import WorkloadSettings

__all__ = ["WorkloadSettings"]
