"""Text files and JSON files, with one-line errors that name the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from simqueue.errors import FileError


def text_lines(path: Path, label: str) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file with their line ends, without a byte order mark.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        The name of the file in messages, usually the path as the user wrote it.

    Raises
    ------
    FileError
        If the file does not exist, cannot be read, or is not UTF-8 text.
    """
    number = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line in file:
                number += 1
                yield line
    except FileNotFoundError:
        place = "" if Path(label).is_absolute() else f" (looked for {path.absolute()})"
        raise FileError(f"{label}: no such file{place}") from None
    except OSError as error:
        raise FileError(f"{label}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        place = f" (after line {number})" if number else ""
        raise FileError(f"{label}: not a UTF-8 text file{place}") from None


def read_text(file: Traversable | Path) -> str:
    """Return the text of a UTF-8 file.

    Raises
    ------
    FileError
        If the file cannot be read or is not UTF-8 text.
    """
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{file}: cannot be read: {error}") from error


def read_json(file: Path) -> dict[str, Any]:
    """Read a JSON file whose top level is an object.

    Raises
    ------
    FileError
        If the file cannot be read, is not JSON, or holds something other than an object.
    """
    try:
        content = json.loads(read_text(file))
    except json.JSONDecodeError as error:
        raise FileError(f"{file}:{error.lineno}: not valid JSON: {error.msg}") from error
    if not isinstance(content, dict):
        raise FileError(f"{file}: must be a JSON object, not a {type(content).__name__}")
    return content
