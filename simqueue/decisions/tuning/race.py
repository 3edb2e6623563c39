"""The race: which of several systems is the best that keeps its limits, with as few runs as needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from simqueue.decisions.budget import BudgetSpentError
from simqueue.decisions.tuning.contender import Contender, State, not_better
from simqueue.decisions.tuning.evidence import fewest_replications
from simqueue.decisions.tuning.proposals import MOST_TRIED, proposed
from simqueue.decisions.tuning.question import Errors, Question
from simqueue.decisions.tuning.runs import Runs
from simqueue.experiment.best import next_stage

_GROSS: Final = 0.1
"""What is surely worse by this share in a short run is dropped; what looks so in whole runs is not run further."""
_FAR: Final = 0.5
"""What looks worse by this share in a short run is not run further."""
_SECOND: Final = 2
"""Replications after the first one, if that has not decided."""


class Race:
    """Races systems.

    After a short run of each, the one that looks best is run until it is known whether it keeps its limits. Those that
    are surely not better than it are dropped. The others are run on as long as they look better, until they are
    dropped, given up, or have taken its place.

    Parameters
    ----------
    question : Question
    runs : Runs
    systems : int
        How many there are in all groups.
    """

    def __init__(self, question: Question, runs: Runs, systems: int) -> None:
        self._question, self._runs, self._systems = question, runs, systems
        self._errors = Errors.of(question, systems, systems)
        self._first_answer = min(fewest_replications(self._errors.taken), question.max_replications)

    def best(self, group: Sequence[Contender]) -> Contender | None:
        """Return the best of a group; None if none of it is known to keep its limits."""
        self._errors = Errors.of(self._question, self._systems, len(group))
        group = self._tried(group)
        while open_ones := [one for one in group if one.in_race]:
            leader = self._leader(open_ones)
            if leader.state is not State.GOOD:
                self._advance([leader])
                continue
            rivals = [one for one in open_ones if one is not leader and not self._dropped(one, leader)]
            late = [one for one in rivals if not self._is_done(one) and self._may_win(one, leader)]
            if not late:
                return leader
            behind = [one for one in late if len(one.runs) < len(leader.runs)]
            self._advance(behind or [*late, leader])
        return None

    def _tried(self, group: Sequence[Contender]) -> Sequence[Contender]:
        """Return the contenders of a group that get a short run: all of them, or in a large group those proposed."""
        if len(group) <= MOST_TRIED:
            with self._looking(group):
                self._runs.short(group)
            return group
        tried = proposed(group, self._runs)
        self._look(tried)
        for one in group:
            if one.short is None and not one.runs and one.state is State.OPEN:
                one.give_up(State.UNTRIED, "others were proposed")
        return tried

    @contextmanager
    def _looking(self, contenders: Sequence[Contender]) -> Iterator[None]:
        """Look at contenders after runs of them, also if the budget ended before all were made."""
        try:
            yield
        except BudgetSpentError:
            self._look(contenders)
            raise
        self._look(contenders)

    def _look(self, contenders: Sequence[Contender]) -> None:
        for one in contenders:
            if one.in_race:
                one.look(self._errors)

    def leading(self, contenders: Sequence[Contender]) -> Contender | None:
        """Return the best of those that are known to keep their limits, if the race ends before its time."""
        good = [one for one in contenders if one.state is State.GOOD]
        return self._leader(good) if good else None

    def _leader(self, open_ones: Sequence[Contender]) -> Contender:
        """Return the best of those that keep their limits; without any, the one that looks best."""
        good = [one for one in open_ones if one.state is State.GOOD]
        if good:
            n = min(len(one.runs) for one in good)
            return min(good, key=lambda one: (sum(run.value for run in one.runs[:n]), one.number))
        return min(open_ones, key=_looks)

    def _dropped(self, one: Contender, leader: Contender) -> bool:
        """Drop a contender that is surely not better, and return whether it was dropped."""
        if not not_better(one, leader, self._errors, gross=_GROSS):
            return False
        one.give_up(State.WORSE, "")
        return True

    def _may_win(self, one: Contender, leader: Contender) -> bool:
        """Return whether further runs of a rival are worth it: whether it may still look better.

        One that looks worse is not dropped, but it is told that it only looked so.
        """
        n = min(len(one.runs), len(leader.runs))
        one.looked_worse = False
        if n < _SECOND:
            short = None if n or one.short is None or leader.short is None else (one.short.value, leader.short.value)
            one.looked_worse = short is not None and short[0] > short[1] + _FAR * abs(short[1])
            return not one.looked_worse
        worst = one.worst()
        breaks = worst is not None and worst[1] > 0
        mine, its = (sum(run.value for run in found.runs[:n]) for found in (one, leader))
        one.looked_worse = (breaks and mine > its) or mine > its + _GROSS * abs(its)
        if one.looked_worse or n < self._first_answer:
            return not one.looked_worse
        return not breaks and mine <= its - self._question.zone * abs(its)

    def _is_done(self, one: Contender) -> bool:
        """Return whether no further run of a contender would say more."""
        return len(one.runs) >= (self._question.max_replications if self._question.random else 1)

    def _advance(self, contenders: Sequence[Contender]) -> None:
        """Make the next runs of contenders, and look at them."""
        with self._looking(contenders):
            self._runs.up_to({one: self._next(len(one.runs)) for one in contenders if not self._is_done(one)})

    def _next(self, done: int) -> int:
        """Return to how many replications a contender with so many goes next."""
        most = self._question.max_replications if self._question.random else 1
        for stage in (1, _SECOND, self._first_answer):
            if done < stage:
                return min(stage, most)
        return min(next_stage(done), most)


def _looks(one: Contender) -> tuple[bool, float, int]:
    """Return by what contenders that are open are sorted: whether they seem to keep their limits, and their metric."""
    worst, runs = one.worst(), one.runs or ([one.short] if one.short else [])
    value = sum(run.value for run in runs) / len(runs) if runs else float("inf")
    return worst is None or worst[1] > 0, value, one.number
