"""The two kinds of outputs, files and folders, and all outputs of a command."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from simqueue.errors import InputError, RunError
from simqueue.outputs.earlier import check_replaceable
from simqueue.outputs.place import Place, absolute, reason, shown


class FilePlace(Place):
    """A file that will be written.

    Parameters
    ----------
    path : Path
    replace : bool
        Whether the file may exist.
    """

    def __init__(self, path: Path, *, replace: bool = True) -> None:
        self._replace = replace
        super().__init__(path)

    def check(self) -> None:
        """Raise InputError if there is a folder, or a file that must not be replaced."""
        if self.target.is_dir():
            raise InputError(f"{self.shown}: is a folder; must be a file")
        if not self.target.exists():
            return
        if not self._replace:
            raise InputError(f"{self.shown}: exists already and is not overwritten; give another file name")
        if not os.access(self.target, os.W_OK):
            raise InputError(f"{self.shown}: cannot be written: Permission denied")

    def _swap(self) -> None:
        with suppress(FileNotFoundError):
            shutil.copymode(self.target, self.new)
        self.new.replace(self.target)


class DirectPlace(Place):
    """A pipe, a device, or the file to which the output of this process goes: written at once, never replaced."""

    def __init__(self, path: Path) -> None:
        self.path, self.target, self.shown = path, path, shown(path)

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Provide the path itself."""
        try:
            yield self.path
        except OSError as error:
            raise RunError(f"{self.shown}: cannot be written: {reason(error)}") from error

    def check(self) -> None:
        """Do nothing: what it is was checked."""

    def close(self) -> None:
        """Do nothing: nothing is reserved."""


class FolderPlace(Place):
    """A folder that will be written; a missing or empty one, or an earlier output with the same marker.

    Parameters
    ----------
    path : Path
    marker : str
        Name of the marker file, see `simqueue.outputs.earlier`.
    keep_partial : bool
        Whether what was written before a failure is kept. The partial folder is then not hidden.
    """

    def __init__(self, path: Path, marker: str, *, keep_partial: bool = False) -> None:
        self._marker, self._keep_partial = marker, keep_partial
        super().__init__(path, prefix="" if keep_partial else ".")

    def check(self) -> None:
        """Raise InputError if the folder contains anything but an earlier output."""
        check_replaceable(self.target, self.shown, self._marker)

    def keeps_partial(self) -> bool:
        """Whether there is anything to keep."""
        return self._keep_partial and any(files for _, _, files in os.walk(self.new))


class Outputs:
    """All that a command will write; a context that gives up what was not written.

    All paths are reserved before the work begins. So a path that cannot be written is an error before any work is
    lost.
    """

    def __init__(self) -> None:
        self._places: list[Place] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for place in reversed(self._places):
            place.close()

    def file(self, path: Path, *, replace: bool = True) -> Place:
        """Reserve a file.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        self._check_apart(path)
        place = DirectPlace(path) if _is_direct(path) else FilePlace(path, replace=replace)
        self._places.append(place)
        return place

    def folder(self, path: Path, marker: str, *, keep_partial: bool = False) -> Place:
        """Reserve a folder.

        Raises
        ------
        InputError
            If it cannot be written, or contains anything but an earlier output.
        """
        self._check_apart(path)
        place = FolderPlace(path, marker, keep_partial=keep_partial)
        self._places.append(place)
        return place

    def _check_apart(self, path: Path) -> None:
        """Raise InputError if a path is that of another output of this command, or one is inside the other."""
        target, name = absolute(path), shown(path)
        for other in self._places:
            if target.is_relative_to(other.target):
                raise InputError(f"{name}: is {other.shown} or inside it, which is another output of this command")
            if other.target.is_relative_to(target):
                raise InputError(f"{name}: contains {other.shown}, which is another output of this command")


@contextmanager
def reserved_file(path: str | Path | Place) -> Iterator[Place]:
    """Reserve one file, as `Outputs.file` does. What is reserved already is provided as it is."""
    if isinstance(path, Place):
        yield path
        return
    with Outputs() as outputs:
        yield outputs.file(_path(path))


@contextmanager
def reserved_folder(path: str | Path | Place, marker: str, *, keep_partial: bool = False) -> Iterator[Place]:
    """Reserve one folder, as `Outputs.folder` does. What is reserved already is provided as it is."""
    if isinstance(path, Place):
        yield path
        return
    with Outputs() as outputs:
        yield outputs.folder(_path(path), marker, keep_partial=keep_partial)


def _path(given: str | Path) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"{given!r}: must be a path")
    return Path(given)


def _is_direct(path: Path) -> bool:
    """Return whether a path is a pipe, a device, or where the output of this process goes."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return False
    if not stat.S_ISREG(found.st_mode):
        return not stat.S_ISDIR(found.st_mode)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or not a file
            if os.path.samestat(found, os.fstat(stream.fileno())):
                return True
    return False
