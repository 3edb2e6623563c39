"""A lock on a file, which ends with the process that holds it, however the process ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform != "win32":
    import fcntl


def lock(path: Path) -> int | None:
    """Lock a file, which is created if it is missing, and return its descriptor; None if another process has locked it.

    Closing the descriptor releases the lock. Where the file system has no locks, every file can be locked.

    Raises
    ------
    OSError
        If the file cannot be opened.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if not _taken(descriptor):
            os.close(descriptor)
            return None
        if _is_still(path, descriptor):
            return descriptor
        os.close(descriptor)  # the process that held the lock has removed the file in between


def _taken(descriptor: int) -> bool:
    """Return whether the lock could be taken."""
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:
            return True
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
