"""``python -m studies.decisions PART``: measures one part and writes its page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from studies.command import run
from studies.decisions import cheapest, coverage
from studies.decisions.tune import write as write_tune


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run(lambda: _files(arguments))


def _files(arguments: Sequence[str] | None) -> list[Path]:
    """Measure how right decisions are, and write the page of this part."""
    parser = argparse.ArgumentParser(prog="python -m studies.decisions", description=_files.__doc__)
    parser.add_argument("part", choices=["cheapest", "coverage", "tune"], help="what is measured")
    parser.add_argument("--out", type=Path, default=Path("reports"), help="folder of the page (%(default)s)")
    parser.add_argument(
        "--repetitions", type=int, default=coverage.REPETITIONS, help="independent searches of coverage (%(default)s)"
    )
    parser.add_argument("--workers", type=int, help="processes of coverage and cheapest (all cores)")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.part == "tune":
        return write_tune(given.out)
    if given.part == "cheapest":
        return cheapest.write(given.out, workers=given.workers)
    return coverage.write(given.out, repetitions=given.repetitions, workers=given.workers)


if __name__ == "__main__":
    sys.exit(main())
