"""Kills sweeps with ``kill -9`` at random instants, one alone or one of two, and goes on with them until they end."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

SCENARIO: Final = """\
step_time: {kind: linear, overhead_s: 0.01, per_prefill_token_s: 2.0e-5}
kv_cache: {blocks: 200}
workload:
  arrivals: {process: poisson, rate_rps: 8}
  num_requests: 40
  prompt_tokens: {distribution: constant, value: 64}
  output_tokens: {distribution: geometric, mean: 8}
policies:
  a: {scheduler: chunked, max_num_seqs: 4}
  b: {scheduler: continuous, max_num_seqs: 4}
"""
_AT_ANY_TIME: Final = 0.2
"""Share of the kills that are at any time, also while the sweep starts."""
_MOMENT_S: Final = 1.0
PATIENCE_S: Final = 5.0
"""How long worker processes may live after the process that leads them."""


@dataclass(slots=True)
class Tally:
    """What was found.

    Attributes
    ----------
    kills, both : int
        Kills, and those of them of one of two sweeps into the same folder.
    stored : list of int
        Cells in the store after each kill.
    ended, same : int
        Sweeps that were gone on with until they ended, and those with the bytes of the one that was left alone.
    orphans : int
        Kills after which worker processes lived on.
    faults : list of str
        Lost, double and torn cells, and stores that are damaged.
    """

    kills: int = 0
    both: int = 0
    stored: list[int] = field(default_factory=list)
    ended: int = 0
    same: int = 0
    orphans: int = 0
    faults: list[str] = field(default_factory=list)


class Killer:
    """Starts sweeps of one design in worker processes, and kills them.

    Parameters
    ----------
    folder : Path
        Of the scenario and of all sweeps.
    cells : int
        Of the design.
    random : Random
        Decides the instants.
    """

    def __init__(self, folder: Path, cells: int, random: Random) -> None:
        self._folder, self._cells, self._random = folder, cells, random
        (folder / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
        began = time.perf_counter()
        _wait(self._start("whole"))
        self._whole_s = time.perf_counter() - began
        self._table = (folder / "whole" / "rows.parquet").read_bytes()
        self._outcomes, faults = self._store("whole")
        if faults or len(self._outcomes) != cells:
            raise RuntimeError(f"the sweep that was left alone has {len(self._outcomes)} of {cells} cells: {faults}")

    def killed(self, kills: int) -> Tally:
        """Kill so often, go on with the last sweep to its end, and return what was found."""
        found = Tally()
        number = 0
        while found.kills < kills:
            number += 1
            name = f"killed-{number}"
            while found.kills < kills and not self._kill(name, found):
                pass
            _wait(self._start(name))
            self._compare(name, found)
        return found

    def _kill(self, name: str, found: Tally) -> bool:
        """Kill a sweep at some instant, and return whether it had ended already."""
        before = len(self._store(name)[0])
        both = self._random.random() < 0.25
        running = [self._start(name) for _ in range(1 + both)]
        self._pause(name, before, running[0])
        killed, *others = running
        if killed.poll() is not None:
            for other in others:
                _wait(other)
            return True
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        self._check(name, before, found)
        found.kills, found.both = found.kills + 1, found.both + both
        found.orphans += not _ends(killed.pid)
        for other in others:
            _wait(other)
        return bool(others)

    def _pause(self, name: str, before: int, running: subprocess.Popen[bytes]) -> None:
        """Wait for some time, most often until a moment after the first cell is stored: starting takes longer."""
        if self._random.random() < _AT_ANY_TIME:
            time.sleep(self._random.random() * self._whole_s)
            return
        while running.poll() is None and len(self._store(name)[0]) == before:
            time.sleep(0.01)
        time.sleep(self._random.random() * _MOMENT_S)

    def _check(self, name: str, before: int, found: Tally) -> None:
        outcomes, faults = self._store(name)
        found.stored.append(len(outcomes))
        found.faults += [f"{name}, kill {found.kills + 1}: {fault}" for fault in faults]
        if len(outcomes) < before:
            found.faults.append(f"{name}, kill {found.kills + 1}: {before - len(outcomes)} cells are lost")

    def _compare(self, name: str, found: Tally) -> None:
        found.ended += 1
        if (self._folder / name / "rows.parquet").read_bytes() == self._table:
            found.same += 1
        else:
            found.faults.append(f"{name}: the table differs from that of the sweep that was left alone")
        outcomes, faults = self._store(name)
        found.faults += [f"{name}: {fault}" for fault in faults]
        if len(outcomes) != self._cells:
            found.faults.append(f"{name}: {len(outcomes)} cells are stored, not {self._cells}")

    def _store(self, name: str) -> tuple[dict[str, str], list[str]]:
        """Return the stored cells, and what is wrong with them: pages, or outcomes that are not whole."""
        file = self._folder / name / "cells.sqlite"
        if not file.exists() or not file.stat().st_size:
            return {}, []
        opened = sqlite3.connect(file)
        try:
            (verdict,) = opened.execute("PRAGMA integrity_check").fetchone()
            there = opened.execute("SELECT 1 FROM sqlite_master WHERE name = 'cells'").fetchone()
            outcomes = dict(opened.execute("SELECT key, outcome FROM cells")) if there else {}
        finally:
            opened.close()
        whole = getattr(self, "_outcomes", outcomes)
        torn = [key for key, text in outcomes.items() if whole.get(key) != text]
        faults = [f"cell {key[:8]} is torn" for key in torn] + ([] if verdict == "ok" else [f"the store: {verdict}"])
        return outcomes, faults

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "simqueue", "sweep", "scenario.yaml", "--workers", "2", "--quiet"]
        axis = f"workload.arrivals.rate_rps=4:32:{self._cells}"
        return subprocess.Popen(  # noqa: S603 - our own command
            [*command, "--grid", axis, "--out", name],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )


def _wait(process: subprocess.Popen[bytes]) -> None:
    if process.wait():
        raise RuntimeError(f"a sweep that was left alone ended with {process.returncode}")


def _ends(group: int) -> bool:
    """Return whether all processes of a group end soon."""
    until = time.perf_counter() + PATIENCE_S
    while time.perf_counter() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
