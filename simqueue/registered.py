"""Classes that programs register under a name: whether one is there already, again or as another one."""

from __future__ import annotations

from typing import Final

_MAIN: Final = ("__main__", "__mp_main__")
"""Names of the module that runs as the main program, in this process and in worker processes."""


def is_own(cls: type) -> bool:
    """Return whether a class is one of this package."""
    return cls.__module__.startswith("simqueue.")


def is_same(cls: type, other: type) -> bool:
    """Return whether `cls` is `other` again: its module was loaded again, or also runs as the main program."""
    if cls.__qualname__ != other.__qualname__:
        return False
    modules = {cls.__module__, other.__module__}
    return len(modules) == 1 or (not modules.isdisjoint(_MAIN) and not is_own(cls) and not is_own(other))
