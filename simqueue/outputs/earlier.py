"""Which folders are outputs of an earlier run, so that they can be replaced."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from simqueue.datafiles.text import read_json
from simqueue.errors import InputError


def write_marker(folder: Path, marker: str, version: str, files: Sequence[str]) -> None:
    """Write the file that marks a folder as an output: the version that wrote it, and its files."""
    content = json.dumps({"version": version, "files": list(files)}, ensure_ascii=False, indent=2)
    (folder / marker).write_text(content + "\n", encoding="utf-8", newline="\n")


def check_replaceable(target: Path, shown: str, marker: str) -> None:
    """Raise `InputError` unless a folder is missing, has no files, or has only files that its marker lists.

    Parameters
    ----------
    target : Path
        The folder, as an absolute path without links.
    shown : str
        The folder in messages.
    marker : str
        Name of the marker, see `write_marker`.
    """
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{shown}: is a file; must be a new folder or an earlier result of simqueue")
    if os.path.ismount(target):
        raise InputError(f"{shown}: is the root of a file system and cannot be replaced; choose a folder inside it")
    if Path.cwd().is_relative_to(target):
        raise InputError(f"{shown}: contains the current folder and cannot be replaced; choose a folder inside it")
    if not os.access(target, os.W_OK | os.X_OK):
        raise InputError(f"{shown}: cannot be replaced: Permission denied")
    written = _listed(target / marker)
    foreign = next((name for name in _files(target) if name not in (written or ())), None)
    if foreign is None:
        return
    if written is None:
        raise InputError(f"{shown}: contains files that are no result of simqueue, such as {foreign}; choose another")
    raise InputError(f"{shown}: {foreign} is not part of the earlier result; move it away or choose another folder")


def _files(folder: Path) -> Iterator[str]:
    """Yield everything below a folder that is not a folder, relative to it. Links are not followed."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        links = [name for name in folders if Path(parent, name).is_symlink()]
        for name in sorted([*files, *links]):
            yield Path(parent, name).relative_to(folder).as_posix()


def _listed(marker: Path) -> frozenset[str] | None:
    """Return the files that a marker lists, including the marker; None if the file is not a marker."""
    try:
        return frozenset([marker.name, *map(str, read_json(marker)["files"])])
    except (InputError, KeyError, TypeError):
        return None
