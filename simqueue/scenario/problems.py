"""Everything that is wrong with a scenario, one line each: the place, the value, what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from simqueue.errors import InputError
from simqueue.scenario.wording import LOCATED, NO_TAG, Problem, bound, look_up, path_in_file, put_in_words, show
from simqueue.scenario.yamlfile import Document, KeyPath
from simqueue.settings import Settings

M = TypeVar("M", bound=Settings)

_HUGE = 10**308
"""A number that breaks whatever bound there is, and that a float can still hold."""


def located(found: Iterable[tuple[KeyPath, str, Any]]) -> ValidationError:
    """Return errors at paths of one's choice, (path, message, value) each, to be raised inside a validator."""
    return ValidationError.from_exception_data(
        "scenario",
        [
            InitErrorDetails(type=PydanticCustomError(LOCATED, "{text}", {"text": text}), loc=path, input=value)
            for path, text, value in found
        ],
    )


def validated(model: type[M], document: Document, flags: Mapping[KeyPath, str]) -> M:
    """Make `model` from a document, or report everything that is wrong with it.

    Parameters
    ----------
    model : type of Settings
    document : Document
    flags : mapping of path to str
        The command line flag that set a path; errors below it name the flag instead of a line.

    Raises
    ------
    InputError
        With one line per problem, in the order of the file.
    """
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        problems = _all_problems(model, document.data, error)
    raise complaint(_with_bounds(problems, model, document.data), document, flags)


def complaint(found: Iterable[Problem], document: Document, flags: Mapping[KeyPath, str]) -> InputError:
    """Return the error that reports these problems, one line each, in the order of the file."""
    lines = [_line(group, document, flags) for group in _grouped(found)]
    return InputError("\n".join(text for _, text in sorted(lines, key=lambda line: line[0])))


def _all_problems(model: type[Settings], data: Any, error: ValidationError) -> list[Problem]:
    """Return the problems of `error`, and those that they hide.

    An unknown key, and a missing one that tells which kind of thing is meant, keep pydantic from looking at what
    stands beside them. They are noted, taken out or filled in, and the rest is looked at again.
    """
    found: dict[Problem, None] = {}
    errors = error.errors(include_url=False)
    while errors:
        now = [put_in_words(details, data) for details in errors]
        found.update(dict.fromkeys(problem for problem in now if not problem.untagged))
        hiding = [problem for problem in now if problem.unknown or problem.untagged]
        if not hiding:
            break
        for problem in hiding:
            data = _changed(data, problem.path, NO_TAG if problem.untagged else None)
        errors = _errors(model, data)
    return list(found)


def _with_bounds(problems: list[Problem], model: type[Settings], data: Any) -> list[Problem]:
    """Add the bounds to what must be a number: those that the smallest and the largest number break."""
    paths = [problem.path for problem in problems if problem.number]
    bounds: dict[KeyPath, list[str]] = {path: [] for path in paths}
    for extreme in (-_HUGE, _HUGE) if paths else ():
        probe = data
        for path in paths:
            probe = _changed(probe, path, extreme)
        for details in _errors(model, probe):
            path, broken = path_in_file(details["loc"], probe), bound(details)
            if broken and path in bounds and broken not in bounds[path]:
                bounds[path].append(broken)
    return [
        replace(problem, must=" ".join([problem.must or "", " and ".join(bounds[problem.path])]).strip())
        if problem.number
        else problem
        for problem in problems
    ]


def _errors(model: type[Settings], data: Any) -> list[ErrorDetails]:
    try:
        model.model_validate(data)
    except ValidationError as error:
        return error.errors(include_url=False)
    return []


def _changed(data: Any, path: KeyPath, value: str | int | None) -> Any:
    """Return a copy of the data with `value` at `path`, or without that key."""
    if isinstance(data, list):
        return [_changed(item, path[1:], value) if i == path[0] else item for i, item in enumerate(data)]
    if len(path) > 1:
        return {key: _changed(inner, path[1:], value) if key == path[0] else inner for key, inner in data.items()}
    rest = {key: inner for key, inner in data.items() if key != path[0]}
    return rest if value is None else {**rest, path[0]: value}


def _grouped(found: Iterable[Problem]) -> Iterator[list[Problem]]:
    """Yield the problems of one place together, without those that only follow from another."""
    problems = list(found)
    guessed = [problem.guess for problem in problems if problem.guess]
    groups: dict[KeyPath, list[Problem]] = {}
    for problem in problems:
        if not problem.unknown and any(_is_about(problem, guess) for guess in guessed):
            continue  # the misspelt key is reported already
        if problem.wrong_type and any(_is_below(other.path, problem.path) for other in problems):
            continue  # another branch of the choice takes this kind of value, and says what is wrong inside
        groups.setdefault(problem.path, []).append(problem)
    yield from groups.values()


def _is_about(problem: Problem, key: KeyPath) -> bool:
    """Whether a problem is that of a key, or one of the mapping around it that names the key."""
    return problem.path == key or (problem.path == key[:-1] and str(key[-1]) in problem.text)


def _is_below(path: KeyPath, above: KeyPath) -> bool:
    return len(path) > len(above) and path[: len(above)] == above


def _line(group: list[Problem], document: Document, flags: Mapping[KeyPath, str]) -> tuple[tuple[int, int], str]:
    """Return line and column to sort by, and the text, of the problems of one place."""
    path = group[0].path
    wrong = _joined(group)
    flag = next((flags[path[:end]] for end in range(len(path), 0, -1) if path[:end] in flags), None)
    if flag and flags.get(path) == flag and flag.startswith(f"--set {'.'.join(map(str, path))}="):
        return (0, 0), f"{flag}: {wrong}"
    subject = _subject(group[0], document)
    inner = list(dict.fromkeys(flag for where, flag in flags.items() if _is_below(where, path)))
    if flag is None and path not in document.keys:
        flag = _maker(path, document, flags)
    if flag:
        return (0, 0), f"{flag}: {subject}: {wrong}"
    position = document.position(path)
    cause = f" (with {', '.join(inner)})" if inner else ""
    place = f"{document.file}:{position.line}: " if document.keys else ""  # what was made in Python has no lines
    return (position.line, position.column), f"{place}{subject}: {wrong}{cause}"


def _maker(path: KeyPath, document: Document, flags: Mapping[KeyPath, str]) -> str | None:
    """Return the flag that made the place, or the mapping around it; None where the file did."""
    for around in (path, path[:-1]):
        made = [flag for where, flag in flags.items() if around and _is_below(where, around)]
        if made and around not in document.keys:
            return made[0]
    return None


def _joined(group: list[Problem]) -> str:
    said = [problem.text for problem in group if problem.text]
    must = list(dict.fromkeys(problem.must for problem in group if problem.must))
    hint = next((problem.hint for problem in group if problem.hint), "")
    return "; ".join(dict.fromkeys([*said, *(["must be " + " or ".join(must) + hint] if must else [])]))


def _subject(problem: Problem, document: Document) -> str:
    """Return ``path = value``; the value is left out where the key is the mistake, or where it is a long one."""
    name = ".".join(map(str, problem.path)) or "the scenario"
    is_there, value = look_up(document.data, problem.path)
    shown = show(value) if is_there and not problem.unknown else None
    return f"{name} = {shown}" if shown else name
