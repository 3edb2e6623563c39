"""Facts of an engine by version, read from its data file: each entry changes some facts of the entry before it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

from simqueue.datafiles.library import validated
from simqueue.datafiles.yamlfile import read_yaml
from simqueue.errors import InputError
from simqueue.settings import Settings


class VersionFacts(Settings):
    """Base of the facts of one version."""

    version: str
    source: str


FactsT = TypeVar("FactsT", bound=VersionFacts)


def read_versions(file: Traversable, kind: type[FactsT]) -> dict[str, FactsT]:
    """Return the facts of all versions in a data file, oldest first.

    Raises
    ------
    InputError
        If the file cannot be read, or the facts of a version are not those of `kind`.
    """
    facts: dict[str, Any] = {}
    versions = {}
    for entry in read_yaml(file)["versions"]:
        facts = {**facts, **entry}
        versions[entry["version"]] = validated(kind, facts, f"{file.name}, version {entry['version']}")
    return versions


def facts_at(engine: str, versions: Mapping[str, FactsT], version: str) -> FactsT:
    """Return the facts of `version`. Nothing is interpolated between known versions.

    Raises
    ------
    InputError
        If the version is unknown. The message names the nearest known versions, and all of them.
    """
    if version in versions:
        return versions[version]
    known = list(versions)
    wanted = _key(version)
    before = [name for name in known if _key(name) < wanted][-1:]
    after = [name for name in known if _key(name) > wanted][:1]
    nearest = " and ".join(before + after)
    text = f"unknown version of {engine}; nearest known: {nearest}; all known: {', '.join(known)}"
    raise InputError(text, "version", value=version)


def _key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for sorting; a part without digits sorts first."""
    parts = ("".join(filter(str.isdigit, part)) for part in version.split("."))
    return tuple(int(digits) if digits else -1 for digits in parts)
