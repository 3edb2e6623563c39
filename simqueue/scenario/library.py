"""The packaged scenarios, and the file that an argument names."""

from __future__ import annotations

from pathlib import Path

from simqueue.datafiles.regular import is_folder, is_there
from simqueue.errors import InputError, show
from simqueue.names import unknown

STDIN = Path("/dev/stdin")
"""What ``-`` names."""

_PACKAGE = Path(__file__).resolve().parent.parent


def packaged_scenarios() -> dict[str, Path]:
    """Return name -> file of the packaged scenarios, by name.

    They are inside an installed package, and beside the package in a source tree. The name of one in a folder begins
    with that of the folder: ``fleet/waves``.
    """
    for folder in (_PACKAGE / "scenarios", _PACKAGE.parent / "scenarios"):
        if folder.is_dir():
            files = sorted(folder.rglob("*.yaml"))
            return {file.relative_to(folder).with_suffix("").as_posix(): file for file in files}
    return {}


def find(argument: str | Path) -> Path:
    """Return the file that `argument` names: a path, the name of a packaged scenario, or ``-`` for `STDIN`.

    Raises
    ------
    InputError
        There is no such file and no packaged scenario of that name. A folder is not a file.
    """
    if not isinstance(argument, str | Path):
        raise InputError(f"{show(argument) or 'this'} is no scenario: must be keys, a path, or a packaged name")
    path = STDIN if str(argument) == "-" else Path(argument)
    folder = is_folder(path)
    if is_there(path) and not folder:
        return path
    known = packaged_scenarios()
    if str(argument) in known:
        return known[str(argument)]
    if folder:
        raise InputError.at(str(argument), "this is a folder, not a file")
    if path.suffix or len(path.parts) > 1:  # certainly meant as a path
        raise InputError.at(str(argument), "there is no such file")
    raise InputError(f"{unknown('scenario', argument, known)}, or the path of a file")


def scenario_rows() -> list[dict[str, str]]:
    """Return one row per packaged scenario, for ``simqueue list scenarios``."""
    return [{"scenario": name, "what it shows": headline(file)} for name, file in packaged_scenarios().items()]


def headline(file: Path) -> str:
    """Return the first comment of a scenario file, which says what the scenario shows."""
    first = file.read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ").strip() if first.startswith("#") else ""
