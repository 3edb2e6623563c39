"""A pytest plugin that plays mutants instead of the tests."""

from __future__ import annotations

import functools
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import pytest

from .operators import Mutant
from .rooms import ROOT
from .swap import Loaded
from .trial import Tell, Trial, freeze, play_items, wait_any

ROOM_FOR_NOISE = 10.0
"""How many times the usual time a test may take before its mutant counts as endless."""


class Session:
    """Plays mutants against the collected tests and keeps what became of each."""

    def __init__(self, mutants: Sequence[Mutant], files: Sequence[Path], *, jobs: int, test_s: float) -> None:
        self.mutants = mutants
        self.files = files
        self.jobs = jobs
        self.test_s = test_s
        self.outcomes: dict[Mutant, str | None] = {}
        """The test that failed (or "hung"), None for survivors."""
        self._killers: defaultdict[Path, dict[str, None]] = defaultdict(dict)
        self._out: TextIO = os.fdopen(os.dup(sys.__stdout__.fileno()), "w", buffering=1)  # pytest captures the other

    @pytest.hookimpl
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Play all mutants; no test runs in this process."""
        if session.testsfailed:
            return True
        self._loaded = Loaded(self.files)
        freeze()
        self._limits_s, self._items = self._measure(session.items)
        self._out.write(f"{len(self._items)} tests meet {len(self.mutants)} mutants\n")
        waiting = [mutant for mutant in reversed(self.mutants) if self._loaded.has(mutant)]
        self.outcomes |= dict.fromkeys(mutant for mutant in self.mutants if not self._loaded.has(mutant))
        playing: dict[Trial, Mutant] = {}
        while waiting or playing:
            while waiting and len(playing) < self.jobs:
                mutant = waiting.pop()
                playing[Trial(functools.partial(self._play, mutant), self._patience_s())] = mutant
            for trial in wait_any(list(playing)):
                if self._has_ended(trial, playing[trial]):
                    trial.end()
                    del playing[trial]
        return True

    def summary(self, title: str) -> None:
        """Print the score."""
        killed = sum(outcome is not None for outcome in self.outcomes.values())
        total = len(self.outcomes)
        hung = sum(outcome == "hung" for outcome in self.outcomes.values())
        self._out.write(f"{title}: {killed} of {total} mutants killed ({100 * killed / total:.1f} %), {hung} hung\n")

    # -- without a mutant --------------------------------------------------------------------------------------------

    def _measure(self, items: list[pytest.Item]) -> tuple[dict[str, float], list[pytest.Item]]:
        """Run the tests once, as far as the time allows; return limits on their times, and those that pass."""
        play = functools.partial(play_items, items, limits_s={}, enough_s=self.test_s, stop_at_failure=False)
        trial = Trial(play, 100 * self.test_s + 600)
        took_s: dict[str, float] = {}
        while True:
            list(wait_any([trial]))
            for report in trial.reports():
                if report is None or report == "hung":
                    trial.end()
                    return took_s, [item for item in items if item.nodeid in took_s]
                name, seconds, passed = report
                if passed:
                    took_s[name] = ROOM_FOR_NOISE * seconds + 5.0
                else:
                    self._out.write(f"left out, for it fails without a mutant: {name}\n")

    def _patience_s(self) -> float:
        return 20 * self.test_s + 60

    # -- with a mutant -----------------------------------------------------------------------------------------------

    def _play(self, mutant: Mutant, tell: Tell) -> None:
        """Run in the fork: first the tests that found faults of this file before."""
        self._loaded.put(mutant)
        killers = self._killers[mutant.path]
        items = sorted(self._items, key=lambda item: item.nodeid not in killers)
        play_items(items, tell, limits_s=self._limits_s, enough_s=float("inf"), stop_at_failure=True)

    def _has_ended(self, trial: Trial, mutant: Mutant) -> bool:
        for report in trial.reports():
            if report is None:
                self.outcomes[mutant] = None
                self._out.write(f"survivor {len(self.outcomes)}:\n{mutant.diff(ROOT)}\n\n")
                return True
            if report == "hung":
                self.outcomes[mutant] = "hung"
                return True
            name, _, passed = report
            if not passed:
                self.outcomes[mutant] = name
                self._killers[mutant.path][name] = None
                return True
        return False
