"""Sweeps that are killed, and two at once: the same table, and no work for nothing.

``python -m studies.sweeps kills`` does the same many times, with worker processes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import SystemRandom

import simqueue as sq
from simqueue.sweeps.store import Store

from .toys import RATE, rows_in, toy

CELLS = 30
KILLS = 4
PROGRAM = Path(__file__).with_name("killed.py")


def test_kills_and_two_at_once_leave_the_same_table(tmp_path: Path) -> None:
    """The table is that of a sweep that was left alone; a kill costs at most the cell that was running."""
    seed = SystemRandom().randrange(2**32)
    arguments = [sys.executable, PROGRAM, tmp_path, str(CELLS), str(seed)]
    ended = subprocess.run(arguments, capture_output=True, text=True, check=True)
    print(f"instants of kills: seed {seed}")  # noqa: T201 - shown if the test fails
    told = [int(word) for word in ended.stdout.split()]
    assert rows_in(tmp_path / "killed") == rows_in(tmp_path / "whole")
    with Store(tmp_path / "killed", read_only=True) as killed, Store(tmp_path / "whole", read_only=True) as whole:
        assert killed.rows() == whole.rows() == CELLS
    assert len(told) == KILLS + 1
    assert sum(told[:3]) + told[4] <= CELLS
    # a cell can be stored and not yet told, and both can run the same one
    assert CELLS - KILLS <= sum(told) <= CELLS + KILLS


def test_two_processes_make_the_same_table(tmp_path: Path) -> None:
    """Cells that are run by worker processes, and by this one, are the same bytes."""
    for folder, workers in (("one", 1), ("two", 2)):
        sq.sweep(toy(), grid={RATE: [4, 8, -1, 12]}, out=tmp_path / folder, workers=workers)
    assert rows_in(tmp_path / "one") == rows_in(tmp_path / "two")
