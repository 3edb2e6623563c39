"""``python -m studies.sweeps kills``: kills sweeps at random instants, and looks at what they leave."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from simqueue.errors import RunError
from studies.command import run
from studies.sweeps.kills import PATIENCE_S, Killer, Tally


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run(lambda: _kills(arguments))


def _kills(arguments: Sequence[str] | None) -> list[Path]:
    """Kill sweeps at random instants, and print what they left; exits with 1 if anything was lost, double or torn."""
    parser = argparse.ArgumentParser(prog="python -m studies.sweeps", description=_kills.__doc__)
    parser.add_argument("what", choices=["kills"])
    parser.add_argument("--kills", type=int, default=50, help="how often (default: %(default)s)")
    parser.add_argument("--cells", type=int, default=200, help="cells of each sweep (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the instants (default: %(default)s)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = Killer(Path(folder), given.cells, Random(given.seed)).killed(given.kills)
    for line in _lines(found, given.cells):
        print(line)
    if found.faults:
        raise RunError(f"{len(found.faults)} faults")
    return []


def _lines(found: Tally, cells: int) -> list[str]:
    stored = sorted(found.stored)
    return [
        f"kills: {found.kills}, {found.both} of them of one of two sweeps into one folder; {cells} cells each",
        f"cells that were stored when it was killed: {stored[0]} to {stored[-1]}, median {stored[len(stored) // 2]}",
        f"sweeps gone on with to the end: {found.ended}; with the bytes of the one left alone: {found.same}",
        f"kills after which worker processes lived for {PATIENCE_S:g} s or longer: {found.orphans}",
        f"lost, double or torn cells: {len(found.faults)}",
        *found.faults,
    ]


if __name__ == "__main__":
    sys.exit(main())
