"""The traces in the package, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

from simqueue.errors import InputError
from simqueue.names import unknown

_FOLDER = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class PackagedTrace:
    """One entry of the catalog.

    Attributes
    ----------
    name : str
        As in ``trace: {name: ...}``.
    path : Path
        The file.
    format : str
        One of `FORMATS`.
    licence, source : str
        Licence of the file, and where it is from.
    sha256 : str
        SHA-256 sum of the file.
    block_tokens : int or None
        Number of tokens that one hash id stands for; None if the file has no hash ids.
    """

    name: str
    path: Path
    format: str
    licence: str
    source: str
    sha256: str
    block_tokens: int | None = None


@cache
def _catalog() -> Mapping[str, PackagedTrace]:
    entries = YAML(typ="safe").load(_FOLDER / "catalog.yaml")
    return {
        name: PackagedTrace(
            name,
            _FOLDER / entry["file"],
            entry["format"],
            entry["licence"],
            entry["source"],
            entry["sha256"],
            entry.get("block_tokens"),
        )
        for name, entry in entries.items()
    }


def trace_names() -> list[str]:
    """Return the names of the packaged traces."""
    return list(_catalog())


def packaged_trace(name: str) -> PackagedTrace:
    """Return one packaged trace.

    Raises
    ------
    InputError
        If there is no trace with that name; gives the nearest name and all names.
    """
    if name not in _catalog():
        raise InputError(unknown("trace", name, trace_names()))
    return _catalog()[name]
