"""The latencies of several runs of one policy, for statistics over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from simqueue.results.classes import RequestClasses
from simqueue.results.latencies import Extras, parsed, samples_ms
from simqueue.results.metrics import Floats
from simqueue.results.pooling import Pairs, pooled_percentiles
from simqueue.statistics.estimate import estimate
from simqueue.statistics.intervals import Estimate

if TYPE_CHECKING:
    from simqueue.results.window import Window
    from simqueue.simulation.recording import Recording

ITL = "itl"


def of_requests(column: str) -> bool:
    """Return whether a column is a mean or a percentile of a latency that has one value per request."""
    found = parsed(column)
    return found is not None and found[1] != ITL


class RunSamples:
    """The latencies behind a row of one run, which are read once.

    Parameters
    ----------
    recording : Recording
    window : Window or None
        With a window, the requests that arrive in it; gaps between tokens are of the whole run.
    request_class : str or None
        ``all``, or a class.
    extras : Extras
    classes : RequestClasses, optional
        Those of the run, if they are known already.
    """

    def __init__(
        self,
        recording: Recording,
        window: Window | None,
        request_class: str | None,
        extras: Extras,
        classes: RequestClasses | None = None,
    ) -> None:
        self.recording = recording
        self._window, self._class, self._extras = window, request_class, extras
        self._classes = classes or RequestClasses(recording.requests["request_class"])

    @cached_property
    def values_ms(self) -> dict[str, Floats]:
        """The values of each latency in order of arrival; nothing if the run has no request of the class."""
        requests = self.recording.requests
        inside = self._classes.mask(self._class)
        if inside is None:
            return {}
        measured = inside if self._window is None else inside & self._window.arrived(requests)
        return samples_ms(requests, measured, self._extras)


class Gaps:
    """The gaps between tokens of several runs, which are read in parts: they can exceed the memory.

    Parameters
    ----------
    recordings : sequence of Recording
    levels : sequence of float
        Percentiles to compute together, 0 to 100.
    """

    def __init__(self, recordings: Sequence[Recording], levels: Sequence[float] = ()) -> None:
        self._recordings = recordings
        self._percentiles = _Percentiles(self._pooled, levels)

    def percentile(self, q: float) -> float | None:
        """Return a percentile of all gaps in milliseconds; None without any."""
        return self._percentiles.at(q)

    def _pooled(self, levels: Sequence[float]) -> Sequence[float | None]:
        return pooled_percentiles(self._pairs_ms, levels)

    def _pairs_ms(self) -> Iterator[Pairs]:
        """Yield the gaps, and how many tokens came after each."""
        for recording in self._recordings:
            for part in recording.gaps.parts("gap_s", "tokens"):
                yield 1000 * part["gap_s"], part["tokens"]


class Samples:
    """The latencies behind the rows of one policy and request class.

    Parameters
    ----------
    runs : sequence of RunSamples
        In order of replications.
    levels : sequence of float
        Percentiles to compute together, 0 to 100.
    gaps : Gaps, optional
        Those of the runs, if they are known already.
    """

    def __init__(self, runs: Sequence[RunSamples], levels: Sequence[float] = (), gaps: Gaps | None = None) -> None:
        self._runs, self._levels = runs, levels
        self._gaps = gaps or Gaps([run.recording for run in runs], levels)
        self._percentiles: dict[str, _Percentiles] = {}

    def of(self, metric: str) -> list[Floats]:
        """Return the values of a latency in milliseconds, one array per replication in order of arrival."""
        return [run.values_ms[metric] for run in self._runs if metric in run.values_ms]

    def percentile(self, column: str) -> float | None:
        """Return a percentile of the observations of all replications together; None without any."""
        q, metric = parsed(column) or (None, "")
        if q is None:
            return None
        if metric == ITL:
            return self._gaps.percentile(q)
        if metric not in self._percentiles:
            self._percentiles[metric] = _Percentiles(partial(self._pooled, metric), self._levels)
        return self._percentiles[metric].at(q)

    def _pooled(self, metric: str, levels: Sequence[float]) -> Sequence[float | None]:
        values = self.of(metric)
        pooled = np.concatenate(values) if values else np.empty(0)
        return np.percentile(pooled, levels).tolist() if len(pooled) else [None] * len(levels)

    def effective_number(self, column: str, found: Estimate) -> float | None:
        """Return how many independent observations would give the standard error of a mean or percentile.

        For a percentile it is that of the share of observations above it. None if the replications do not differ.
        """
        q, metric = parsed(column) or (None, "")
        values = [one for one in self.of(metric) if len(one)]
        if q is None:
            return float(np.concatenate(values).var()) / found.error**2 if found.error else None
        error = estimate([float(np.mean(one > found.value)) for one in values]).error
        return q * (100 - q) / 1e4 / error**2 if error else None


class _Percentiles:
    """Percentiles of a sample, which are computed together when one of them is first asked for."""

    def __init__(self, compute: Callable[[Sequence[float]], Sequence[float | None]], levels: Sequence[float]) -> None:
        self._compute, self._levels = compute, levels
        self._known: dict[float, float | None] = {}

    def at(self, q: float) -> float | None:
        """Return a percentile, 0 to 100; None if the sample is empty."""
        if q not in self._known:
            levels = sorted({*self._levels, q})
            self._known.update(zip(levels, self._compute(levels), strict=True))
        return self._known[q]
