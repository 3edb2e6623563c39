"""The race: which of several systems is the best that keeps its limits, with as few runs as needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simqueue.decisions.tuning.contender import Contender, State, not_better
from simqueue.decisions.tuning.evidence import fewest_replications
from simqueue.decisions.tuning.question import Errors, Question
from simqueue.decisions.tuning.runs import Runs
from simqueue.experiment.best import next_stage

_GROSS: Final = 0.1
"""What is worse by this share in a short run is dropped."""
_SECOND: Final = 3
"""Replications after the first one, if that has not decided."""


class Race:
    """Races systems.

    After a short run of each, the one that looks best is run until it is known whether it keeps its limits. Those that
    are surely not better than it are dropped. The others are run on until they are dropped, given up, or have taken its
    place.

    Parameters
    ----------
    question : Question
    runs : Runs
    errors : Errors
    """

    def __init__(self, question: Question, runs: Runs, errors: Errors) -> None:
        self._question, self._runs, self._errors = question, runs, errors
        self._first_answer = min(fewest_replications(errors.taken), question.max_replications)

    def best(self, group: Sequence[Contender]) -> Contender | None:
        """Return the best of a group; None if none of it is known to keep its limits."""
        self._runs.short(group)
        self._look(group)
        while open_ones := [one for one in group if one.in_race]:
            leader = self._leader(open_ones)
            if leader.state is not State.GOOD:
                self._advance([leader])
                continue
            rivals = [one for one in open_ones if one is not leader and not self._dropped(one, leader)]
            late = [one for one in rivals if not self._is_done(one)]
            if not late:
                return leader
            behind = [one for one in late if len(one.runs) < len(leader.runs)]
            self._advance(behind or [*late, leader])
        return None

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

    def _is_done(self, one: Contender) -> bool:
        """Return whether no further run of a contender would say more."""
        return len(one.runs) >= (self._question.max_replications if self._question.random else 1)

    def _advance(self, contenders: Sequence[Contender]) -> None:
        """Make the next runs of contenders, and look at them."""
        self._runs.up_to({one: self._next(len(one.runs)) for one in contenders if not self._is_done(one)})
        self._look(contenders)

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
