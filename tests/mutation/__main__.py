"""Mutation testing: puts small faults into the sources of a room, one at a time, and sees whether a test fails.

    python -m tests.mutation --room kvcache --sample 300 --seed 1

Run it from the root of the repository; it needs the sources uncompiled and writes nothing into the tree.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

import pytest

from .operators import Mutant, mutants_of
from .rooms import ROOMS, ROOT
from .session import Session


def main() -> int:
    """Play a sample and print the survivors as diffs, then the score."""
    asked = _arguments()
    room = ROOMS[asked.room]
    files = [ROOT / asked.file] if asked.file else room.source_files()
    mutants = _sample(files, asked.sample, asked.seed)
    if asked.only:
        mutants = {number: mutants[number] for number in asked.only}
    session = Session(mutants, room, jobs=asked.jobs, test_s=asked.seconds)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = scratch
        sys.dont_write_bytecode = True
        folders = room.test_folders(others=asked.seconds > 0)
        code = pytest.main([*_OPTIONS, *map(str, folders)], plugins=[session])
    if not session.outcomes:
        sys.stderr.write(f"the tests could not be collected: pytest exits with {code}\n")
        return 1
    session.summary(f"{asked.room}, seed {asked.seed}")
    return 0


_OPTIONS = [
    *("-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:terminal"),
    "--continue-on-collection-errors",
    *("--rootdir", str(ROOT), "--hypothesis-profile", "mutation"),
]


def _sample(files: list[Path], number: int, seed: int) -> dict[int, Mutant]:
    """Draw mutants and number them from 1."""
    mutants = [mutant for file in files for mutant in mutants_of(file)]
    rng = random.Random(seed)
    return dict(enumerate(rng.sample(mutants, min(number, len(mutants))), 1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("--room", choices=ROOMS, required=True, help="the sources and the tests that know them best")
    parser.add_argument("--sample", type=int, default=300, help="number of mutants (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="which mutants are drawn (default: 1)")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="time for tests that are not the room's own (default: 60)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    parser.add_argument("--only", type=int, nargs="+", help="play these mutants of the sample alone, by number")
    parser.add_argument("--file", help="mutate this source file only")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
