"""Fits step times to a log of single requests, whose steps depend on the times that are sought.

With arrivals at given instants the batches follow from how long steps take. So the run is simulated with the best
values known, the values are fitted to the steps that came out, and so on until they stay: a fixed point.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from simqueue.calibration.case import ServedCase
from simqueue.calibration.fit import Fit, fit
from simqueue.calibration.rows import Target
from simqueue.calibration.served_rows import BLOCK_SIZE, LoggedRequest, Server, pool_blocks
from simqueue.errors import InputError
from simqueue.kvcache import PagedKVCache
from simqueue.request import Request
from simqueue.schedulers import SCHEDULERS
from simqueue.schedulers.limits import RequestLimits
from simqueue.simulation import RunOptions, Simulation
from simqueue.steptime import Batch, Coefficients, StepTime
from simqueue.steptime.calibrated import CalibratedStepTime

ROUNDS: Final = 6
STILL: Final = 0.01
"""Relative change of every value below which the rounds end."""
GROUPS: Final = 30
"""Requests are taken together in so many groups, in order of arrival: one mean TPOT each."""


def fit_log(
    log: Sequence[LoggedRequest], free: Sequence[str], fixed: dict[str, float | None], target: Target, server: Server
) -> tuple[Fit, list[ServedCase]]:
    """Return the fit to the mean TPOT of groups of requests, and those groups as cases.

    Raises
    ------
    InputError
        A request cannot be served by this pool, or there are too few requests for so many values.
    """
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
    witness = _Witness(CalibratedStepTime.of(target.model, target.gpu, target.tensor_parallel, values))
    requests = [
        Request(f"r{i}", request.arrival_s, request.prompt_tokens, request.output_tokens)
        for i, request in enumerate(log)
    ]
    kv = PagedKVCache(pool_blocks(target, server, target.tensor_parallel), BLOCK_SIZE)
    policy_class = SCHEDULERS[server.scheduler]
    settings = policy_class.Settings.model_validate(
        {"max_num_seqs": server.max_num_seqs, "max_num_batched_tokens": server.max_num_batched_tokens}
    )
    policy = policy_class(settings, kv, RequestLimits())  # type: ignore[call-arg] # the contract's constructor
    columns = Simulation(requests, policy, witness, RunOptions(fast=False)).run().requests
    if any(columns["status"] != "finished"):
        reason = next((reason for reason in columns["reject_reason"] if reason), "a request never ends")
        raise InputError(f"request log: {reason}")
    starts_s = np.array(witness.starts_s)
    first = np.searchsorted(starts_s, columns["first_token_s"])
    last = np.searchsorted(starts_s, columns["finish_s"])
    places = [i for i, request in enumerate(log) if request.tpot_s is not None]
    edges = np.linspace(0, len(places), min(GROUPS, len(places)) + 1).astype(int)
    return [
        _case(places[low:high], log, first, last, witness.batches, target) for low, high in pairwise(edges.tolist())
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


class _Witness(StepTime):
    """A step time that remembers what it priced, and when."""

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
