"""The store of a sweep: an SQLite file with the outcome of each cell that is done, by its key.

Only the leading process writes, one transaction for each cell. With a write-ahead log, a process that is killed at any
instant leaves whole cells, and several sweeps can use one folder at once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from simqueue.errors import InputError, RunError
from simqueue.outputs.place import reason, shown

STORE: Final = "cells.sqlite"
_APPLICATION: Final = 0x73717377
"""Marks the file as a store of sweeps (``PRAGMA application_id``)."""
_FORMAT: Final = 1
_WAIT_S: Final = 60.0
"""How long a write waits for those of another sweep."""
_AT_ONCE: Final = 500


class Store:
    """The cells that are done. A context manager; its end closes the file.

    Parameters
    ----------
    folder : Path or None
        Made if it is missing. None: nothing is kept.
    read_only : bool
        Whether the folder must have a store already, which is not changed.

    Raises
    ------
    InputError
        If the folder has other files and no store, cannot be written, or its store is damaged.
    """

    def __init__(self, folder: Path | None, *, read_only: bool = False) -> None:
        self._shown = "the sweep" if folder is None else shown(folder / STORE)
        target = ":memory:"
        if folder is not None:
            check_folder(folder)
            if not read_only:
                _make(folder)
            target = f"{(folder / STORE).absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        try:
            # the tasks of an executor can be pulled by another thread; sqlite3 serialises what threads do
            self._open = sqlite3.connect(
                target, timeout=_WAIT_S, isolation_level=None, check_same_thread=False, uri=folder is not None
            )
            self._prepare(read_only=read_only)
        except sqlite3.Error as error:
            raise InputError(f"{self._shown}: {_at_start(error)}") from None

    def _prepare(self, *, read_only: bool) -> None:
        ask = self._open.execute
        mark, tables = self._number("application_id"), self._tables()
        if (mark, self._number("user_version")) != (_APPLICATION, _FORMAT) and tables:
            raise InputError(f"{self._shown}: is a database of something else, or of another version; choose another")
        if ask("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("the check of its pages fails")
        if read_only:
            return
        ask("PRAGMA journal_mode = WAL")  # where there is no shared memory, such as on some shares, it stays as it is
        ask("PRAGMA synchronous = NORMAL")  # a loss of power can take the last cells, and damages nothing
        if not tables:
            with self._transaction():
                ask("CREATE TABLE IF NOT EXISTS cells (key TEXT PRIMARY KEY, outcome TEXT NOT NULL) WITHOUT ROWID")
                ask(f"PRAGMA application_id = {_APPLICATION}")
                ask(f"PRAGMA user_version = {_FORMAT}")

    def _number(self, pragma: str) -> int:
        return int(self._open.execute(f"PRAGMA {pragma}").fetchone()[0])

    def _tables(self) -> bool:
        return self._open.execute("SELECT 1 FROM sqlite_master").fetchone() is not None

    def has(self, key: str) -> bool:
        """Return whether the cell of this key is done."""
        with self._telling():
            return self._open.execute("SELECT 1 FROM cells WHERE key = ?", (key,)).fetchone() is not None

    def add(self, key: str, outcome: str) -> None:
        """Store the outcome of a cell; if another sweep has stored one, that one stays, which is the same.

        Raises
        ------
        RunError
            If it cannot be written, such as on a full disk. What is stored stays.
        """
        with self._telling(), self._transaction():
            self._open.execute("INSERT OR IGNORE INTO cells VALUES (?, ?)", (key, outcome))

    def outcomes(self, keys: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield the keys that are done, with their outcomes, in no order.

        Raises
        ------
        RunError
            If the store cannot be read.
        """
        for first in range(0, len(keys), _AT_ONCE):
            part = keys[first : first + _AT_ONCE]
            marks = ", ".join("?" * len(part))
            with self._telling():
                yield from self._open.execute(
                    f"SELECT key, outcome FROM cells WHERE key IN ({marks})",  # noqa: S608 - only question marks
                    part,
                ).fetchall()

    def count(self, keys: Iterable[str]) -> int:
        """Return how many of these keys are done."""
        return sum(map(self.has, dict.fromkeys(keys)))

    def rows(self) -> int:
        """Return how many cells are done, of all designs."""
        with self._telling():
            return int(self._open.execute("SELECT count(*) FROM cells").fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._open.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._open.in_transaction:  # a full disk has ended it already
                self._open.execute("ROLLBACK")
            raise
        self._open.execute("COMMIT")

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            after = "after space has been freed, the same command" if full else "the same command"
            raise RunError(
                f"{self._shown}: {error}; the cells until then are stored, and {after} goes on with the others"
            ) from None

    def close(self) -> None:
        """Close the file."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def check_folder(folder: Path) -> None:
    """Raise `InputError` unless a folder can have a store: it is missing or empty, or has one."""
    name = shown(folder)
    try:
        if not folder.exists() or (folder / STORE).is_file():
            return
        if not folder.is_dir():
            raise InputError(f"{name}: is a file; must be a new folder, or one of an earlier sweep")
        foreign = min((one.name for one in folder.iterdir()), default=None)
    except OSError as error:
        raise InputError(f"{name}: cannot be written: {reason(error)}") from None
    if foreign is not None:
        raise InputError(f"{name}: contains files and no sweep, such as {foreign}; choose another folder")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{shown(folder)}: cannot be written: {reason(error)}") from None


def _at_start(error: sqlite3.Error) -> str:
    """Return what is wrong with a store that cannot be opened, and what can be done."""
    damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
    if damaged:
        return f"is damaged ({error}); move it away, and its cells are computed again"
    return f"cannot be used: {error}"
