"""``simqueue init``: a first scenario to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simqueue.errors import InputError


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="Where to write it.")] = Path("scenario.yaml"),
) -> None:
    """Write a commented first scenario, which runs as it is."""
    from importlib.resources import files

    text = files("simqueue.cli").joinpath("first_scenario.yaml").read_text(encoding="utf-8")
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise InputError(f"{file}: exists already and is not overwritten; name another file") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror}") from None
    typer.echo(f"wrote {file}; run it with: simqueue run {file}")
