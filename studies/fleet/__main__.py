"""``python -m studies.fleet [theory|routing]``: writes the page reports/fleet.md or reports/fleet-routing.md."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from studies.command import run
from studies.fleet import herding, queues, routing, waits
from studies.fleet.exact import Size

PAGE: Final = "fleet.md"
ROUTING_PAGE: Final = "fleet-routing.md"
_FIGURES: Final = "fleet"
_SMALL: Final = Size(requests=60, replications=2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run(lambda: _files(arguments))


def _files(arguments: Sequence[str] | None) -> list[Path]:
    """Compare fleets with queueing theory, or with published measurements, and write the page with its figures."""
    parser = argparse.ArgumentParser(prog="python -m studies.fleet", description=_files.__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS, default="theory", help="what to compare with (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("reports"), help="folder of the page (%(default)s)")
    parser.add_argument("--small", action="store_true", help="few and short runs, which only show that it works")
    given = parser.parse_args(arguments)
    return PARTS[given.part](given.out, small=given.small)


def write(folder: Path, *, small: bool = False) -> list[Path]:
    """Measure, write the page and its figures to a folder, and return their paths."""
    (folder / _FIGURES).mkdir(parents=True, exist_ok=True)
    workers = 1 if small else os.cpu_count() or 1
    by_router = waits.measured(_SMALL if small else waits.SIZE, workers=workers)
    of_many = queues.measured(_SMALL if small else queues.SIZE, workers=workers)
    by_age = herding.measured(_SMALL if small else herding.SIZE, workers=workers)
    figures = [f"{_FIGURES}/{name}.png" for name in ("waits", "queues", "herding")]
    lines = [
        "<!-- written by: python -m studies.fleet -->",
        "# Fleets against theory",
        "",
        *waits.lines(by_router, figures[0]),
        *queues.lines(of_many, figures[1]),
        *herding.lines(by_age, figures[2]),
    ]
    waits.draw(by_router, folder / figures[0])
    queues.draw(of_many, folder / figures[1])
    herding.draw(by_age, folder / figures[2])
    (folder / PAGE).write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8", newline="\n")
    return [folder / PAGE, *(folder / figure for figure in figures)]


def write_routing(folder: Path, *, small: bool = False) -> list[Path]:
    """Repeat the published measurements, write the page and its figure to a folder, and return their paths."""
    (folder / _FIGURES).mkdir(parents=True, exist_ok=True)
    found = routing.measured(routing.SMALL if small else routing.SIZE, workers=1 if small else os.cpu_count() or 1)
    figure = f"{_FIGURES}/routing.png"
    lines = ["<!-- written by: python -m studies.fleet routing -->", *routing.lines(found, figure)]
    routing.draw(found, folder / figure)
    (folder / ROUTING_PAGE).write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8", newline="\n")
    return [folder / ROUTING_PAGE, folder / figure]


PARTS: Final[Mapping[str, Callable[..., list[Path]]]] = {"theory": write, "routing": write_routing}


if __name__ == "__main__":
    sys.exit(main())
