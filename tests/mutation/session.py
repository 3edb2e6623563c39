"""A pytest plugin that plays mutants instead of the tests."""

from __future__ import annotations

import functools
import os
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import pytest

from .operators import Mutant
from .rooms import ROOT, Room
from .swap import Loaded
from .trial import Tell, Trial, freeze, play_items, wait_any

PATIENCE_S = 3600.0
"""Time on the wall after which a mutant counts as hung, whatever it does."""


class Session:
    """Plays mutants against the collected tests and keeps what became of each."""

    def __init__(self, mutants: Mapping[int, Mutant], room: Room, *, jobs: int, test_s: float) -> None:
        self.mutants = mutants
        self.room = room
        self.jobs = jobs
        self.test_s = test_s
        self.outcomes: dict[int, str | None] = {}
        """The test that failed (or "hung"), None for survivors."""
        self._killers: defaultdict[Path, dict[str, None]] = defaultdict(dict)
        self._out: TextIO = os.fdopen(os.dup(sys.__stdout__.fileno()), "w", buffering=1)  # pytest captures the other

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Say which tests cannot be imported; the others are played."""
        if report.failed:
            self._out.write(f"left out, for it cannot be imported: {report.nodeid}\n{report.longreprtext}\n")

    @pytest.hookimpl
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Play all mutants; no test runs in this process."""
        self._loaded = Loaded(self.room.source_files())
        freeze()
        self._took_s = self._measure(session.items)
        self._items = [item for item in session.items if item.nodeid in self._took_s]
        self._items.sort(key=lambda item: (not self.room.owns(item.path), self._took_s[item.nodeid]))
        self._out.write(f"{len(self._items)} tests meet {len(self.mutants)} mutants\n")
        waiting = list(reversed(self.mutants))
        playing: dict[Trial, int] = {}
        while waiting or playing:
            while waiting and len(playing) < self.jobs:
                number = waiting.pop()
                play = functools.partial(self._play, self.mutants[number])
                playing[Trial(play, PATIENCE_S)] = number
            for trial in wait_any(list(playing)):
                if self._has_ended(trial, playing[trial]):
                    trial.end()
                    del playing[trial]
        return True

    def summary(self, title: str) -> None:
        """Print the score."""
        survivors = [number for number, outcome in self.outcomes.items() if outcome is None]
        hung = sum(outcome == "hung" for outcome in self.outcomes.values())
        total = len(self.outcomes)
        killed = total - len(survivors)
        self._out.write(f"{title}: {killed} of {total} mutants killed ({100 * killed / total:.1f} %), {hung} hung\n")
        self._out.write(f"survivors: {' '.join(map(str, sorted(survivors)))}\n")

    # -- without a mutant --------------------------------------------------------------------------------------------

    def _measure(self, items: list[pytest.Item]) -> dict[str, float]:
        """Run the tests once: the room's own, then others as time allows; return the times of those that can fail."""
        items = sorted(items, key=lambda item: not self.room.owns(item.path))
        own = sum(self.room.owns(item.path) for item in items)
        took_s: dict[str, float] = {}
        for some, enough_s in ((items[:own], float("inf")), (items[own:], self.test_s)):
            trial = Trial(functools.partial(play_items, some, limits_s={}, enough_s=enough_s), 3600.0)
            for report in trial.all_reports():
                if not report.passed:
                    self._out.write(f"left out, for it fails without a mutant: {report.name}\n")
                elif report.seconds_of_children < report.seconds + 0.1:  # else it tests in other processes
                    took_s[report.name] = report.seconds
        return took_s

    # -- with a mutant -----------------------------------------------------------------------------------------------

    def _play(self, mutant: Mutant, tell: Tell) -> None:
        """Run in the fork: first the tests that found faults of this file before."""
        self._loaded.put(mutant)
        killers = self._killers[mutant.path]
        items = sorted(self._items, key=lambda item: item.nodeid not in killers)
        limits_s = {name: 10.0 * seconds + 5.0 for name, seconds in self._took_s.items()}
        play_items(items, tell, limits_s=limits_s, stop_at_failure=True)

    def _has_ended(self, trial: Trial, number: int) -> bool:
        mutant = self.mutants[number]
        for report in trial.reports():
            if report is None:
                self.outcomes[number] = None
                self._out.write(f"{number} survives:\n{mutant.diff(ROOT)}\n\n")
                return True
            if report == "hung":
                self.outcomes[number] = "hung"
                return True
            if not report.passed:
                self.outcomes[number] = report.name
                self._killers[mutant.path][report.name] = None
                return True
        return False
