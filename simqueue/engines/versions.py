"""Facts of an engine by version, read from its data file: each entry changes some facts of the entry before it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from typing import Any, Final, TypeVar

from simqueue.datafiles.library import validated
from simqueue.datafiles.yamlfile import read_yaml
from simqueue.errors import InputError
from simqueue.settings import Settings

_MOST_PARTS: Final = 8
_MOST_DIGITS: Final = 18
"""More parts than a version has, and more digits than one of its numbers has."""


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
    meant = _meant(version, known)
    if meant:
        near = f"did you mean {' or '.join(meant)}?"
    else:
        wanted = _key(version)
        before = [name for name in known if _key(name) < wanted][-1:]
        after = [name for name in known if _key(name) > wanted][:1]
        near = f"nearest known: {' and '.join(before + after)};"
    raise InputError(f"unknown version of {engine}; {near} all known: {', '.join(known)}", "version", value=version)


def _meant(version: str, known: Sequence[str]) -> list[str]:
    """Return the versions that `version` writes in another way: with a ``v`` before it, or without its last numbers."""
    plain = version.strip().lower().removeprefix("v")
    return [name for name in known if name == plain or (plain and name.startswith(f"{plain.rstrip('.')}."))]


def _key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for sorting; a part without digits sorts first."""
    parts = ("".join(re.findall("[0-9]", part))[:_MOST_DIGITS] for part in version.split(".")[:_MOST_PARTS])
    return tuple(int(digits) if digits else -1 for digits in parts)
