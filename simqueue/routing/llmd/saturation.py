"""Whether a fleet is full, by llm-d's detectors."""

from __future__ import annotations

from collections.abc import Sequence

from simqueue.routing.base import Signal, View
from simqueue.routing.llmd.keys import Saturation


def saturation(replicas: Sequence[View], settings: Saturation, now_s: float) -> float:
    """Return how full the replicas are together; from 1 on they are full."""
    if settings.kind == "utilization-detector":
        return sum(_utilization(one, settings, now_s) for one in replicas) / len(replicas)
    if settings.concurrency_mode == "tokens":
        return sum(one.in_flight_tokens for one in replicas) / (settings.max_token_concurrency * len(replicas))
    return sum(one.in_flight for one in replicas) / (settings.max_concurrency * len(replicas))


def reads(settings: Saturation) -> frozenset[Signal]:
    """Return the signals that the detector reads."""
    return frozenset({Signal.WAITING, Signal.KV_USED} if settings.kind == "utilization-detector" else ())


def _utilization(replica: View, settings: Saturation, now_s: float) -> float:
    """Return how full a replica is by its queue or its KV pool; full if that is not known recently enough."""
    if now_s - replica.seen_s > settings.metrics_staleness_threshold:
        return 1.0
    return max(replica.waiting / settings.queue_depth_threshold, replica.kv_used / settings.kv_cache_util_threshold)
