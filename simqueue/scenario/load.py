"""Load a scenario from a file and flags, or from Python, and report everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from simqueue.datafiles.yamlfile import Document, read
from simqueue.errors import InputError, show
from simqueue.scenario.library import STDIN, find
from simqueue.scenario.model import Scenario
from simqueue.scenario.overrides import apply, override_seed, parse_override
from simqueue.scenario.plaindata import plain, python_value
from simqueue.scenario.problems import reject_other_keys, validated
from simqueue.scenario.written import Written


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
    file = find(path)
    folder, name = (Path(), None) if file == STDIN else (file.parent, file.stem)
    return _checked(read(file), overrides, seed, folder, name)


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
    given = plain(data)
    reject_other_keys(given)
    return _checked(Document("", given), overrides, seed, Path(base_dir), None)


def _checked(
    document: Document, overrides: Iterable[str], seed: int | None, base_dir: Path, file_name: str | None
) -> Scenario:
    if isinstance(overrides, str) or not isinstance(overrides, Iterable):
        raise InputError(f"overrides = {show(overrides)}: must be a list of texts, such as ['seed=3']")
    parsed = [parse_override(text) for text in overrides]
    if seed is not None:
        parsed.append(override_seed(python_value(seed)))
    data, flags = apply(document.data, parsed)
    # absolute: the scenario can be sent to processes with another current folder
    written = Written(replace(document, data=data), flags, base_dir.absolute())
    scenario = validated(Scenario, written).written_in(written, file_name)
    scenario.resolve()  # also finds what is wrong with files, versions and memory
    return scenario
