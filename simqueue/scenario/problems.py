"""Everything that is wrong with a scenario, one line each: the place, the value, what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from simqueue.errors import InputError, KeyPath, Problem, show
from simqueue.printable import is_text
from simqueue.scenario.wording import NO_TAG, Finding, bound, path_in_file, put_in_words
from simqueue.scenario.written import Written
from simqueue.settings import Settings

M = TypeVar("M", bound=Settings)

_HUGE = 10**308
"""A number that breaks every bound, and that a float can still hold."""


def validated(model: type[M], written: Written) -> M:
    """Make `model` from what was written, or report everything that is wrong with it.

    Raises
    ------
    InputError
        With one line per problem, in the order of the file.
    """
    data = written.document.data
    try:
        return model.model_validate(data)
    except ValidationError as error:
        findings = _all_findings(model, data, error)
    raise written.complaint(_problems(_with_bounds(findings, model, data)))


def _all_findings(model: type[Settings], data: Any, error: ValidationError) -> list[Finding]:
    """Return the findings of `error`, and those that they hide.

    Pydantic does not look at the keys beside an unknown key, or beside a missing one that selects one of several
    kinds. These are noted and taken out or filled in, and the data are validated again.
    """
    found: dict[Finding, None] = {}
    errors = error.errors(include_url=False)
    while errors:
        now = [put_in_words(details, data) for details in errors]
        found.update(dict.fromkeys(finding for finding in now if not finding.untagged))
        hiding = [finding for finding in now if finding.unknown or finding.untagged]
        if not hiding:
            break
        before = data
        data = _changed(data, {finding.path: NO_TAG if finding.untagged else None for finding in hiding})
        if data == before:
            break
        errors = _errors(model, data)
    return list(found)


def reject_other_keys(data: Any) -> None:
    """Check that all keys are text, as they are in a file.

    Raises
    ------
    InputError
        One line per key that is not.
    """
    problems = list(_other_keys(data, ()))
    if problems:
        raise InputError.of(problems)


def _other_keys(data: Any, path: KeyPath) -> Iterator[Problem]:
    if isinstance(data, list):
        for i, item in enumerate(data):
            yield from _other_keys(item, (*path, i))
    elif isinstance(data, dict):
        for key, inner in data.items():
            if isinstance(key, str) and is_text(key):
                yield from _other_keys(inner, (*path, key))
            else:
                yield Problem(path, f"the key {show(key) or repr(key)} must be text")


def _with_bounds(findings: list[Finding], model: type[Settings], data: Any) -> list[Finding]:
    """Add the bounds to the findings about numbers."""
    bounds = _bounds([finding.path for finding in findings if finding.number], model, data)
    return [
        replace(finding, must=" ".join([finding.must or "", " and ".join(bounds[finding.path])]).strip())
        if finding.number
        else finding
        for finding in findings
    ]


def _bounds(paths: list[KeyPath], model: type[Settings], data: Any) -> dict[KeyPath, list[str]]:
    """Return the bounds of the numbers at these paths: those that the smallest and the largest number break."""
    bounds: dict[KeyPath, list[str]] = {path: [] for path in paths}
    for extreme in (-_HUGE, _HUGE) if paths else ():
        probe = _changed(data, dict.fromkeys(paths, extreme))
        for details in _errors(model, probe):
            path, broken = path_in_file(details["loc"], probe), bound(details)
            if broken and path in bounds and broken not in bounds[path]:
                bounds[path].append(broken)
    return bounds


def _errors(model: type[Settings], data: Any) -> list[ErrorDetails]:
    try:
        model.model_validate(data)
    except ValidationError as error:
        return error.errors(include_url=False)
    return []


def _changed(data: Any, changes: Mapping[KeyPath, str | int | None]) -> Any:
    """Return a copy of the data with another value at each path, or without the key if that is None.

    The copy is made in one walk: there can be as many changes as keys.
    """
    tree: dict[str | int, Any] = {}
    for path, value in changes.items():
        place = tree
        for step in path[:-1]:
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                break  # all of what is around is changed
        else:
            place[path[-1]] = _Change(value)
    return _copied(data, tree)


@dataclass(frozen=True, slots=True)
class _Change:
    """What takes the place of a value; None: nothing."""

    value: str | int | None


def _copied(data: Any, tree: Mapping[str | int, Any] | _Change) -> Any:
    if isinstance(tree, _Change):
        return tree.value
    if isinstance(data, list):
        return [_copied(item, tree[i]) if i in tree else item for i, item in enumerate(data)]
    if not isinstance(data, dict):
        return data
    gone = {key for key, change in tree.items() if isinstance(change, _Change) and change.value is None}
    kept = {key: _copied(inner, tree[key]) if key in tree else inner for key, inner in data.items() if key not in gone}
    added = {key: change.value for key, change in tree.items() if isinstance(change, _Change) and key not in data}
    return kept | {key: value for key, value in added.items() if value is not None}


def _problems(findings: Iterable[Finding]) -> Iterator[Problem]:
    """Yield one problem per path, without those that only follow from another."""
    groups: dict[KeyPath, list[Finding]] = {}
    for finding in _causes(list(findings)):
        groups.setdefault(finding.path, []).append(finding)
    for path, group in groups.items():
        text = _joined(group)
        yield Problem(
            path, text if path else f"the scenario: {text}", "" if group[0].unknown else group[0].value or None
        )


def _causes(found: list[Finding]) -> Iterator[Finding]:
    """Yield the findings that do not only follow from another."""
    guesses = {finding.guess for finding in found if finding.guess}
    consequences = guesses | {guess[:-1] for guess in guesses}  # the key that was meant, and the mapping around it
    around = {finding.path[:depth] for finding in found for depth in range(len(finding.path))}
    for finding in found:
        if not finding.unknown and finding.path in consequences:
            continue  # the misspelt key is reported already
        if finding.wrong_type and finding.path in around:
            continue  # another branch of the choice takes this type of value, and says what is wrong inside
        yield finding


def _joined(group: list[Finding]) -> str:
    said = [finding.text for finding in group if finding.text]
    must = list(dict.fromkeys(finding.must for finding in group if finding.must))
    hint = next((finding.hint for finding in group if finding.hint), "")
    return "; ".join(dict.fromkeys([*said, *(["must be " + " or ".join(must) + hint] if must else [])]))
