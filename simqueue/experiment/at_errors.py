"""A scenario as it is, and with the step times of its policies off by their published errors, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

from simqueue.errors import InputError
from simqueue.experiment.model_error import PublishedError, error_source, published_errors
from simqueue.results.widened import Widening, off
from simqueue.scenario.factors import with_factors

if TYPE_CHECKING:
    from simqueue.results.result import Result
    from simqueue.scenario.resolved import ResolvedScenario

LESS, AS_IS, LONGER = -1, 0, 1
"""Directions in which step times are off."""
Runs = Callable[["ResolvedScenario"], "Result"]
_FLAG: Final = "--with-model-error"


@dataclass(frozen=True, slots=True)
class Errors:
    """The published errors of a scenario's policies.

    Attributes
    ----------
    known : mapping of str to PublishedError
        By policy.
    sources : mapping of str to tuple of str
        Where each of them comes from, see `error_source`.
    """

    known: Mapping[str, PublishedError]
    sources: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, scenario: ResolvedScenario, result: Result) -> Errors:
        """Return the errors that the runs of a result are subject to.

        Raises
        ------
        InputError
            If no policy has one.
        """
        found = published_errors(result)
        if not any(one.share for one in found.values()):
            reasons = dict.fromkeys(one.reason for one in found.values())
            raise InputError(f"{_FLAG}: {scenario.name}: no policy has a published error: {'; '.join(reasons)}")
        return cls(found, {policy.name: error_source(policy) for policy in scenario.policies})

    def factor(self, policy: str, direction: int) -> float:
        """Return the factor of a policy's step times; 1 if no error of it is known."""
        return 1 + direction * (self.known[policy].share or 0)

    def directions(self, *policies: str) -> list[dict[str, int]]:
        """Return all ways in which the step times of these policies can be off together, at the ends of their errors.

        What has one source is off in one direction. There is none if no error is known.
        """
        known = [name for name in policies if self.known[name].share]
        sources = list(dict.fromkeys(self.sources[name] for name in known))
        return [
            {name: way[sources.index(self.sources[name])] if name in known else AS_IS for name in policies}
            for way in product((LESS, LONGER), repeat=len(sources))
            if sources
        ]

    def said(self, directions: Mapping[str, int]) -> str:
        """Return in words how step times are off."""
        factors = {name: self.factor(name, way) for name, way in directions.items() if way}
        names = {factor: [name for name in factors if factors[name] == factor] for factor in factors.values()}
        return " and ".join(off(factor, ", ".join(whose)) for factor, whose in names.items())

    @property
    def unknown_note(self) -> str:
        """A line about policies whose error is not known; empty if there are none."""
        found = [f"{name}: {one.reason}" for name, one in self.known.items() if not one.share]
        return f"no published error: {'; '.join(found)}" if found else ""


def check_has_source(scenario: ResolvedScenario) -> None:
    """Raise `InputError` if no policy has step times of a preset, before anything is run."""
    if not any(map(error_source, scenario.policies)):
        raise InputError(
            f"{_FLAG}: {scenario.name}: no policy has step times of a preset that was fitted to measurements; "
            "give step_time: {kind: roofline, preset: NAME}, with a name from `simqueue list presets`"
        )


def at_errors(scenario: ResolvedScenario, runs: Runs) -> tuple[Errors, dict[int, Result]]:
    """Run a scenario as it is, and with the step times of all policies off in each direction.

    Every run has the same requests, and replications are as many as the first run had. So the runs of two policies that
    are off in different directions can be compared too.

    Parameters
    ----------
    scenario : ResolvedScenario
    runs : callable
        Runs a scenario.

    Returns
    -------
    errors : Errors
    results : dict of int to Result
        By direction: `LESS`, `AS_IS`, `LONGER`.

    Raises
    ------
    InputError
        If no policy has a published error.
    RunError
        If a run fails.
    """
    check_has_source(scenario)
    result = runs(scenario)
    errors = Errors.of(scenario, result)
    replications = len(result.rows_of(scenario.policy_names[0]))
    again = scenario.with_(replications=replications, precision=None)
    results = {AS_IS: result}
    for direction in (LESS, LONGER):
        factors = {name: errors.factor(name, direction) for name in scenario.policy_names}
        results[direction] = runs(with_factors(again, factors))
    return errors, results


def widened(scenario: ResolvedScenario, runs: Runs) -> Result:
    """Run a scenario, and widen its intervals to what runs at both ends of the published errors give.

    Parameters and errors are those of `at_errors`.
    """
    errors, results = at_errors(scenario, runs)
    factors = {name: one.factors for name, one in errors.known.items()}
    return results[AS_IS].widened(Widening(factors, results[LESS].summary_rows, results[LONGER].summary_rows))
