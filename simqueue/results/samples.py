"""The latencies of several runs of one policy, for statistics over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from simqueue.results.latencies import Extras, parsed, samples_ms
from simqueue.results.metrics import Floats
from simqueue.results.pooling import Pairs, pooled_statistics
from simqueue.results.summary import members
from simqueue.statistics.estimate import Estimate, estimate

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
    """

    def __init__(self, recording: Recording, window: Window | None, request_class: str | None, extras: Extras) -> None:
        self._recording, self._window, self._class, self._extras = recording, window, request_class, extras

    @cached_property
    def values_ms(self) -> dict[str, Floats]:
        """The values of each latency in order of arrival; nothing if the run has no request of the class."""
        requests = self._recording.requests
        inside = next((mask for name, mask in members(requests["request_class"]) if name == self._class), None)
        if inside is None:
            return {}
        measured = inside if self._window is None else inside & self._window.arrived(requests)
        return samples_ms(requests, measured, self._extras)

    def gaps_ms(self) -> Iterator[Pairs]:
        """Yield the gaps between tokens, and how many tokens came after each."""
        for part in self._recording.gaps.parts("gap_s", "tokens"):
            yield 1000 * part["gap_s"], part["tokens"]


class Samples:
    """The latencies behind the rows of one policy and request class.

    Parameters
    ----------
    runs : sequence of RunSamples
        In order of replications.
    """

    def __init__(self, runs: Sequence[RunSamples]) -> None:
        self._runs = runs

    def of(self, metric: str) -> list[Floats]:
        """Return the values of a latency in milliseconds, one array per replication in order of arrival."""
        return [run.values_ms[metric] for run in self._runs if metric in run.values_ms]

    def percentile(self, column: str) -> float | None:
        """Return a percentile of the observations of all replications together; None without any."""
        q, metric = parsed(column) or (None, "")
        if q is None:
            return None
        if metric == ITL:
            return pooled_statistics(self._gaps_ms, [q]).percentiles[0]
        values = self.of(metric)
        pooled = np.concatenate(values) if values else np.empty(0)
        return float(np.percentile(pooled, q)) if len(pooled) else None

    def _gaps_ms(self) -> Iterator[Pairs]:
        for run in self._runs:
            yield from run.gaps_ms()

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
