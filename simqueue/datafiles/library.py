"""Libraries of data: folders of YAML files, one per name, with facts in groups that each state a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

from pydantic import ValidationError

from simqueue.datafiles.yamlfile import read_yaml
from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.settings import Settings

SettingsT = TypeVar("SettingsT", bound=Settings)


@dataclass(frozen=True, slots=True)
class Facts:
    """The content of a data file.

    Attributes
    ----------
    description : str
        One line.
    values : mapping of str to value
        Facts by name, with the unit in the name.
    sources : mapping of str to str
        The source of each fact; same keys as `values`.
    """

    description: str
    values: Mapping[str, Any]
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Library:
    """A folder of YAML files, one per name.

    Attributes
    ----------
    folder : Traversable
        The folder.
    kind : str
        The kind of thing it holds ("gpu", "model", "preset"), for messages.
    """

    folder: Traversable
    kind: str

    def names(self) -> list[str]:
        """Return the names, sorted: the YAML files without their suffix."""
        return sorted(file.name.removesuffix(".yaml") for file in self.folder.iterdir() if file.name.endswith(".yaml"))

    def read(self, name: str) -> dict[str, Any]:
        """Return the content of one file.

        Raises
        ------
        InputError
            If the name is unknown, or the file is not a YAML mapping.
        """
        if name not in self.names():
            raise self.unknown(name)
        return read_yaml(self.folder / f"{name}.yaml")

    def facts(self, name: str) -> Facts:
        """Return the facts of one file; see `facts_in`.

        Raises
        ------
        InputError
            If the name is unknown, or the file breaks the rules of `facts_in`.
        """
        return facts_in(self.read(name), f"{self.kind} '{name}'")

    def unknown(self, name: str) -> InputError:
        """Return the error for an unknown name, with the nearest known one."""
        return InputError(unknown(self.kind, name, self.names()))


def facts_in(content: Mapping[str, Any], where: str) -> Facts:
    """Return the facts of a data file: `description`, and `facts`, a list of groups that each have a `source`.

    Raises
    ------
    InputError
        If one of the two is missing, a fact occurs twice, or a group has no source.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    groups = content.get("facts")
    if not isinstance(groups, list) or not isinstance(content.get("description"), str):
        raise InputError(f"{where}: a data file needs a description and a list of facts")
    for group in groups:
        for key, value in group.items():
            if key == "source":
                continue
            if key in values or not group.get("source"):
                raise InputError(f"{where}: '{key}' must occur once, in a group with a source")
            values[key], sources[key] = value, group["source"]
    return Facts(content["description"], values, sources)


def validated(settings: type[SettingsT], values: Mapping[str, Any], where: str) -> SettingsT:
    """Return `values` as settings.

    Raises
    ------
    InputError
        If a value breaks a rule of the settings: one line with `where` and each key and value.
    """
    try:
        return settings.model_validate(dict(values))
    except ValidationError as error:
        raise InputError(f"{where}: {'; '.join(map(_one_line, error.errors()))}") from error


def _one_line(error: Any) -> str:
    """Return one validation error as text: the key, what is wrong, and the value if it is a scalar."""
    key = ".".join(str(part) for part in error["loc"])
    given = error.get("input")
    shown = f" (got {given!r})" if isinstance(given, str | int | float | None) else ""
    return f"{key}: {error['msg']}{shown}" if key else f"{error['msg']}{shown}"
