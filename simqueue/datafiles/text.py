"""Text files and JSON files, with one-line errors that name the file."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from simqueue.datafiles.compressed import unpacked
from simqueue.datafiles.limits import MOST_DEPTH, MOST_JSON_BYTES, MOST_LINE_BYTES, MOST_TABLE_BYTES
from simqueue.datafiles.regular import Budget, MissingError, UnreadableError, check_regular, open_regular
from simqueue.errors import FileError


def text_lines(
    path: Path, label: str, most_bytes: int = MOST_TABLE_BYTES, most_line_bytes: int = MOST_LINE_BYTES
) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file with their line ends, without a byte order mark.

    The file can be compressed with gzip or Zstandard; then the limits are those of its text.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        The name of the file in messages, usually the path as the user wrote it.
    most_bytes, most_line_bytes : int
        The largest size, and the longest line.

    Raises
    ------
    FileError
        If the file does not exist, cannot be read, is too large, or is not UTF-8 text.
    """
    number = 0
    try:
        with _readable(path, label), _text(path, most_bytes, most_line_bytes) as file:
            for line in file:
                number += 1
                yield line
    except UnicodeDecodeError:
        place = f" (after line {number})" if number else ""
        raise FileError(f"{label}: not a UTF-8 text file{place}") from None


def read_text(file: Traversable | Path, label: str = "", most_bytes: int = MOST_JSON_BYTES) -> str:
    """Return the text of a UTF-8 file, without a byte order mark; see `text_lines`."""
    if not isinstance(file, Path):  # packaged, and not in a folder
        return file.read_text(encoding="utf-8")
    shown = label or str(file)
    try:
        with _text(file, most_bytes) as opened:
            return opened.read()
    except MissingError as error:
        raise FileError(f"{shown}: cannot be read: {error}") from None
    except UnreadableError as error:
        raise FileError(f"{shown}: {error}") from None
    except UnicodeDecodeError as error:
        raise FileError(f"{shown}: not a UTF-8 text file (byte {error.start} cannot be read)") from None


def check_file(path: Path, label: str, most_bytes: int) -> None:
    """Check that a library can read a file that it opens itself.

    Raises
    ------
    FileError
        If the file does not exist, cannot be read, is not a regular file, or is too large.
    """
    with _readable(path, label):
        check_regular(path, most_bytes)


def read_json(file: Path) -> dict[str, Any]:
    """Read a JSON file whose top level is an object.

    Raises
    ------
    FileError
        If the file cannot be read, is not JSON, is nested too deeply, or holds something other than an object.
    """
    try:
        content = parse_json(read_text(file))
    except json.JSONDecodeError as error:
        raise FileError(f"{file}:{error.lineno}: not valid JSON: {error.msg}") from error
    except ValueError as error:
        raise FileError(f"{file}: not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise FileError(f"{file}: must be a JSON object, not a {type(content).__name__}")
    return content


def parse_json(text: str, float_of: Callable[[str], Any] | None = None) -> Any:
    """Return what a JSON text holds.

    Parameters
    ----------
    text : str
    float_of : callable or None
        Makes a number of a text with a point or an exponent; None: a float.

    Raises
    ------
    ValueError
        If it is not JSON (`json.JSONDecodeError`), is nested too deeply, or has a number of thousands of digits.
    """
    too_deep = ValueError(f"nested too deeply: lists and objects can be in each other up to {MOST_DEPTH} times")
    try:
        found = _decoder(float_of).decode(text)
    except RecursionError:
        raise too_deep from None
    except json.JSONDecodeError:
        raise
    except ValueError:  # Python reads no longer numbers
        raise ValueError("a number has thousands of digits") from None
    if text.count("[") + text.count("{") > MOST_DEPTH and _depth(found) > MOST_DEPTH:
        raise too_deep
    return found


@lru_cache(maxsize=4)
def _decoder(float_of: Callable[[str], Any] | None) -> json.JSONDecoder:
    """Return a decoder, which is costly to make for each line of a file."""
    return json.JSONDecoder(parse_float=float_of)


def _depth(value: Any) -> int:
    """Return how many lists and objects are in each other, up to one more than are allowed."""
    level, depth = [value], 0
    while depth <= MOST_DEPTH:
        inner = [one for one in level if isinstance(one, list | dict)]
        if not inner:
            return depth
        depth += 1
        level = [one for group in inner for one in (group.values() if isinstance(group, dict) else group)]
    return depth


def _text(path: Path, most_bytes: int, most_line_bytes: int | None = None) -> io.TextIOWrapper:
    opened = unpacked(open_regular(path, most_bytes), Budget(most_bytes, most_line_bytes))
    return io.TextIOWrapper(opened, encoding="utf-8-sig", newline="")


@contextmanager
def _readable(path: Path, label: str) -> Iterator[None]:
    """Raise errors about a whole file, raised inside, with the name of the file."""
    try:
        yield
    except MissingError as error:
        place = "" if Path(label).is_absolute() else f" (looked for {path.absolute()})"
        raise FileError(f"{label}: {error}{place}") from None
    except UnreadableError as error:
        raise FileError(f"{label}: {error}") from None
