"""What a search asks: the limits, what is best, and how sure the answer must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simqueue.decisions.conditions import Conditions

COST: Final = "cost"
TIE: Final = "mean_e2el_ms"
"""What decides between systems of the same cost, unless it is given."""
_OF_LIMITS: Final = 0.5
"""Share of the error that is spent on whether limits are kept; the rest is spent on what is best."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a space.

    Attributes
    ----------
    conditions : Conditions
    steady : bool
        Whether they are about a steady state.
    random : bool
        Whether replications differ; if not, one run of a system says all.
    by_cost : bool
        Whether the cheapest system is wanted; the metric then decides between those of the same cost.
    metric : str
        Column of the summary.
    largest : bool
        Whether larger values of the metric are better.
    zone : float
        Difference of the metric that does not matter, as a share of the value of the best.
    confidence : float
        Probability that the answer is right.
    max_replications : int
        Most replications of one system.
    """

    conditions: Conditions
    steady: bool
    random: bool
    by_cost: bool
    metric: str
    largest: bool
    zone: float
    confidence: float
    max_replications: int

    @property
    def sign(self) -> float:
        """What values of the metric are multiplied by, so that smaller ones are better."""
        return -1.0 if self.largest else 1.0


@dataclass(frozen=True, slots=True)
class Errors:
    """The probabilities of wrong decisions that are allowed, so that all of them together are what was asked for.

    The answer is wrong if the best system is given up, if a better one is taken that does not keep its limits, or if
    another one is better by more than the zone.

    Attributes
    ----------
    given_up : float
        For one system and one limit: given up though it keeps it, at any of the looks.
    taken : float
        For one system: taken though it does not keep its limits.
    compared : float
        For one system and those that it is compared with, in any of the tests.
    """

    given_up: float
    taken: float
    compared: float

    @classmethod
    def of(cls, question: Question, systems: int, rivals: int) -> Errors:
        """Return the errors of a search among so many systems, of which so many are compared with each other."""
        error = 1 - question.confidence
        of_limits = _OF_LIMITS * error / 2
        conditions = max(1, len(question.conditions.all))
        return cls(of_limits / conditions, of_limits / max(1, systems), (1 - _OF_LIMITS) * error / max(1, rivals - 1))


def at_look(error: float, look: int) -> float:
    """Return what is spent of an error at one of many looks, counted from 1: all of them together spend the whole."""
    return error / (look * (look + 1))
