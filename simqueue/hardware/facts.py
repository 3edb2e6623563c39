"""Data files people edit: groups of facts, each group with its source, read strictly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, ValidationError

from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.settings import Settings

SettingsT = TypeVar("SettingsT", bound=Settings)


def _whole(value: Any) -> Any:
    """Turn a float without a fraction (8e9 is one in YAML) into an int; leave the rest to the type check."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value


Count = Annotated[int, BeforeValidator(_whole)]
"""A whole number that may also be written in scientific notation."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a data file says.

    Attributes
    ----------
    description : str
        One line for people.
    values : mapping of str to value
        Every fact by its name, unit in the name.
    sources : mapping of str to str
        Where each fact comes from; same keys as `values`.
    """

    description: str
    values: Mapping[str, Any]
    sources: Mapping[str, str]


def names_in(folder: Traversable) -> list[str]:
    """Return the names a data folder offers, sorted: its YAML files without their ending."""
    return sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml"))


def read_facts(folder: Traversable, name: str, kind: str) -> Facts:
    """Read one data file: a `description` and `facts`, a list of groups that each carry a `source`.

    Parameters
    ----------
    folder : Traversable
        Where the files lie.
    name : str
        A file's name without its ending.
    kind : str
        What the name is a name of ("gpu", "model", "preset"); used in the error.

    Raises
    ------
    InputError
        The name is unknown, or the file breaks the rules above.
    """
    known = names_in(folder)
    if name not in known:
        raise InputError(unknown(kind, name, known))
    return facts_in(read_yaml(folder / f"{name}.yaml"), name, kind)


def facts_in(content: Mapping[str, Any], name: str, kind: str) -> Facts:
    """Return the facts of a data file that has been read; see `read_facts`."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    groups = content.get("facts")
    if not isinstance(groups, list) or not isinstance(content.get("description"), str):
        raise InputError(f"{kind} data '{name}': needs a description and a list of facts")
    for group in groups:
        for key, value in group.items():
            if key == "source":
                continue
            if key in values or not group.get("source"):
                raise InputError(f"{kind} data '{name}': '{key}' must stand once, in a group with a source")
            values[key], sources[key] = value, group["source"]
    return Facts(content["description"], values, sources)


def read_yaml(file: Traversable | Path) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping.

    Raises
    ------
    InputError
        The file cannot be read, is not YAML, has a key twice, or is not a mapping.
    """
    from ruamel.yaml import YAML  # noqa: PLC0415 - heavy; many runs read no data file at all
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415 - same

    try:
        content = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {error}") from error
    except YAMLError as error:
        raise InputError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise InputError(f"{file}: must be a mapping of keys to values, not a {type(content).__name__}")
    return content


def validated(settings: type[SettingsT], values: Mapping[str, Any], where: str) -> SettingsT:
    """Return `values` as settings, or raise an InputError of one line that names the place and the keys."""
    try:
        return settings.model_validate(dict(values))
    except ValidationError as error:
        raise InputError(f"{where}: {'; '.join(map(_one_line, error.errors()))}") from error


def _one_line(error: Any) -> str:
    """Say one validation error: the key, what is wrong, and the value where it is a single one."""
    key = ".".join(str(part) for part in error["loc"])
    given = error.get("input")
    shown = f" (got {given!r})" if isinstance(given, str | int | float | None) else ""
    return f"{key}: {error['msg']}{shown}" if key else f"{error['msg']}{shown}"
