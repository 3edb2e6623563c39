"""Fleets that queueing theory knows: replicas that serve one request after another, for a time that prompts say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import simqueue as sq
from simqueue.statistics.intervals import Estimate, mean_interval

SERVICE_S: Final = 0.06
_TOKENS: Final = 1000
"""Prompt tokens of a mean service: a geometric number of them is nearly exponential."""
SERVICES: Final[Mapping[str, Mapping[str, Any]]] = {
    "exponential": {"distribution": "geometric", "mean": _TOKENS},
    "constant": {"distribution": "constant", "value": _TOKENS},
}
_WARM_UP: Final = 0.2
"""Share of the time before arrivals count."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is simulated.

    Attributes
    ----------
    requests : int
        Of each replica.
    replications : int
    """

    requests: int
    replications: int


@dataclass(frozen=True, slots=True)
class Played:
    """The requests of one run, in order of arrival.

    Attributes
    ----------
    arrival_s, start_s, end_s : array
    replica : array of int
    warmup_s : float
    """

    arrival_s: NDArray[Any]
    start_s: NDArray[Any]
    end_s: NDArray[Any]
    replica: NDArray[Any]
    warmup_s: float

    @property
    def mean_wait(self) -> float:
        """Mean wait in services of the requests after the warm-up."""
        counts = self.arrival_s >= self.warmup_s
        return float((self.start_s - self.arrival_s)[counts].mean()) / SERVICE_S


def played(
    fleets: Mapping[str, Mapping[str, Any]],
    load: float,
    size: Size,
    service: str = "exponential",
    workers: int = 1,
) -> dict[str, list[Played]]:
    """Simulate fleets of equal size on the same traffic; return the runs of each by name, one for each replication.

    Parameters
    ----------
    fleets : mapping of str to the key ``fleet``
        All with the same number of replicas.
    load : float
        Utilisation of each replica.
    size : Size
    service : str
        A key of `SERVICES`.
    workers : int
        Number of processes. The results are the same.
    """
    result = sq.run(_scenario(fleets, load, size, service), check=False, workers=workers)
    runs: dict[str, list[Played]] = {name: [] for name in fleets}
    for run in result.runs:
        requests = run.recording.requests
        arrival_s, start_s, end_s, replica = (
            np.asarray(requests[name]) for name in ("arrival_s", "first_scheduled_s", "last_token_s", "replica")
        )
        runs[run.policy].append(Played(arrival_s, start_s, end_s, replica, result.warmup_s))
    return runs


def mean_waits(runs: Mapping[str, list[Played]]) -> dict[str, Estimate]:
    """Return the mean wait in services of each fleet, with an interval over the replications."""
    return {name: mean_interval([run.mean_wait for run in own]) for name, own in runs.items()}


def _scenario(fleets: Mapping[str, Mapping[str, Any]], load: float, size: Size, service: str) -> dict[str, Any]:
    servers = next(iter(fleets.values()))["replicas"]
    rate, requests = servers * load / SERVICE_S, servers * size.requests
    policy = {"scheduler": "continuous", "max_num_seqs": 1, "max_num_batched_tokens": 1_000_000}
    step = {"kind": "linear", "overhead_s": 1e-9, "per_decode_s": 0, "per_prefill_token_s": SERVICE_S / _TOKENS}
    return {
        "seed": 7,
        "replications": size.replications,
        "warmup_s": _WARM_UP * requests / rate,
        "step_time": step,
        "kv_cache": {"layout": "paged", "block_size": 16, "blocks": 1_000_000},
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": rate},
            "prompt_tokens": dict(SERVICES[service]),
            "output_tokens": {"distribution": "constant", "value": 1},
            "num_requests": requests,
        },
        "policies": {name: {**policy, "fleet": dict(fleet)} for name, fleet in fleets.items()},
    }
