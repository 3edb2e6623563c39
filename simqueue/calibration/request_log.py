"""Fits step times to a log of requests by fixed-point iteration.

With given arrival times, the batches of a run depend on the durations of its steps. So the run is simulated with the
current values, the values are fitted to the resulting steps, and this is repeated until the values no longer change.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from simqueue.calibration.case import ServedCase
from simqueue.calibration.closed_loop import make_policy
from simqueue.calibration.fit import FRONT_END, Fit, fit
from simqueue.calibration.rows import Target
from simqueue.calibration.served_rows import BLOCK_SIZE, LoggedRequest, Server, pool_blocks
from simqueue.errors import InputError
from simqueue.kvcache import PagedKVCache
from simqueue.request import Request
from simqueue.simulation import RunOptions, Simulation
from simqueue.steptime import Batch, Coefficients, StepTime
from simqueue.steptime.calibrated import CalibratedStepTime

ROUNDS: Final = 6
STILL: Final = 0.01
"""The iteration ends if the relative change of every value is below this."""
GROUPS: Final = 30
"""Number of groups of requests, in order of arrival; the fit uses the mean TPOT of each group."""


def fit_log(
    log: Sequence[LoggedRequest], free: Sequence[str], fixed: dict[str, float | None], target: Target, server: Server
) -> tuple[Fit, list[ServedCase]]:
    """Return the fit to the mean TPOT of groups of requests, and those groups as cases.

    Raises
    ------
    InputError
        If a request can never be served with this pool, or there are fewer groups than values to fit.
    """
    for name in free:
        if name in FRONT_END:
            raise InputError(f"calibrate: {name} is fitted to TTFT of closed loops (--kind served), and not to a log")
    current = Coefficients.model_validate({"bandwidth_share": 1.0, "mfu": 1.0, **fixed})
    for _ in range(ROUNDS):
        cases = log_cases(log, current, target, server)
        found = fit(cases, free, fixed, {name: max(getattr(current, name) or 0.0, 1e-3) for name in free})
        before, current = current, found.coefficients
        if all(_near(getattr(before, name), getattr(current, name)) for name in free):
            break
    return found, log_cases(log, current, target, server)


def log_cases(log: Sequence[LoggedRequest], values: Coefficients, target: Target, server: Server) -> list[ServedCase]:
    """Simulate the log under these values and return the mean TPOT of each group as a sum of step times."""
    recorder = _Recorder(CalibratedStepTime.of(target.model, target.gpu, target.tensor_parallel, values))
    requests = [
        Request(f"r{i}", request.arrival_s, request.prompt_tokens, request.output_tokens)
        for i, request in enumerate(log)
    ]
    kv = PagedKVCache(pool_blocks(target, server, target.tensor_parallel), BLOCK_SIZE)
    keys = {"max_num_seqs": server.max_num_seqs, "max_num_batched_tokens": server.max_num_batched_tokens}
    policy = make_policy(server.scheduler, keys, kv)
    columns = Simulation(requests, policy, recorder, RunOptions(fast=False)).run().requests
    if any(columns["status"] != "finished"):
        reason = next((reason for reason in columns["reject_reason"] if reason), "a request never finishes")
        raise InputError(f"request log: {reason}")
    starts_s = np.array(recorder.starts_s)
    first = np.searchsorted(starts_s, columns["first_token_s"])
    last = np.searchsorted(starts_s, columns["finish_s"])
    places = [i for i, request in enumerate(log) if request.tpot_s is not None]
    edges = np.linspace(0, len(places), min(GROUPS, len(places)) + 1).astype(int)
    return [
        _case(places[low:high], log, first, last, recorder.batches, target) for low, high in pairwise(edges.tolist())
    ]


def _case(
    places: Sequence[int],
    log: Sequence[LoggedRequest],
    first: np.ndarray,
    last: np.ndarray,
    batches: Sequence[Batch],
    target: Target,
) -> ServedCase:
    begin, end = min(first[i] for i in places), max(last[i] for i in places)
    weights = np.zeros(end - begin)
    for i in places:
        weights[first[i] - begin : last[i] - begin] += 1 / (log[i].output_tokens - 1) / len(places)
    measured_s = float(np.mean([log[i].tpot_s for i in places]))
    where = f"requests {places[0] + 1} to {places[-1] + 1}"
    return ServedCase(
        where, target.model, target.gpu, target.tensor_parallel, batches[begin:end], weights.tolist(), measured_s
    )


def _near(before: float | None, after: float | None) -> bool:
    return abs((after or 0.0) - (before or 0.0)) <= STILL * abs(after or 0.0)


class _Recorder(StepTime):
    """A step-time model that records start and batch of each step."""

    def __init__(self, inner: StepTime) -> None:
        self._inner = inner
        self.starts_s: list[float] = []
        self.batches: list[Batch] = []

    def seconds(self, batch: Batch) -> float:
        return self._inner.seconds(batch)

    def ends(self, start_s: float, batch: Batch, n: int) -> list[float]:
        self.starts_s.append(start_s)
        self.batches.append(batch)
        return self._inner.ends(start_s, batch, n)
