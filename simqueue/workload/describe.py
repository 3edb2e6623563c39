"""Statistics of a workload: rate, burstiness, lengths, shared prefixes. Nothing is simulated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simqueue.request import Request
from simqueue.traffic import Traffic
from simqueue.workload.build import build_arrivals, build_duration, build_lengths
from simqueue.workload.generate import generate
from simqueue.workload.reuse import prefix_reuse
from simqueue.workload.settings import WorkloadSettings

MOST_DESCRIBED = 1_000_000
"""Number of requests that are described; of a longer workload the first ones."""

_TURNS_PER_USER = 50
PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class LengthDescription:
    """Lengths as drawn, and the mean of their distribution (None without a distribution)."""

    tokens: NDArray[np.int64]
    law_mean: float | None

    @property
    def mean(self) -> float | None:
        """Mean of the drawn lengths; None without requests."""
        return float(self.tokens.mean()) if len(self.tokens) else None

    @property
    def percentiles(self) -> dict[int, float] | None:
        """Percentiles of the drawn lengths, by numpy's linear interpolation; None without requests."""
        if not len(self.tokens):
            return None
        return dict(zip(PERCENTILES, np.percentile(self.tokens, PERCENTILES).tolist(), strict=True))

    @property
    def longest(self) -> int | None:
        """Largest drawn length; None without requests."""
        return int(self.tokens.max()) if len(self.tokens) else None


@dataclass(frozen=True, slots=True)
class WorkloadDescription:
    """Statistics of one workload.

    Attributes
    ----------
    name : str
    source : str
        Where its requests come from.
    arrival_s : float64 array or None
        Arrival times of requests (with sessions: of conversations); None if they depend on the answers.
    requests : int
        Number of requests that are described.
    law_rate_rps, law_cv, law_dispersion : float or None
        Mean rate, CV of the gaps and index of dispersion of the arrival process; None if undefined.
    prompt, output : LengthDescription
    prefix_reuse : float or None
        Share of prompt tokens that an unlimited prefix cache could find; None if no request states its tokens.
    notes : tuple of str
    """

    name: str
    source: str
    arrival_s: NDArray[np.float64] | None
    requests: int
    law_rate_rps: float | None
    law_cv: float | None
    law_dispersion: float | None
    prompt: LengthDescription
    output: LengthDescription
    prefix_reuse: float | None
    notes: tuple[str, ...]

    @property
    def span_s(self) -> float | None:
        """Time from the first arrival to the last, in seconds."""
        if self.arrival_s is None or not len(self.arrival_s):
            return None
        return float(self.arrival_s[-1] - self.arrival_s[0])

    @property
    def rate_rps(self) -> float | None:
        """Arrivals per second as drawn: the number of gaps over their sum."""
        span_s = self.span_s
        return (len(self.arrival_s) - 1) / span_s if self.arrival_s is not None and span_s else None

    @property
    def cv(self) -> float | None:
        """Coefficient of variation of the gaps as drawn."""
        if self.arrival_s is None or len(self.arrival_s) < 3 or not self.span_s:
            return None
        gaps = np.diff(self.arrival_s)
        return float(gaps.std() / gaps.mean())


def describe(name: str, settings: WorkloadSettings, *, seed: int, base_dir: Path) -> WorkloadDescription:
    """Return the statistics of a workload in replication 0.

    Raises
    ------
    InputError
        As `simqueue.workload.generate.generate`.
    """
    traffic = generate(settings, seed=seed, base_dir=base_dir)
    requests = list(islice(_requests(traffic), MOST_DESCRIBED))
    sessions = settings.sessions
    process = settings.arrivals if sessions is None else sessions.arrivals
    arrivals = None if process is None else build_arrivals(process, base_dir)
    scv = None if arrivals is None else arrivals.gap_scv
    return WorkloadDescription(
        name,
        _source(settings, traffic, base_dir),
        _arrivals(settings, traffic, requests),
        len(requests),
        None if arrivals is None else arrivals.mean_rate_rps,
        None if scv is None else float(np.sqrt(scv)),
        None if arrivals is None else arrivals.dispersion,
        _lengths(settings, requests, base_dir, "prompt_tokens"),
        _lengths(settings, requests, base_dir, "output_tokens"),
        prefix_reuse(requests),
        traffic.notes,
    )


def _requests(traffic: Traffic) -> Iterator[Request]:
    """Yield the requests with fixed times, the first turns of each user, and all turns of each session."""
    yield from traffic.requests
    for group in traffic.session_groups:
        endless = group.max_requests is not None or not group.ends_on_failure
        turns = (
            turn.request
            for session in group.sessions
            for turn in islice(session.turns, _TURNS_PER_USER if endless else None)
        )
        yield from islice(turns, group.max_requests)


def _arrivals(settings: WorkloadSettings, traffic: Traffic, requests: list[Request]) -> NDArray[np.float64] | None:
    if settings.users is not None:
        return None
    if settings.sessions is not None:
        return np.array(
            [session.start_s for group in traffic.session_groups for session in group.sessions], dtype=np.float64
        )
    return np.array([request.arrival_s for request in requests], dtype=np.float64)


def _source(settings: WorkloadSettings, traffic: Traffic, base_dir: Path) -> str:
    if settings.users is not None:
        think_s = build_duration(settings.users.think_s).mean_s()
        return f"{settings.users.count} users, think time {think_s:g} s on average"
    if settings.sessions is not None:
        number = sum(len(group.sessions) for group in traffic.session_groups)
        turns = build_lengths(settings.sessions.turns, base_dir).mean()
        return f"{number} conversations of {turns:.3g} turns on average"
    if settings.trace is not None:
        return f"trace {settings.trace.name or settings.trace.path}"
    return "listed requests" if settings.arrivals is None else f"arrivals: {settings.arrivals.process}"


def _lengths(settings: WorkloadSettings, requests: list[Request], base_dir: Path, key: str) -> LengthDescription:
    distribution = getattr(settings, key)
    mean = None if distribution is None else build_lengths(distribution, base_dir).mean()
    if key == "prompt_tokens" and mean is not None:
        # prompts of conversations hold the whole conversation: the distribution is that of the new tokens alone
        own = settings.sessions is None
        mean = mean + (settings.system_prompt.tokens if settings.system_prompt else 0) if own else None
    return LengthDescription(np.array([getattr(r, key) for r in requests], dtype=np.int64), mean)
