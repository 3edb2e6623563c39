"""``python -m studies.fidelity``: writes the fidelity report, or fits the presets again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from studies.command import require, run
from studies.fidelity.presets import cook_all
from studies.fidelity.report import find, write_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the calibrated step times with measurements and write reports/fidelity.md with its figures."""
    parser = argparse.ArgumentParser(prog="python -m studies.fidelity", description=main.__doc__)
    parser.add_argument("--data", type=Path, default=Path("data/groundtruth"), help="measurements (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("reports"), help="folder of the report (%(default)s)")
    parser.add_argument(
        "--fit",
        type=Path,
        metavar="FOLDER",
        help="fit the presets and write their files to FOLDER; no report",
    )
    given = parser.parse_args(arguments)
    return run(lambda: _fit(given.data, given.fit) if given.fit else _report(given.data, given.out))


def _report(data: Path, out: Path) -> list[Path]:
    require(data, "--data")
    return write_report(find(data), out)


def _fit(data: Path, folder: Path) -> list[Path]:
    require(data, "--data")
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for cooked in cook_all(data):
        file = folder / f"{cooked.recipe.name}.yaml"
        file.write_text(cooked.text, encoding="utf-8")
        files.append(file)
    return files


if __name__ == "__main__":
    sys.exit(main())
