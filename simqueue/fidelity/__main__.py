"""``python -m simqueue.fidelity``: writes the report, or fits the presets anew."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simqueue.errors import SimqueueError, exit_code


def main() -> int:
    """Write the report and its figures; with ``--fit`` fit the presets first."""
    parser = argparse.ArgumentParser(prog="python -m simqueue.fidelity", description=main.__doc__)
    parser.add_argument("--data", type=Path, default=Path("data/groundtruth"), help="measurements (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("reports"), help="folder of the report (%(default)s)")
    parser.add_argument(
        "--fit", type=Path, metavar="FOLDER", help="fit the presets and write their files there; no report"
    )
    arguments = parser.parse_args()
    try:
        files = _fit(arguments.data, arguments.fit) if arguments.fit else _report(arguments.data, arguments.out)
    except (SimqueueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - a command's last word
        return 2
    for file in files:
        print(file)  # noqa: T201 - a command's output
    return 0


def _report(data: Path, out: Path) -> list[Path]:
    from simqueue.fidelity.report import find, write_report  # noqa: PLC0415 - heavy

    return write_report(find(data), out)


def _fit(data: Path, folder: Path) -> list[Path]:
    from simqueue.fidelity.presets import cook_all  # noqa: PLC0415 - heavy

    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for cooked in cook_all(data):
        file = folder / f"{cooked.recipe.name}.yaml"
        file.write_text(cooked.text, encoding="utf-8")
        files.append(file)
    return files


if __name__ == "__main__":
    sys.exit(exit_code(main))
