"""Whether the best policy of a scenario is still the best if step times are off by their published errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from simqueue.experiment.at_errors import AS_IS, LESS, LONGER, Errors, check_has_source
from simqueue.scenario.factors import with_factors

if TYPE_CHECKING:
    from simqueue.experiment.best import Selection
    from simqueue.scenario.resolved import ResolvedScenario

Search = Callable[["ResolvedScenario"], "Selection"]


@dataclass(frozen=True, slots=True)
class BestElsewhere:
    """A selection with step times that are off.

    Attributes
    ----------
    factors : mapping of str to float
        Of the step times of each policy.
    said : str
        The same in words.
    selection : Selection
    """

    factors: Mapping[str, float]
    said: str
    selection: Selection


@dataclass(frozen=True, slots=True)
class HeldSelection:
    """The best policy, and the best ones at the ends of the published errors.

    Attributes
    ----------
    selection : Selection
        With the step times as they are.
    errors : Errors
    elsewhere : tuple of BestElsewhere
        All step times off in one direction, in the other, and those of the best policy against all others.
    """

    selection: Selection
    errors: Errors
    elsewhere: tuple[BestElsewhere, ...]

    @property
    def holds(self) -> Literal["holds", "flips", "not shown"]:
        """Whether the best policy is the best everywhere.

        "flips": somewhere another one is, and the two are told apart there; "not shown": somewhere another one leads.
        """
        best = self.selection.best
        others = [one.selection for one in self.elsewhere if one.selection.best != best]
        if any(best not in one.not_told_apart for one in others):
            return "flips"
        return "not shown" if others else "holds"

    def lines(self) -> Iterator[str]:
        """Yield what is said about it, in words."""
        best = self.selection.best
        for one in self.elsewhere:
            other = one.selection
            if other.best != best and best not in other.not_told_apart:
                yield f"flips within the published error: {other.best} is the best if {one.said}"
            elif other.best != best:
                yield f"{other.best} leads, not told apart from {best}, if {one.said}"
        if self.holds == "holds":
            yield f"within the published error of the step times, {best} stays the best"
        if self.errors.unknown_note:
            yield self.errors.unknown_note

    def plain(self) -> dict[str, Any]:
        """Return plain values: those of the selection, and `model_error`."""
        elsewhere = [
            {
                "step_time_factors": dict(one.factors),
                "best": one.selection.best,
                "not_told_apart": list(one.selection.not_told_apart),
            }
            for one in self.elsewhere
        ]
        return {**self.selection.plain(), "model_error": {"holds": self.holds, "elsewhere": elsewhere}}


def best_at_errors(scenario: ResolvedScenario, search: Search) -> HeldSelection:
    """Find the best policy, and again with step times that are off.

    Parameters
    ----------
    scenario : ResolvedScenario
    search : callable
        Finds the best policy of a scenario.

    Raises
    ------
    InputError
        If no policy has a published error, or from the search.
    RunError
        If a run fails.
    """
    check_has_source(scenario)
    selection = search(scenario)
    errors = Errors.of(scenario, selection.result)
    found = []
    for ways in _worst_ways(errors, selection.best):
        factors = {name: errors.factor(name, way) for name, way in ways.items()}
        found.append(BestElsewhere(factors, errors.said(ways), search(with_factors(scenario, factors))))
    return HeldSelection(selection, errors, tuple(found))


def _worst_ways(errors: Errors, best: str) -> list[dict[str, int]]:
    """Return the ways of being off that can take its place away from the best policy."""
    known = [name for name, one in errors.known.items() if one.share]
    own = errors.sources[best] if best in known else None
    ways = [
        dict.fromkeys(known, LESS),
        dict.fromkeys(known, LONGER),
        {name: LONGER if errors.sources[name] == own else LESS for name in known},
    ]
    complete = [{name: way.get(name, AS_IS) for name in errors.known} for way in ways]
    return [way for place, way in enumerate(complete) if way not in complete[:place]]
