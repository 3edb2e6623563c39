"""Strict YAML: plain values, and where in the file each of them stands.

The file is composed into YAML nodes, which know their lines, and these are turned into dictionaries, lists and
scalars here. Nothing in a file can make an object or run code: a tag that is not one of YAML's plain ones is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from simqueue.errors import InputError, KeyPath

_PLAIN = "tag:yaml.org,2002:"
_MERGE = _PLAIN + "merge"
_TEXTS = {_PLAIN + "str", _PLAIN + "timestamp", _PLAIN + "value", _MERGE}  # a date stays the text that was written
_SCALARS = {_PLAIN + kind for kind in ("null", "bool", "int", "float")} | _TEXTS


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Document:
    """What a YAML file says, and where.

    Attributes
    ----------
    file : str
        The name of the file as people know it.
    data : dict
        Its content as plain dictionaries, lists, strings, numbers, booleans and None.
    keys, values : dict of path to Position
        Where each key and each value starts; list items are among the values only.
    """

    file: str
    data: dict[str, Any]
    keys: dict[KeyPath, Position] = field(default_factory=dict)
    values: dict[KeyPath, Position] = field(default_factory=dict)

    def position(self, path: KeyPath) -> Position:
        """Return where the key at `path` stands, or the nearest thing above it that the file contains."""
        for end in range(len(path), 0, -1):
            position = self.keys.get(path[:end]) or self.values.get(path[:end])
            if position:
                return position
        return Position(1, 1)


def read(path: Path) -> Document:
    """Read a YAML file whose top level is a mapping.

    Raises
    ------
    InputError
        If the file cannot be read, is not YAML, repeats a key, uses a tag, or holds no mapping; one line each,
        with file and line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: this is a folder, not a file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text file in UTF-8 (byte {error.start} cannot be read)") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    return parse(text, str(path))


def parse(text: str, file: str) -> Document:
    """Turn YAML text into a `Document`; `file` is the name that errors carry. Raises like `read`."""
    node = _compose(text, file)
    if node is None:
        raise InputError(f"{file}:1: the file is empty; a mapping of keys to values is needed")
    if not isinstance(node, MappingNode):
        kind = "a list" if isinstance(node, SequenceNode) else "a single value"
        raise InputError(f"{file}:{_line(node)}: the file holds {kind}; a mapping of keys to values is needed")
    document = Document(file, {})
    document.data.update(_Reader(document).mapping(node, ()))
    return document


def parse_value(text: str, source: str) -> Any:
    """Return the plain value of a piece of YAML such as ``16``, ``1e-3``, ``poisson`` or ``{a: 1}``.

    Raises
    ------
    InputError
        If it is not YAML; `source` is the name that the message carries.
    """
    node = _compose(text, source)
    return None if node is None else _Reader(Document(source, {})).value(node, ())


def _compose(text: str, file: str) -> Node | None:
    try:
        node: Node | None = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        problem = " ".join(str(error.problem or error.context).split())
        unclosed = "'<stream end>'" in problem or "end of stream" in problem
        mark = (unclosed and error.context_mark) or error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        words = "a bracket or a quote that is opened here is never closed" if unclosed else _plain_words(problem)
        raise InputError(f"{_place(file, line)}: not valid YAML: {words}") from None
    except YAMLError as error:
        raise InputError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from None
    return node


def _plain_words(problem: str) -> str:
    """Put the parser's most frequent complaints into words that say what to do."""
    if "'\\t'" in problem:
        return "a tab where YAML wants spaces; indent with spaces"
    if "mapping values are not allowed" in problem:
        return "a ':' where no key can stand; check the indentation, or quote the text before it"
    if "found another document" in problem:
        return "a second document ('---'); a file holds one"
    return problem


def _place(file: str, line: int) -> str:
    """Return ``file:line``; a flag of the command line has no lines."""
    return file if file.startswith("--") else f"{file}:{line}"


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


class _Reader:
    """Turns nodes into plain values and notes their positions in the document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._scalars = YAML(typ="safe", pure=True).constructor
        self._open: list[Node] = []

    def value(self, node: Node, path: KeyPath) -> Any:
        """Return the plain value of any node."""
        mark = node.start_mark
        self._document.values[path] = Position(int(mark.line) + 1, int(mark.column) + 1)
        if any(node is outer for outer in self._open):
            raise self._error(node, "an alias (*) that contains itself")
        self._open.append(node)
        try:
            if isinstance(node, ScalarNode):
                return self._scalar(node)
            if isinstance(node, SequenceNode):
                self._check_tag(node, _PLAIN + "seq")
                return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
            return self.mapping(node, path)
        finally:
            self._open.pop()

    def mapping(self, node: Node, path: KeyPath) -> dict[str, Any]:
        """Return a mapping's own entries, and under them those of its merge keys (``<<``)."""
        self._check_tag(node, _PLAIN + "map")
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                for entry, value in self._merge(value_node, path).items():
                    merged.setdefault(entry, value)
                continue
            key = self._key(key_node)
            position = Position(_line(key_node), int(key_node.start_mark.column) + 1)
            if key in own:
                first = self._document.keys[*path, key].line
                raise self._error(key_node, f"the key '{key}' is given twice (first in line {first}); keep one of them")
            own[key] = self.value(value_node, (*path, key))
            self._document.keys[*path, key] = position
        return {**merged, **own}

    def _merge(self, node: Node, path: KeyPath) -> dict[str, Any]:
        parts = node.value if isinstance(node, SequenceNode) else [node]
        result: dict[str, Any] = {}
        for part in parts:
            if not isinstance(part, MappingNode):
                raise self._error(part, "'<<' takes a mapping, or a list of mappings")
            aside = _Reader(Document(self._document.file, {}))
            for key, value in aside.value(part, path).items():
                result.setdefault(key, value)
            for known, found in (
                (self._document.keys, aside._document.keys),
                (self._document.values, aside._document.values),
            ):
                for where, position in found.items():
                    known.setdefault(where, position)
        return result

    def _key(self, node: Node) -> str:
        if not isinstance(node, ScalarNode):
            raise self._error(node, "a key must be a plain word")
        self._check_tag(node, *_SCALARS)
        return str(node.value)

    def _scalar(self, node: ScalarNode) -> Any:
        self._check_tag(node, *_SCALARS)
        if node.tag in _TEXTS:
            return str(node.value)
        try:
            return self._scalars.construct_object(node)
        except (ValueError, YAMLError):
            raise self._error(node, f"'{node.value}' cannot be read as {str(node.tag).removeprefix(_PLAIN)}") from None

    def _check_tag(self, node: Node, *allowed: str) -> None:
        if node.tag not in allowed:
            tag = str(node.tag).replace(_PLAIN, "!!")
            raise self._error(node, f"the tag '{tag}' is not allowed; write plain values")

    def _error(self, node: Node, problem: str) -> InputError:
        return InputError(f"{_place(self._document.file, _line(node))}: {problem}")
