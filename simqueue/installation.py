"""What is installed: the version of the package, its code, and whether its inner loop is compiled."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

UNKNOWN = "0+unknown"
"""The version of a source tree that is not installed."""


def installed_version() -> str:
    """Return the version of the installed package, or `UNKNOWN`."""
    try:
        return version("simqueue")
    except PackageNotFoundError:
        return UNKNOWN


def is_compiled() -> bool:
    """Return whether the modules of the inner loop are compiled extensions.

    They are compiled when a wheel is built and a C compiler is present. Otherwise they are Python files, with the same
    results. `simqueue.request` is one of these modules.
    """
    found = find_spec("simqueue.request")
    return found is not None and not str(found.origin).endswith(".py")


_SHOW: Final = ("cli", "figures", "report", "scenarios")
"""Parts of the package that show results or are not code; what a run gives does not depend on them."""
_CODE: Final = (".py", ".yaml", ".json", ".csv")


@cache
def code_digest() -> str:
    """Return a hash of the files of the package that decide what a run gives, compiled or not.

    A release can be told by its version. A checkout of the repository keeps its version while its code changes.
    """
    folder = Path(__file__).parent
    found = sha256()
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        if file.suffix in _CODE and name.parts[0] not in _SHOW:
            found.update(f"{name.as_posix()}\0".encode() + sha256(file.read_bytes()).digest())
    return found.hexdigest()


def is_checkout() -> bool:
    """Return whether the package is the source tree of its repository, whose code changes without its version."""
    return (Path(__file__).parents[1] / "pyproject.toml").is_file()


VERSION = installed_version()
COMPILED = is_compiled()
