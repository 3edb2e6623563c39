"""What a policy carries of a backlog: the simulation that the capacity law is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError, RunError
from simqueue.experiment.build import build
from simqueue.experiment.demand import Demand, asked_of, offered
from simqueue.experiment.served import server
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

LEAST_REQUESTS, MOST_REQUESTS = 800, 12_000
MOST_TOKENS = 300_000
"""Output tokens of a backlog, about: fewer requests are played if outputs are long. A play takes a second or two."""
GENERATIONS = 12
"""Requests of a backlog, at least, over those that run at one time."""
STAYS = 4
"""Times that the longest request takes, at least, if the most requests suffice."""
MIDDLE = (0.2, 0.95)
"""The rate is measured while requests after the first and before the second of these shares get their first tokens:
without filling and draining, and not before the longest request could have run once."""
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
        if policy.fleet is not None:
            continue
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
        edges = np.linspace(0, float(rows["finish_s"].max()), SECTIONS + 1)
        done = np.searchsorted(np.sort(rows["finish_s"]), edges, side="right").astype(float)
    else:
        begin = min(max(MIDDLE[0], _longest_stay(asked, closed) / many), MIDDLE[1] / 2)
        low_s, high_s = np.quantile(rows["first_token_s"], (begin, MIDDLE[1])).tolist()
        edges = np.linspace(low_s, high_s, SECTIONS + 1)
        cost = request_cost(step, asked.lengths, described, closed)
        done = _done(rows, edges, *(cost.relative(prompts[drawn], made) for made in (1.0, outputs[drawn])))
    if edges[-1] <= edges[0]:
        raise RunError("a backlog ends all at once: its rate is not defined")
    interval = mean_interval((np.diff(done) / np.diff(edges)).tolist())
    return Carried(interval.value, interval.half_width, float(rows["preemptions"].mean()), many)


def _requests(asked: Demand, described: Server, closed: Capacity, most: int) -> int:
    """Return how many requests a backlog has; of padded waves as many as there can be, in full waves."""
    if described.batching == "static":
        return max(1, most // described.max_num_seqs) * described.max_num_seqs
    least = max(LEAST_REQUESTS, GENERATIONS * closed.running, STAYS * _longest_stay(asked, closed))
    return int(min(max(MOST_TOKENS / asked.lengths.output, least), most))


def _longest_stay(asked: Demand, closed: Capacity) -> float:
    """Return how many requests begin while the longest one runs: until then there are too few long ones."""
    return closed.running * float(asked.lengths.longest(1)[1].max()) / asked.lengths.output


def _done(
    rows: Mapping[str, NDArray[Any]], edges: NDArray[np.float64], begun: NDArray[np.float64], whole: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the work done up to each edge: of a prompt at its first token, the rest evenly until the last one.

    The longest requests do not end in a short backlog, but most of the work can be theirs.
    """
    first_s, last_s = rows["first_token_s"], rows["finish_s"]
    span_s = np.where(last_s > first_s, last_s - first_s, 1.0)
    return np.array(
        [begun @ (first_s <= edge) + (whole - begun) @ np.clip((edge - first_s) / span_s, 0, 1) for edge in edges]
    )
