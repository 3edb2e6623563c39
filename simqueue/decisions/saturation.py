"""The stable rate of a policy: the most that it can serve, however long requests wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simqueue.errors import InputError, RunError
from simqueue.experiment.carried import carried
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.experiment.rates import saturation_throughput
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.statistics.intervals import mean_interval
from simqueue.statistics.verdict import LAW_ERROR

BACKLOGS: Final = 5
_BACKLOG_REQUESTS: Final = 3000
_WITHOUT_LAW: Final = 0.05
"""Relative error that is allowed for where only a backlog tells."""
_BIAS: Final = 0.005
"""Relative error that is allowed for because backlogs are short."""


@dataclass(frozen=True, slots=True)
class StableRate:
    """The most that a policy can serve.

    Attributes
    ----------
    rate_rps, low_rps, high_rps : float
        With an interval.
    binding : str
        What limits it.
    how : str
        Where it is from.
    """

    rate_rps: float
    low_rps: float
    high_rps: float
    binding: str
    how: str


def told_by_law(law: PolicyLoad) -> bool:
    """Return whether the stable rate follows from the law, so that no backlog is simulated."""
    return law.capacity is not None and (not law.doubt or (law.low_rps is not None and law.high_rps is not None))


def stable_rate(scenario: ResolvedScenario, law: PolicyLoad) -> StableRate | None:
    """Return the stable rate of the only policy of a scenario: by the law, or by simulated backlogs; None if unknown.

    Parameters
    ----------
    scenario : ResolvedScenario
    law : PolicyLoad
        Of this policy.
    """
    if law.capacity is None:
        return _by_backlog(scenario)
    rate, binding = law.capacity.max_rate_rps, f"stable rate ({law.capacity.binding})"
    if not law.doubt:
        return StableRate(rate, (1 - LAW_ERROR) * rate, (1 + LAW_ERROR) * rate, binding, "capacity law")
    if law.low_rps is not None and law.high_rps is not None:
        return StableRate(rate, law.low_rps, law.high_rps, binding, "bounds of the capacity law")
    return _by_backlog(scenario)


def _by_backlog(scenario: ResolvedScenario) -> StableRate | None:
    """Return the throughput while all requests wait from the start; only a single workload can be made a backlog."""
    name = scenario.policy_names[0]
    try:
        found = saturation_throughput(scenario, name, requests=_BACKLOG_REQUESTS, replications=BACKLOGS, workers=1)
    except InputError:
        return None
    low, high = found.low or found.value, found.high or found.value
    margin = _WITHOUT_LAW * found.value
    return StableRate(found.value, low - margin, high + margin, "stable rate", "simulated backlog")


def measured(scenario: ResolvedScenario, known: StableRate) -> StableRate:
    """Return the stable rate with the interval of simulated backlogs, if the law knows how to make one.

    Their interval must not contradict the law: the wider of both is used if it does.
    """
    name = scenario.policy_names[0]
    try:
        rates = [carried(scenario, seed, most=_BACKLOG_REQUESTS)[name].rate_rps for seed in range(BACKLOGS)]
    except (InputError, RunError, KeyError):  # no backlog of a fleet, or of a policy without a law
        return known
    found = mean_interval(rates)
    bias = _BIAS * found.value
    low, high = (found.low or found.value) - bias, (found.high or found.value) + bias
    if low > known.high_rps or high < known.low_rps:
        low, high = min(low, known.low_rps), max(high, known.high_rps)
    return StableRate(found.value, low, high, known.binding, "simulated backlogs")
