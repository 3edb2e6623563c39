"""Makes the answer of a search from what it found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from simqueue.decisions.tuning.answer import Standing, Tuning, ordered
from simqueue.decisions.tuning.candidates import Candidate
from simqueue.decisions.tuning.contender import Contender, State
from simqueue.decisions.tuning.question import Question
from simqueue.decisions.tuning.search import Searched
from simqueue.decisions.tuning.space import Space
from simqueue.statistics.intervals import CONFIDENCE, Interval, mean_interval
from simqueue.sweeps.axes import plain_value

_SHOWN: Final = ("best", "not told apart", "looked worse", "not better than the best", "cannot be told")
"""States of systems that are shown with the values of all their runs."""


def answer_of(
    space: Space,
    candidates: Sequence[Candidate],
    found: Searched,
    question: Question,
    *,
    shown: int,
    notes: Sequence[str],
) -> Tuning:
    """Return the answer.

    Parameters
    ----------
    space : Space
    candidates : sequence of Candidate
        All of them.
    found : Searched
    question : Question
    shown : int
        How many of the best systems are told with the values of all their runs.
    notes : sequence of str
        About the space.
    """
    contenders = {one.number: one for one in found.contenders}
    standings = ordered([_standing(space, one, found, contenders.get(one.number)) for one in candidates])
    chosen = [one for one in standings[:shown] if one.state in _SHOWN and contenders[one.number].runs]
    detailed = {one.number: _detailed(one, contenders[one.number], question) for one in chosen}
    goal = question.metric if not question.by_cost else "USD per hour" if found.priced else "GPUs"
    return Tuning(
        policy=space.policy,
        limits=str(question.conditions),
        goal=goal,
        tie=question.metric,
        confidence=question.confidence,
        zone=question.zone,
        standings=tuple(detailed.get(one.number, one) for one in standings),
        has_best=found.best is not None,
        stopped=found.stopped,
        spent=found.spent,
        notes=(*notes, *_notes(candidates, question, priced=found.priced)),
        shown=len(chosen),
        scenarios={one.number: contenders[one.number].system.scenario for one in chosen},
    )


def _standing(space: Space, one: Candidate, found: Searched, contender: Contender | None) -> Standing:
    values = {name: plain_value(value) for name, value in zip(space.names, one.values, strict=True)}
    gpus, usd = (None, None) if one.cost is None else (one.cost.gpus, one.cost.usd_per_hour)
    known = Standing(one.number, values, gpus, usd, "is no system", one.reason)
    if one.scenario is None:
        return known
    if contender is None:
        return replace(known, state="cannot serve the load", reason=found.pruned[one.number])
    missed = contender.missed
    state, reason = _state(contender, found)
    return replace(
        known,
        state=state,
        reason=reason,
        replications=len(contender.runs) or contender.made,
        margin=None if missed is None else missed.ratio,
    )


def _state(contender: Contender, found: Searched) -> tuple[str, str]:
    """Return what became of a contender, and more about that."""
    if contender is found.best:
        return "best", ""
    if contender.state not in (State.GOOD, State.OPEN):
        return contender.state.value, contender.reason
    if contender.looked_worse:
        return "looked worse", ""
    if contender.runs or contender.short:
        return "not told apart", ""
    if found.stopped:
        return "not run", "the search ended before"
    return "not run", "dearer than the best" if found.best else ""


def _detailed(one: Standing, contender: Contender, question: Question) -> Standing:
    """Return a standing with the values over all replications, as a run of the system shows them."""
    values = mean_interval([question.sign * run.value for run in contender.runs], CONFIDENCE)
    missed = contender.miss()
    return replace(
        one,
        metric=Interval(values.value, values.low, values.high),
        limits=contender.judgement().each,
        margin=None if missed is None else missed.ratio,
    )


def _notes(candidates: Sequence[Candidate], question: Question, *, priced: bool) -> Iterator[str]:
    if not question.random:
        yield "nothing in the traffic is random, so one run of each system decides"
    if not question.steady:
        yield "the traffic has no constant rate: limits are about the requests of these runs, not about a steady state"
    if question.by_cost and not priced:
        reasons = dict.fromkeys(one.cost.why_not for one in candidates if one.cost is not None and one.cost.why_not)
        yield f"the cost is the number of GPUs: {next(iter(reasons), 'no price is known')}"
