"""Whether an answer holds if step times are off by their published error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from simqueue.decisions.tuning.answer import AtErrors, Elsewhere, Tuning
from simqueue.decisions.tuning.candidates import Candidate
from simqueue.decisions.tuning.contender import Contender, State
from simqueue.decisions.tuning.search import Searched
from simqueue.experiment.model_error import PublishedError, error_source, published_errors
from simqueue.scenario.factors import with_factors
from simqueue.scenario.resolved import ResolvedScenario

Source = tuple[str, ...]
_SURELY_NOT: Final = (State.BAD, State.WORSE)


def at_errors(
    answer: Tuning,
    best: Contender,
    contenders: Sequence[Contender],
    candidates: Sequence[Candidate],
    search: Callable[[Sequence[Candidate]], Searched],
) -> AtErrors:
    """Return what the answer is with step times that are off by the published errors.

    Systems with the same presets are off by the same factor. Those of other presets can be off in the other direction.

    Parameters
    ----------
    answer : Tuning
    best : Contender
        The best system; the error is that of its step times in its own runs.
    contenders : sequence of Contender
        All that were run. The error of another preset is that of the first one with runs; without any, it is taken to
        be as large as that of the best system.
    candidates : sequence of Candidate
    search : callable
        Makes the search among others.
    """
    error = _error(best)
    if error.share is None:
        return AtErrors(None, error.reason)
    own = _source(best.system.scenario)
    shares = _shares(candidates, contenders, own, error.share)
    labels = {one.number: one.label for one in answer.standings}
    found = []
    for said, factors in _ways(shares, own):
        other = search([_slowed(one, factors) for one in candidates])
        label = None if other.best is None else labels[other.best.number]
        found.append(Elsewhere(said, label, _is_beaten(best, other), other.stopped))
    return AtErrors(error.share, error.reason, tuple(found))


def _error(one: Contender) -> PublishedError:
    result = one.result()
    return published_errors(result)[result.policies[0]]


def _source(scenario: ResolvedScenario) -> Source:
    return error_source(scenario.policies[0])


def _shares(
    candidates: Sequence[Candidate], contenders: Sequence[Contender], own: Source, share: float
) -> dict[Source, float]:
    """Return the error of each source; step times of no preset have none."""
    sources = [_source(one.scenario) for one in candidates if one.scenario is not None]
    shares = {source: share for source in sources if source}
    for one in reversed([one for one in contenders if one.runs]):
        source, found = _source(one.system.scenario), _error(one).share
        if source and source != own and found is not None:
            shares[source] = found
    return shares


def _ways(shares: Mapping[Source, float], own: Source) -> Iterator[tuple[str, Mapping[Source, float]]]:
    """Yield the ways of being off that can take its place away from the best system, in words and as factors."""
    yield "all steps take less time", {source: 1 - share for source, share in shares.items()}
    yield "all steps take longer", {source: 1 + share for source, share in shares.items()}
    if len(shares) > 1:
        factors = {source: 1 + share if source == own else 1 - share for source, share in shares.items()}
        yield "its own steps take longer, and those of other presets or GPUs less time", factors


def _slowed(one: Candidate, factors: Mapping[Source, float]) -> Candidate:
    scenario = one.scenario
    if scenario is None:
        return one
    factor = factors.get(_source(scenario), 1.0)
    return replace(one, scenario=with_factors(scenario, dict.fromkeys(scenario.policy_names, factor)))


def _is_beaten(best: Contender, other: Searched) -> bool:
    """Return whether a system surely is not the best of another search: it fell, or a cheaper one keeps the limits."""
    if best.number in other.pruned:
        return True
    again = next(one for one in other.contenders if one.number == best.number)
    never_needed = other.best is not None and not other.stopped and not again.runs and again.short is None
    return again.state in _SURELY_NOT or (never_needed and again.state is State.OPEN)
