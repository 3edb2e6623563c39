"""``python -m studies.fidelity``: writes the fidelity report, or fits the presets again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from studies.command import require, run
from studies.fidelity.beyond import as_yaml, beyond
from studies.fidelity.presets import fit_all
from studies.fidelity.report import find, write_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run(lambda: _files(arguments))


def _files(arguments: Sequence[str] | None) -> list[Path]:
    """Compare the calibrated step times with measurements and write fidelity.md with its figures."""
    parser = argparse.ArgumentParser(prog="python -m studies.fidelity", description=_files.__doc__)
    parser.add_argument("--data", type=Path, default=Path("data/groundtruth"), help="measurements (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("reports"), help="folder of the report (%(default)s)")
    parser.add_argument(
        "--fit",
        type=Path,
        metavar="FOLDER",
        help="fit the presets and write their files to FOLDER; no report",
    )
    parser.add_argument(
        "--beyond",
        type=Path,
        metavar="FILE",
        help="write the errors outside the data of presets, which runs state, to FILE; no report",
    )
    given = parser.parse_args(arguments)
    require(given.data, "--data")
    if given.beyond:
        given.beyond.write_text(as_yaml(beyond(given.data)), encoding="utf-8")
        return [given.beyond]
    return _fit(given.data, given.fit) if given.fit else write_report(find(given.data), given.out)


def _fit(data: Path, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for fitted in fit_all(data):
        file = folder / f"{fitted.recipe.name}.yaml"
        file.write_text(fitted.text, encoding="utf-8")
        files.append(file)
    return files


if __name__ == "__main__":
    sys.exit(main())
