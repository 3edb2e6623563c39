"""YAML files whose top level is a mapping."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from simqueue.datafiles.text import read_text
from simqueue.errors import FileError


def read_yaml(file: Traversable | Path) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping.

    Raises
    ------
    FileError
        If the file cannot be read, is not YAML, has a key twice, or is not a mapping.
    """
    try:
        content = YAML(typ="safe", pure=True).load(read_text(file))
    except YAMLError as error:
        raise FileError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise FileError(f"{file}: must be a mapping of keys to values, not a {type(content).__name__}")
    return content
