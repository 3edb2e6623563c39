"""Relative paths in the values of a scenario, when the scenario moves to another folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from simqueue.hardware import gpu_names, model_names
from simqueue.scenario.values import leaves

_PATHS = frozenset({"path", "model", "gpu", "preset"})
"""Keys whose text can be the path of a file; all but `path` can also be names from the package."""


def moved(values: Mapping[str, Any], base_dir: Path, folder: Path) -> dict[str, Any]:
    """Return the values of a scenario in `base_dir` with the paths that they must have in `folder`.

    A text is taken as a path if the scenario reads the file of that path. Absolute paths stay as they are.

    Parameters
    ----------
    values : mapping
        As JSON has them.
    base_dir, folder : Path
        Absolute.
    """
    return {key: _moved(key, value, base_dir, folder) for key, value in values.items()}


def rooted(values: Mapping[str, Any], base_dir: Path) -> dict[str, Any]:
    """Return the values with absolute paths without links: two of them are equal if they lead to the same file."""
    return {key: _rooted(key, value, base_dir) for key, value in values.items()}


def files_of(values: Mapping[str, Any], base_dir: Path) -> Iterator[Path]:
    """Yield the files and folders that a scenario reads, besides its own file; parameters as in `moved`."""
    for path in leaves(dict(values)):
        value: Any = values
        for step in path:
            value = value[step]
        if path[-1] in _PATHS and isinstance(value, str) and (base_dir / value).exists():
            yield base_dir / value


def with_contents(values: Mapping[str, Any], base_dir: Path, content: Callable[[Path], str]) -> dict[str, Any]:
    """Return the values of a scenario with what `content` says of a file instead of the path of each file it reads.

    Two scenarios that differ only in where their files are have the same values then.

    Parameters
    ----------
    values, base_dir
        As in `moved`.
    content : callable
        Called with the path of each file or folder.
    """
    return {key: _with_content(key, value, base_dir, content) for key, value in values.items()}


def _with_content(key: str, value: Any, base_dir: Path, content: Callable[[Path], str]) -> Any:
    if isinstance(value, Mapping):
        return with_contents(value, base_dir, content)
    if isinstance(value, list):
        return [_with_content("", item, base_dir, content) for item in value]
    if key not in _PATHS or not isinstance(value, str) or _is_named(value) or not (base_dir / value).exists():
        return value
    return content(base_dir / value)


def _moved(key: str, value: Any, base_dir: Path, folder: Path) -> Any:
    if isinstance(value, Mapping):
        return moved(value, base_dir, folder)
    if isinstance(value, list):
        return [_moved("", item, base_dir, folder) for item in value]
    if key not in _PATHS or not isinstance(value, str) or not _is_path(value, base_dir):
        return value
    try:
        return Path(os.path.relpath(base_dir / value, folder)).as_posix()
    except ValueError:  # on another drive
        return str(base_dir / value)


def _rooted(key: str, value: Any, base_dir: Path) -> Any:
    if isinstance(value, Mapping):
        return rooted(value, base_dir)
    if isinstance(value, list):
        return [_rooted("", item, base_dir) for item in value]
    is_file = key in _PATHS and isinstance(value, str) and (Path(value).is_absolute() or _is_path(value, base_dir))
    return str((base_dir / value).resolve()) if is_file else value


def _is_path(text: str, base_dir: Path) -> bool:
    return not _is_named(text) and not Path(text).is_absolute() and (base_dir / text).exists()


def _is_named(text: str) -> bool:
    """Return whether a text is a name from the package, which comes before a path."""
    return text in gpu_names() or text in model_names()
