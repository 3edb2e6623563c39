"""Whether an answer holds if step times are off by their published error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from simqueue.decisions.tuning.answer import AtErrors, Tuning
from simqueue.decisions.tuning.candidates import Candidate
from simqueue.decisions.tuning.contender import Contender
from simqueue.decisions.tuning.search import Searched
from simqueue.experiment.model_error import published_errors
from simqueue.scenario.factors import with_factors


def at_errors(
    answer: Tuning,
    best: Contender,
    candidates: Sequence[Candidate],
    search: Callable[[Sequence[Candidate]], Searched],
) -> AtErrors:
    """Return what the answer is with step times that are off by the published error, in both directions.

    The step times of all systems are multiplied by the same factor.

    Parameters
    ----------
    answer : Tuning
    best : Contender
        The best system; the error is that of its step times in its own runs.
    candidates : sequence of Candidate
    search : callable
        Makes the search among others.
    """
    result = best.result()
    error = published_errors(result)[result.policies[0]]
    if error.factors is None:
        return AtErrors(error.share, error.reason, {})
    labels = {one.number: one.label for one in answer.standings}
    found: dict[float, str | None] = {}
    for factor in error.factors:
        other = search([_slowed(one, factor) for one in candidates]).best
        found[factor] = None if other is None else labels[other.number]
    return AtErrors(error.share, error.reason, found)


def _slowed(one: Candidate, factor: float) -> Candidate:
    scenario = one.scenario
    if scenario is None:
        return one
    return replace(one, scenario=with_factors(scenario, dict.fromkeys(scenario.policy_names, factor)))
