"""What a policy carries of a backlog: the simulation that the capacity law is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError, RunError
from simqueue.experiment.build import build
from simqueue.experiment.demand import Demand, asked_of, offered
from simqueue.experiment.offered_load import server
from simqueue.frontend import FrontEndTimes
from simqueue.request import Request
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.schedulers import Policy
from simqueue.simulation.options import RunOptions
from simqueue.simulation.simulate import Simulation
from simqueue.statistics.intervals import mean_interval
from simqueue.steptime import StepTime
from simqueue.theory.capacity import capacity
from simqueue.theory.cost import request_cost
from simqueue.theory.limits import Capacity, Server
from simqueue.workload.streams import stream

LEAST_REQUESTS, MOST_REQUESTS = 800, 6000
MOST_TOKENS = 300_000
"""Output tokens of a backlog, about: fewer requests are played if outputs are long. A play takes a second or two."""
GENERATIONS = 12
"""Requests of a backlog, at least, over those that run at one time."""
MIDDLE = (0.2, 0.8)
"""The rate is measured between these shares of the completions, without filling and draining."""
SECTIONS = 6


@dataclass(frozen=True, slots=True)
class Carried:
    """What a backlog showed.

    Attributes
    ----------
    rate_rps : float
        Requests of average work per second in the middle part of the backlog.
    half_width_rps : float or None
        Of its 95 % interval, from the differences between sections of that part.
    preemptions : float
        Per request.
    requests : int
    """

    rate_rps: float
    half_width_rps: float | None
    preemptions: float
    requests: int


def carried(scenario: ResolvedScenario, seed: int = 0, *, most: int = MOST_REQUESTS) -> dict[str, Carried]:
    """Play a backlog through each policy that the capacity law describes, and return what it carries.

    All requests of the backlog are there at time 0. Their lengths are drawn from the workload with a seed of their own.

    Parameters
    ----------
    scenario : ResolvedScenario
    seed : int
        Of the lengths, beside that of the scenario.
    most : int
        Most requests of a backlog.

    Raises
    ------
    InputError
        If there are no requests.
    """
    load = offered(scenario)
    if scenario.workload is not None and scenario.workload.max_concurrency is not None:
        raise InputError("a backlog has all requests at the server at once; leave out workload.max_concurrency")
    if load is None:
        raise InputError("the workload has no requests of which a backlog could be made")
    found = {}
    for policy in scenario.policies:
        built = build(policy, reject_oversized=scenario.rejects_unservable)
        try:
            asked = asked_of(built, load)
        except InputError:
            continue  # without a capacity there is nothing to compare; the table says why
        described = server(built)
        if described is not None and asked.sample is not None:
            backlog = _Backlog(policy.step_time, built, described, asked, policy.front_end, asked.sample)
            found[policy.name] = _carried(backlog, stream(scenario.seed, seed, "capacity.check"), most)
    return found


@dataclass(frozen=True, slots=True)
class _Backlog:
    """A policy, new and with an empty KV cache, and the prompts and outputs from which its requests are drawn."""

    step: StepTime
    policy: Policy
    server: Server
    asked: Demand
    front_end: FrontEndTimes | None
    sample: tuple[NDArray[np.int64], NDArray[np.int64]]


def _carried(backlog: _Backlog, rng: np.random.Generator, most: int) -> Carried:
    step, described, asked = backlog.step, backlog.server, backlog.asked
    prompts, outputs = backlog.sample
    closed = capacity(step, asked.lengths, described)
    many = _requests(asked, described, closed, most)
    drawn = rng.integers(len(prompts), size=many)
    pairs = list(zip(prompts[drawn].tolist(), outputs[drawn].tolist(), strict=True))
    requests = [Request(str(i), 0.0, prompt, output) for i, (prompt, output) in enumerate(pairs)]
    rows = Simulation(requests, backlog.policy, step, RunOptions(front_end=backlog.front_end)).run().requests
    if described.batching == "static":  # from the first wave to the last one, all alike
        interval = mean_interval(_rates(rows["finish_s"], np.ones(many), (0.0, float(rows["finish_s"].max()))))
    else:
        cost = request_cost(step, asked.lengths, described, closed)
        interval = mean_interval(_rates(rows["finish_s"], cost.relative(prompts[drawn], outputs[drawn])))
    return Carried(interval.mean, interval.half_width, float(rows["preemptions"].mean()), many)


def _requests(asked: Demand, described: Server, closed: Capacity, most: int) -> int:
    """Return how many requests a backlog has; of padded waves as many as there can be, in full waves."""
    if described.batching == "static":
        return max(1, most // described.max_num_seqs) * described.max_num_seqs
    least = max(LEAST_REQUESTS, GENERATIONS * closed.running)
    return int(min(max(MOST_TOKENS / asked.lengths.output, least), most))


def _rates(
    finish_s: NDArray[np.float64], work: NDArray[np.float64], during_s: tuple[float, float] | None = None
) -> list[float]:
    """Return the rates of sections of equal time, by the work done: by default of the middle part."""
    order = np.argsort(finish_s, kind="stable")
    low, high = during_s or (finish_s[order[int(share * (len(order) - 1))]] for share in MIDDLE)
    if high <= low:
        raise RunError("a backlog ends all at once: its rate is not defined")
    edges = np.linspace(low, high, SECTIONS + 1)
    done = np.concatenate(([0.0], np.cumsum(work[order])))[np.searchsorted(finish_s[order], edges, side="right")]
    return [float(rate) for rate in np.diff(done) / np.diff(edges)]
