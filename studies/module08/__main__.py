"""``python -m studies.module08``: the report on the course module, and the bench in torch that it reads."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from studies.command import run
from studies.module08.measure import measure
from studies.module08.report import BATCH_SIZES, write_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run(lambda: _files(arguments))


def _files(arguments: Sequence[str] | None) -> list[Path]:
    """Recompute the course module's figures and test its claims, or run its bench."""
    parser = argparse.ArgumentParser(prog="python -m studies.module08", description=_files.__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    report = commands.add_parser("report", help="write module08.md and module08.html with their figures")
    report.add_argument("--out", type=Path, default=Path("reports"), help="folder of the report (%(default)s)")
    report.set_defaults(command=lambda given: write_report(given.out))
    bench = commands.add_parser(
        "bench",
        help="compare padded waves with refilled slots, measured in torch and simulated",
        epilog="Needs torch: pip install 'simqueue[torch]'.",
    )
    bench.add_argument(
        "--batch-size", type=_slots, action="append", metavar="N", help="slots; repeatable (default: 8 and 32)"
    )
    bench.add_argument("--out", type=Path, metavar="DIR", help="folder for the slot figures, bench.json and steps.csv")
    bench.set_defaults(command=lambda given: measure(given.batch_size or BATCH_SIZES, given.out))
    given = parser.parse_args(arguments)
    files: list[Path] = given.command(given)
    return files


def _slots(text: str) -> int:
    if (slots := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return slots


if __name__ == "__main__":
    sys.exit(main())
