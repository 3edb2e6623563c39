"""``python -m studies.certainty PART``: measures one part and writes its page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from studies.certainty import coverage, law, one_run, overload, power
from studies.command import run

PARTS: Mapping[str, Callable[[Path], list[Path]]] = {
    "coverage": coverage.write,
    "law": law.write,
    "one-run": one_run.write,
    "overload": overload.write_page,
    "power": power.write,
}
"""Name -> the function that writes the page of a part to a folder."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run(lambda: _files(arguments))


def _files(arguments: Sequence[str] | None) -> list[Path]:
    """Measure how certain results are, and write the page of this part with its figures."""
    parser = argparse.ArgumentParser(prog="python -m studies.certainty", description=_files.__doc__)
    parser.add_argument("part", choices=sorted(PARTS), help="what is measured")
    parser.add_argument("--out", type=Path, default=Path("reports/certainty"), help="folder of the page (%(default)s)")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    return PARTS[given.part](given.out)


if __name__ == "__main__":
    sys.exit(main())
