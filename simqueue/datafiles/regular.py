"""Opening files for reading: regular files only, up to a size, so that reading always ends.

A FIFO can wait for ever, a device such as ``/dev/zero`` never ends, and the kernel's own files state no size.
"""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import Any, Final

_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_GIVEN: Final = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Beginnings of the names of what is open in this process already. A pipe there has a writer: the shell has made it."""
AT_ONCE: Final = 2**17
"""Bytes that are read at once."""
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_WITHOUT_WAITING: Final = getattr(os, "O_NONBLOCK", 0)


class UnreadableError(Exception):
    """A file cannot be read; the text says why and does not name the file."""


class MissingError(UnreadableError):
    """There is no such file."""


def is_there(path: Path) -> bool:
    """Return whether there is something of this name; False for a name that no file can have."""
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, a NUL, or a folder around it that cannot be searched
        return False


def is_folder(path: Path) -> bool:
    """Return whether there is a folder of this name; False for a name that no file can have."""
    return is_there(path) and path.is_dir()


def open_regular(path: Path, most_bytes: int, *, pipes: bool = False) -> io.BufferedReader:
    """Open a file to read its bytes.

    Parameters
    ----------
    path : Path
        The file.
    most_bytes : int
        The largest size. Reading beyond it is an error too: a file can grow, or state no size.
    pipes : bool
        Whether a pipe that the shell has given to this process, such as ``/dev/stdin``, can be read too.

    Raises
    ------
    UnreadableError
        If there is no such file, if it cannot be read, is not a regular file, or is too large; also while it
        is read.
    """
    pipe = _is_pipe_to_read(path, most_bytes, pipes=pipes)
    try:
        # in case that a FIFO has taken its place since it was looked at: do not wait for a writer
        descriptor = os.open(path, _FLAGS | (0 if pipe else _WITHOUT_WAITING))
    except OSError as error:
        raise _cannot(error) from None
    return io.BufferedReader(_Limited(descriptor, Budget(most_bytes, None)), AT_ONCE)


def check_regular(path: Path, most_bytes: int) -> None:
    """Check that a file can be read, without opening it, for a library that opens it by its name.

    Raises
    ------
    UnreadableError
        As `open_regular`.
    """
    _is_pipe_to_read(path, most_bytes, pipes=False)


def _is_pipe_to_read(path: Path, most_bytes: int, *, pipes: bool) -> bool:
    """Return whether this is a pipe that can be read; raise if it is neither that nor a regular file of the size."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise MissingError("no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise _cannot(error) from None
    if pipes and stat.S_ISFIFO(found.st_mode) and str(path).startswith(_GIVEN):
        return True
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "something else")
        raise UnreadableError(f"this is {kind}, not a file")
    if found.st_size > most_bytes:
        raise _too_large(most_bytes)
    return False


class Budget:
    """Counts bytes that are read, up to a number of all and a number in a line.

    Parameters
    ----------
    most_bytes : int
    most_line_bytes : int or None
        None: lines can have any length.
    """

    def __init__(self, most_bytes: int, most_line_bytes: int | None) -> None:
        self._most = self._left = most_bytes
        self._most_line = most_line_bytes
        self._line = 0

    def take(self, piece: bytes) -> None:
        """Count a piece; UnreadableError if it is too much."""
        self._left -= len(piece)
        if self._left < 0:
            raise _too_large(self._most)
        if self._most_line is not None:
            self._watch_line(piece, self._most_line)

    def _watch_line(self, piece: bytes, most: int) -> None:
        """Count the bytes since the last line end."""
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        self._line = self._line + len(piece) if end < 0 else len(piece) - end - 1
        if self._line > most:
            raise UnreadableError(f"a line is too long: it can have up to {most / 2**20:,.0f} MiB")


class _Limited(io.FileIO):
    """A file of which only a number of bytes, and lines up to a length, can be read."""

    def __init__(self, descriptor: int, budget: Budget) -> None:
        super().__init__(descriptor, "rb")
        self._budget = budget

    def __del__(self) -> None:
        """Close a file that was given up half read: its reader ended in an error, or the rest was not asked for."""
        self.close()

    def readinto(self, buffer: Any) -> int | None:
        """Read bytes into a buffer and return how many."""
        try:
            count = super().readinto(buffer) or 0
        except OSError as error:
            raise _cannot(error) from None
        self._budget.take(bytes(buffer[:count]))
        return count

    def readall(self) -> bytes:
        """Read the rest, piece by piece, so that the limit holds."""
        pieces = []
        while piece := self.read(AT_ONCE):
            pieces.append(piece)
        return b"".join(pieces)

    def read(self, size: int | None = -1) -> bytes:
        """Read up to `size` bytes."""
        if size is None or size < 0:
            return self.readall()
        buffer = bytearray(size)
        return bytes(buffer[: self.readinto(buffer) or 0])


def _too_large(most_bytes: int) -> UnreadableError:
    return UnreadableError(f"the file is too large: it can have up to {most_bytes / 2**20:,.0f} MiB")


def _cannot(error: Exception) -> UnreadableError:
    return UnreadableError(f"cannot be read: {getattr(error, 'strerror', None) or error}")
