"""A path that will be written: reserved at once, written beside its target, and renamed at the end.

The partial folder ``.NAME.partial`` next to the target reserves it. A file in it says so, and is locked as long as the
process lives. What is written goes to ``new`` inside; what it replaces is in ``old`` until it is replaced.
"""

from __future__ import annotations

import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from simqueue.errors import InputError, RunError
from simqueue.outputs.lock import lock
from simqueue.printable import shortened

PARTIAL: Final = "simqueue-partial.json"
"""File in a partial folder: it marks the folder, and its lock says whether a process still writes to it."""
_NEW, _OLD = "new", "old"
_SUFFIX: Final = ".partial"
_LONGEST_STEM: Final = 200
"""Longest part of a name, in characters, that the name of its partial folder repeats; file systems allow 255 bytes."""
_LONGEST_SHOWN: Final = 300
_NOTE: Final = "output of a run that has not ended, or that was stopped; what is here is not complete"


class Place(ABC):
    """A reserved path. It is reserved when it is made; `close` gives it up.

    Missing parent folders are created. If nothing was written in the end, they are removed again.

    Parameters
    ----------
    path : Path
        What to write, as the user gave it. The target of a link is written, not the link.
    prefix : str
        Of the name of the partial folder; ``.`` hides it.

    Attributes
    ----------
    path, target : Path
        As given, and as an absolute path without links.
    shown : str
        The path in messages.

    Raises
    ------
    InputError
        If the path cannot be written, or if another process is writing to it.
    """

    def __init__(self, path: Path, prefix: str = ".") -> None:
        self.path, self.target, self.shown = path, absolute(path), shown(path)
        self.partial = self.target.parent / f"{prefix}{_stem(self.target.name)}{_SUFFIX}"
        self._made: list[Path] = []
        self._lock: int | None = None
        try:
            self.check()
            self._make_parents()
            self._reserve()
        except OSError as error:
            self.close()
            raise InputError(f"{self.shown}: cannot be written: {reason(error)}") from error
        except InputError:
            self.close()
            raise

    @property
    def new(self) -> Path:
        """Where to write what gets the target's name at the end."""
        return self.partial / _NEW

    @property
    def partial_path(self) -> Path:
        """The partial folder, as the user would write it."""
        return self.path.parent / self.partial.name

    @abstractmethod
    def check(self) -> None:
        """Raise InputError if the target must not be replaced."""

    def write_text(self, text: str) -> None:
        """Write a text as the whole content; see `writing`."""
        self.write_bytes(text.encode(errors="backslashreplace"))

    def write_bytes(self, content: bytes) -> None:
        """Write the whole content; see `writing`."""
        with self.writing() as path:
            path.write_bytes(content)

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Provide `new`, and give it the target's name at the end of the block.

        Raises
        ------
        RunError
            If writing fails. The target is then as before.
        """
        try:
            yield self.new
        except OSError as error:
            raise RunError(f"{self.shown}: cannot be written: {reason(error)}") from error
        self._finish()

    def _finish(self) -> None:
        """Give `new` the target's name."""
        try:
            self.check()
            self._swap()
        except (OSError, InputError) as error:
            why = reason(error) if isinstance(error, OSError) else str(error).removeprefix(f"{self.shown}: ")
            raise RunError(f"{self.shown}: {why}; {self._kept()}") from error
        self._made.clear()
        self.close()

    def _kept(self) -> str:
        """Move what was written to a free name next to the target, and say where it is."""
        free = (self.path.with_name(f"{self.path.stem}-{number}{self.path.suffix}") for number in range(1, 1000))
        with suppress(OSError):
            other = next(one for one in free if not one.exists())
            self.new.rename(absolute(other))
            self._made.clear()
            return f"what was to be written there is in {other}"
        return "it is as before"

    def _swap(self) -> None:
        """Rename `new` to the target; if that fails, the target is as before."""
        old = self.partial / _OLD
        if not self.target.exists():
            self.new.rename(self.target)
            return
        self.target.rename(old)
        try:
            self.new.rename(self.target)
        except OSError:
            old.rename(self.target)
            raise

    def close(self) -> None:
        """Give the place up: remove the partial folder, and the parent folders that were made in vain."""
        if self._lock is None:
            self._remove_parents()
            return
        if not self.keeps_partial():
            shutil.rmtree(self.partial, ignore_errors=True)
            self._remove_parents()
        os.close(self._lock)
        self._lock = None

    def keeps_partial(self) -> bool:
        """Whether what was written stays in the partial folder if it is not complete."""
        return False

    def _remove_parents(self) -> None:
        for folder in reversed(self._made):
            with suppress(OSError):  # something is in it
                folder.rmdir()
        self._made.clear()

    def _make_parents(self) -> None:
        missing = [folder for folder in self.target.parents if not folder.exists()]
        nearest = self.target.parents[len(missing)]
        if not nearest.is_dir():
            raise InputError(f"{self.shown}: {_as_given(nearest, self.path)} is a file, not a folder")
        for folder in reversed(missing):
            with suppress(FileExistsError):  # another process has made it in between
                folder.mkdir()
                self._made.append(folder)

    def _reserve(self) -> None:
        """Make the partial folder and lock it; what a process that was killed has left there is removed."""
        for _ in range(100):
            self.partial.mkdir(exist_ok=True)
            self._check_partial()
            try:
                found = lock(self.partial / PARTIAL)
            except FileNotFoundError:  # another process has removed it in between
                continue
            if found is None:
                raise InputError(f"{self.shown}: another run is writing to it{self._owner()}; choose another path")
            self._lock = found
            self._clear()
            note = {"what": _NOTE, "target": self.target.name, "process": os.getpid()}
            os.ftruncate(found, 0)
            os.write(found, (json.dumps(note, indent=2) + "\n").encode())
            return
        raise InputError(f"{self.shown}: other runs are writing to it; choose another path")

    def _check_partial(self) -> None:
        """Raise InputError if there is something at the partial folder that was not written by this module."""
        there = set(os.listdir(self.partial))  # noqa: PTH208 - names, not paths
        foreign = sorted(there - {PARTIAL, _NEW, _OLD})
        if foreign or (there and PARTIAL not in there):
            name = (foreign or sorted(there))[0]
            raise InputError(f"{self.shown}: {self.partial.name} is in the way: it contains {name}; move it away")

    def _clear(self) -> None:
        """Remove what a killed process left. What it was about to replace gets its name back."""
        old = self.partial / _OLD
        if old.exists() and not self.target.exists():
            old.rename(self.target)
        for left in (old, self.new):
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink(missing_ok=True)

    def _owner(self) -> str:
        try:
            return f" (process {json.loads((self.partial / PARTIAL).read_text(encoding='utf-8'))['process']})"
        except (OSError, ValueError, KeyError, TypeError):
            return ""


def reason(error: OSError) -> str:
    """Return why something could not be written, in one line."""
    return " ".join((error.strerror or str(error)).split())


def shown(path: Path) -> str:
    """Return a path for a message, shortened if it is very long."""
    return shortened(str(path), _LONGEST_SHOWN)


def absolute(path: Path) -> Path:
    """Return a path from the root without links; it need not exist.

    Raises
    ------
    InputError
        If there can be no such path: links that lead back to themselves, or a character that no name can have.
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else " ".join(str(error).split())
        raise InputError(f"{shown(path)}: cannot be written: {why}") from error


def _as_given(folder: Path, like: Path) -> Path:
    """Return a folder relative to the current one, if `like` is relative and it is inside."""
    here = Path.cwd()
    return folder.relative_to(here) if not like.is_absolute() and folder.is_relative_to(here) else folder


def _stem(name: str) -> str:
    """Return a name for the partial folder of `name`: the same, shortened if it would be too long for a file system."""
    if len(os.fsencode(name)) <= _LONGEST_STEM:
        return name
    return f"{name[:40]}-{sha256(os.fsencode(name)).hexdigest()[:16]}"
