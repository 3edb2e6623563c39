"""The latencies of a summary row: which statistics there are, in which columns, and which columns are optional."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from simqueue.request import Status
from simqueue.results import metrics
from simqueue.results.fleets import FLEET_TYPES
from simqueue.results.metrics import Floats, Latencies, Mask

if TYPE_CHECKING:
    from simqueue.results.summary import Row

ALWAYS: Final = (50.0, 95.0, 99.0)
"""The percentiles that every summary has."""
OF_ALL: Final = ("ttft", "tpot", "itl", "e2el")
OF_CLIENTS: Final = ("client_wait", "wanted_ttft", "wanted_e2el")
"""Latencies that have columns only if a request waited at its client."""

OVERLOADED_SHARE: Final = "overloaded_share"
"""Column with the share of the time in which more requests arrive than can be served."""
CAPACITY: Final = "capacity_rps"
"""Column with the requests per second that can be served."""
MODEL_ERROR: Final = ("model_error_pct", "model_error_regime")
"""Columns with the expected error of the step times, and with where their preset is used."""
GOOD: Final = "good_share"
"""Column with the share of requests that meet every limit for requests."""
MET: Final = "met_"
"""Begin of the columns that say whether a limit of the run is met."""

_COLUMN: Final = re.compile(rf"(mean|median|p\d{{1,2}}(?:\.\d+)?)_({'|'.join(OF_ALL + OF_CLIENTS)})_ms")


def statistic(percentile: float) -> str:
    """Return how the name of a percentile's columns begins: ``median``, ``p95``, ``p99.9``."""
    return "median" if percentile == 50 else f"p{percentile:g}"


def column(metric: str, percentile: float) -> str:
    """Return the column of a percentile of a latency."""
    return f"{statistic(percentile)}_{metric}_ms"


def parsed(name: str) -> tuple[float | None, str] | None:
    """Return percentile and metric of a column or of an SLO, the percentile None for a mean; None if it is neither."""
    found = _COLUMN.fullmatch(name)
    if found is None:
        return None
    kind, metric = found.groups()
    percentile = None if kind == "mean" else 50.0 if kind == "median" else float(kind[1:])
    return None if percentile == 0 else (percentile, metric)


@dataclass(frozen=True, slots=True)
class Extras:
    """What a summary has besides the columns of every summary.

    Attributes
    ----------
    percentiles : tuple of float
        Further percentiles, 0 to 100, in ascending order.
    clients : bool
        Whether there are columns about waits at the client.
    good : bool
        Whether there is a column with the share of good requests.
    rushes : bool
        Whether there are columns with the capacity, and the share of the time in which more arrives.
    fleets : bool
        Whether there are columns about replicas behind a router.
    """

    percentiles: tuple[float, ...] = ()
    clients: bool = False
    good: bool = False
    rushes: bool = False
    fleets: bool = False

    @classmethod
    def of(cls, percentiles: Iterable[float], *, clients: bool, good: bool, rushes: bool, fleets: bool) -> Extras:
        """Return these columns, without those of the percentiles that every summary has."""
        return cls(tuple(sorted(set(percentiles) - set(ALWAYS))), clients, good, rushes, fleets)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the further columns."""
        names = [GOOD] if self.good else []
        names += [column(metric, q) for metric in OF_ALL for q in self.percentiles]
        if self.clients:
            kinds = ["mean", *map(statistic, (*ALWAYS, *self.percentiles))]
            names += [f"{kind}_{metric}_ms" for metric in OF_CLIENTS for kind in kinds]
        names += [CAPACITY, OVERLOADED_SHARE] if self.rushes else []
        names += FLEET_TYPES if self.fleets else ()
        return tuple(name for name in names if name != "mean_client_wait_ms")  # every summary has it


NO_EXTRAS: Final = Extras()


def anything_waited(requests: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether a request waited at its client, for a free connection or for a retry."""
    return bool(metrics.client_wait_s(requests).any())


def samples_ms(requests: Mapping[str, NDArray[Any]], measured: Mask, extras: Extras) -> dict[str, Floats]:
    """Return the latencies that requests have, in order of arrival, over finished requests among the measured ones.

    TPOT is of those with more than one token.
    """
    done = measured & metrics.has_status(requests, Status.FINISHED)
    found = Latencies(requests)
    tpot_s, ttft_s, e2el_s = found.tpot_s[done], found.ttft_s[done], found.e2el_s[done]
    samples_s = {"ttft": ttft_s, "tpot": tpot_s[~np.isnan(tpot_s)], "e2el": e2el_s}
    if extras.clients:
        wait_s = metrics.client_wait_s(requests)[done]
        samples_s |= {"client_wait": wait_s, "wanted_ttft": wait_s + ttft_s, "wanted_e2el": wait_s + e2el_s}
    return {metric: 1000 * sample_s for metric, sample_s in samples_s.items()}


def per_request(requests: Mapping[str, NDArray[Any]], measured: Mask, extras: Extras) -> Row:
    """Return the statistics of the latencies that each request has, over finished requests among the measured ones."""
    done = measured & metrics.has_status(requests, Status.FINISHED)
    samples = samples_ms(requests, measured, extras)
    row: Row = {
        "measured_requests": int(np.sum(done)),
        "tpot_excluded": int(np.sum(done)) - len(samples["tpot"]),
        "mean_queue_ms": metrics.mean(1000 * Latencies(requests).queue_s[done]),
        "mean_client_wait_ms": metrics.mean(1000 * metrics.client_wait_s(requests)[done]),
    }
    levels = (*ALWAYS, *extras.percentiles)
    for metric, sample_ms in samples.items():
        row |= _statistics(metric, sample_ms, levels)
    return row


def _statistics(metric: str, sample_ms: Floats, levels: Sequence[float]) -> Row:
    return named(metric, metrics.mean(sample_ms), levels, [metrics.percentile(sample_ms, q) for q in levels])


def named(metric: str, mean: float | None, levels: Sequence[float], percentiles: Sequence[float | None]) -> Row:
    """Return the mean and percentiles of a latency by their columns."""
    return {f"mean_{metric}_ms": mean, **{column(metric, q): p for q, p in zip(levels, percentiles, strict=True)}}
