"""Intervals of single runs as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from simqueue.results.onerun import OneRunInterval


def interval_lines(found: Sequence[OneRunInterval]) -> Iterator[str]:
    """Return a heading per policy, a line per interval, and a line per reason with the metrics that it concerns."""
    for policy, group in groupby(found, lambda one: (one.policy, one.method)):
        yield f"{policy[0]}: 95 % intervals of this run ({policy[1]})"
        reasons: dict[str, list[str]] = {}
        for one in group:
            if one.reason:
                reasons.setdefault(one.reason, []).append(one.metric)
            else:
                yield f"  {one.metric} = {one.estimate:.6g}, from {one.low:.6g} to {one.high:.6g} ({one.based_on})"
        for reason, metrics in reasons.items():
            yield f"  no interval of {', '.join(metrics)}: {reason}"
