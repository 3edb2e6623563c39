"""Candidates: the systems of a space, settled, with what they cost and what the capacity law says of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from simqueue.decisions.conditions import Conditions
from simqueue.decisions.tuning.space import Space
from simqueue.errors import InputError
from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.request import Request
from simqueue.scenario.prices import Cost, cost_of
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.sweeps.axes import plain_value

SAME: Final = "the same system as candidate"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One system of a space.

    Attributes
    ----------
    number : int
        Its place in the space, from 1.
    values : tuple
        What each key of the space has.
    scenario : ResolvedScenario or None
        With this system as its only policy; None: it is no system.
    cost : Cost or None
    reason : str
        Empty, or why it is no system of its own.
    """

    number: int
    values: tuple[Any, ...]
    scenario: ResolvedScenario | None
    cost: Cost | None
    reason: str = ""

    def label(self, names: Sequence[str]) -> str:
        """Return its keys and values in one line."""
        pairs = zip(names, self.values, strict=True)
        return ", ".join(f"{name}={_shown(value)}" for name, value in pairs)


@dataclass(frozen=True, slots=True)
class System:
    """A candidate that can be run.

    Attributes
    ----------
    candidate : Candidate
    scenario : ResolvedScenario
    cost : Cost
    law : PolicyLoad
        What the capacity law says of it.
    """

    candidate: Candidate
    scenario: ResolvedScenario
    cost: Cost
    law: PolicyLoad

    @property
    def number(self) -> int:
        """Its place in the space."""
        return self.candidate.number


def settled(space: Space, points: Iterable[tuple[Any, ...]], conditions: Conditions) -> Iterator[Candidate]:
    """Yield the candidates of points of a space; what is wrong with one is its reason.

    Two points can be the same system, such as one replica behind two routers: the second one has that as its reason.
    """
    seen: dict[str, int] = {}
    for number, values in enumerate(points, start=1):
        try:
            scenario = conditions.asked_of(space.cells.settled(values).scenario)
        except InputError as error:
            yield Candidate(number, values, None, None, _one_line(error))
            continue
        first = seen.setdefault(_identity(scenario), number)
        if first != number:
            yield Candidate(number, values, None, None, f"{SAME} {first}")
            continue
        yield Candidate(number, values, scenario, cost_of(scenario.policies[0]))


def with_law(candidate: Candidate, requests: Sequence[Request] | None) -> System:
    """Return a candidate with what the capacity law says of it; `requests` are those of replication 0, if known."""
    scenario, cost = candidate.scenario, candidate.cost
    if scenario is None or cost is None:
        raise InputError(f"candidate {candidate.number}: {candidate.reason}")
    found = policy_loads(scenario, requests, estimates=False)
    return System(candidate, scenario, cost, found[scenario.policy_names[0]])


def _identity(scenario: ResolvedScenario) -> str:
    """Return a text that is the same for systems that run alike."""
    policy = scenario.policies[0]
    values = dict(scenario.values["policies"][policy.name])
    if policy.fleet is None:
        values.pop("fleet", None)
    others = {key: scenario.values.get(key) for key in ("model", "dtype", "unservable", "max_queued_requests")}
    return json.dumps([values, others], sort_keys=True, default=repr)


def _one_line(error: InputError) -> str:
    """Return what is wrong with a candidate, without the flags that made it."""
    texts = [": ".join(filter(None, (".".join(map(str, one.path)), one.text))) for one in error.problems]
    return "; ".join(dict.fromkeys(texts))


def _shown(value: Any) -> str:
    plain = plain_value(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
