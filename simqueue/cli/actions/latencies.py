"""The flags that choose the latencies and percentiles of the table: ``--metrics`` and ``--percentiles``."""

from __future__ import annotations

from typing import get_args

from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.scenario.summary import LatencyName


def summary_overrides(percentiles: str | None, metrics: str | None) -> list[str]:
    """Return the flags as ``KEY=VALUE``, as given with ``--set``.

    Parameters
    ----------
    percentiles, metrics : str, optional
        Lists with commas, such as ``50,90,99`` and ``ttft,itl``.

    Raises
    ------
    InputError
        If an entry is not allowed; the error names the flag.
    """
    found = []
    if percentiles is not None:
        found.append(f"summary.percentiles=[{', '.join(map(_percentile, percentiles.split(',')))}]")
    if metrics is not None:
        found.append(f"summary.metrics=[{', '.join(map(_latency, metrics.split(',')))}]")
    return found


def _percentile(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 100:
        raise InputError(f"--percentiles: '{text.strip()}' must be a number > 0 and < 100")
    return repr(value)


def _latency(text: str) -> str:
    name = text.strip()
    if name not in get_args(LatencyName):
        raise InputError(f"--metrics: {unknown('latency', name, get_args(LatencyName))}")
    return name
