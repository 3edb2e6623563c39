"""What is installed: the version of the package, and whether its inner loop is compiled."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

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


VERSION = installed_version()
COMPILED = is_compiled()
