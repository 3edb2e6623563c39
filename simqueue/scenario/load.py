"""Load a scenario from a file and flags, or from Python, and report everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simqueue.datafiles.yamlfile import Document, read
from simqueue.errors import InputError, show
from simqueue.scenario.library import STDIN, find
from simqueue.scenario.model import Scenario
from simqueue.scenario.overrides import Override, apply, override_seed, parse_override
from simqueue.scenario.plaindata import plain, python_value
from simqueue.scenario.problems import reject_other_keys, validated
from simqueue.scenario.written import Written


@dataclass(frozen=True, slots=True)
class Source:
    """What was written down of a scenario. It is read once; scenarios with different flags are made from it.

    Attributes
    ----------
    document : Document
    base_dir : Path
        Start of relative paths.
    file_name : str or None
        By which a scenario without a name is called.
    """

    document: Document
    base_dir: Path
    file_name: str | None = None

    def scenario(self, overrides: Iterable[Override]) -> Scenario:
        """Return the scenario with these overrides.

        Raises
        ------
        InputError
            As `load`.
        """
        data, flags = apply(self.document.data, overrides)
        # absolute: the scenario can be sent to processes with another current folder
        written = Written(replace(self.document, data=data), flags, self.base_dir.absolute())
        scenario = validated(Scenario, written).written_in(written, self.file_name)
        scenario.resolve()  # also finds what is wrong with files, versions and memory
        return scenario


def load(path: str | Path, overrides: Iterable[str] = (), seed: int | None = None) -> Scenario:
    """Load a scenario file, or a packaged scenario by its name.

    Parameters
    ----------
    path : str or Path
        A YAML file, or a name from ``simqueue list scenarios``. Relative paths in a file start at its folder; with
        `STDIN`, at the current folder.
    overrides : iterable of str
        ``a.b.c=VALUE`` each; they override the file.
    seed : int or None
        Overrides the file's seed.

    Raises
    ------
    InputError
        One line per problem: file and line (or the flag), path, value, what is allowed.
    """
    return read_source(path).scenario(parsed(overrides, seed))


def read_source(path: str | Path) -> Source:
    """Read a scenario file, or a packaged scenario by its name, without checking its keys; see `load`."""
    file = find(path)
    return source_in(read(file), file)


def source_in(document: Document, file: Path) -> Source:
    """Return what was read from a file as the source of scenarios."""
    folder, name = (Path(), None) if file == STDIN else (file.parent, file.stem)
    return Source(document, folder, name)


def from_mapping(
    data: Mapping[str, Any], overrides: Iterable[str] = (), seed: int | None = None, base_dir: str | Path = ""
) -> Scenario:
    """Make a scenario from a mapping with the keys of a scenario file.

    Parameters
    ----------
    data : mapping
        Values can be plain data or models such as `KVCacheSettings`.
    overrides, seed
        As for `load`.
    base_dir : str or Path
        Start of relative paths; by default the current folder.

    Raises
    ------
    InputError
        As for `load`, without file and line.
    """
    return source_of_mapping(data, base_dir).scenario(parsed(overrides, seed))


def source_of_mapping(data: Mapping[str, Any], base_dir: str | Path = "") -> Source:
    """Return the source of scenarios with these keys; see `from_mapping`."""
    given = plain(data)
    reject_other_keys(given)
    return Source(Document("", given), Path(base_dir))


def parsed(overrides: Iterable[str], seed: int | None = None) -> list[Override]:
    """Return what ``KEY=VALUE`` texts and a seed override.

    Raises
    ------
    InputError
        As `parse_override`, and if `overrides` is no list.
    """
    if isinstance(overrides, str) or not isinstance(overrides, Iterable):
        raise InputError(f"overrides = {show(overrides)}: must be a list of texts, such as ['seed=3']")
    found = [parse_override(text) for text in overrides]
    return found if seed is None else [*found, override_seed(python_value(seed))]
