"""Strict YAML: plain values, and the position of each in the file.

The file is parsed into YAML nodes, which have line numbers, and the nodes are converted to dictionaries, lists and
scalars here. A file cannot make objects or run code: a tag other than YAML's plain ones is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scanner import Scanner

from simqueue.datafiles.limits import (
    MOST_DEPTH,
    MOST_KEYS,
    MOST_YAML_BYTES,
    MOST_YAML_ENTRIES,
    MOST_YAML_VALUES,
    MOST_YAML_WORDS,
)
from simqueue.datafiles.regular import MissingError, UnreadableError, open_regular
from simqueue.datafiles.text import read_text
from simqueue.errors import FileError, InputError, KeyPath
from simqueue.printable import is_text, shortened

_PLAIN = "tag:yaml.org,2002:"
_MERGE = _PLAIN + "merge"
_TEXTS = {_PLAIN + "str", _PLAIN + "timestamp", _PLAIN + "value", _MERGE}  # a date is kept as the text that was written
_SCALARS = {_PLAIN + kind for kind in ("null", "bool", "int", "float")} | _TEXTS

_TOO_DEEP: Final = f"nested too deeply; lists and mappings can be in each other up to {MOST_DEPTH} times"


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a YAML file with positions.

    Attributes
    ----------
    file : str
        The name of the file for messages; empty if there is no file.
    data : dict
        Its content as plain dictionaries, lists, strings, numbers, booleans and None.
    keys, values : dict of path to Position
        Start of each key and each value. List items are only in `values`.
    """

    file: str
    data: dict[str, Any]
    keys: dict[KeyPath, Position] = field(default_factory=dict)
    values: dict[KeyPath, Position] = field(default_factory=dict)

    def position(self, path: KeyPath) -> Position:
        """Return the position of the key at `path`, or of the nearest key above it that the file contains."""
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
        If the file cannot be read, is not YAML, repeats a key, uses a tag, or is not a mapping.
    """
    try:
        with open_regular(path, MOST_YAML_BYTES, pipes=True) as file:
            text = file.read().decode("utf-8-sig")
    except MissingError:
        raise InputError.at(str(path), "there is no such file") from None
    except UnreadableError as error:
        raise InputError.at(str(path), str(error)) from None
    except UnicodeDecodeError as error:
        raise InputError.at(str(path), f"not a text file in UTF-8 (byte {error.start} cannot be read)") from None
    return parse(text, str(path))


def read_yaml(file: Traversable | Path) -> dict[str, Any]:
    """Return the content of a YAML file that a key names, or of a packaged one.

    Raises
    ------
    FileError
        As `read`.
    """
    try:
        return parse(read_text(file, most_bytes=MOST_YAML_BYTES), str(file)).data
    except FileError:
        raise
    except InputError as error:
        raise FileError(str(error)) from None


def parse(text: str, file: str) -> Document:
    """Parse YAML text; `file` is the name in messages. Raises the same errors as `read`."""
    node = _compose(text, file)
    if node is None:
        raise InputError.at(f"{file}:1", "the file is empty; it must be a mapping of keys to values")
    if not isinstance(node, MappingNode):
        kind = "a list" if isinstance(node, SequenceNode) else "a single value"
        raise InputError.at(f"{file}:{_line(node)}", f"the file is {kind}; it must be a mapping of keys to values")
    document = Document(file, {})
    document.data.update(_Reader(document).mapping(node, ()))
    return document


def parse_value(text: str, source: str) -> Any:
    """Return the plain value of a piece of YAML such as ``16``, ``1e-3``, ``poisson`` or ``{a: 1}``.

    Raises
    ------
    InputError
        If it is not YAML; `source` is the name in the message.
    """
    node = _compose(text, source)
    return None if node is None else _Reader(Document(source, {})).value(node, ())


def _compose(text: str, file: str) -> Node | None:
    _check_size(text, file)
    try:
        node: Node | None = _parser().compose(text)
    except MarkedYAMLError as error:
        problem = " ".join(str(error.problem or error.context).split())
        unclosed = "'<stream end>'" in problem or "end of stream" in problem
        mark = (unclosed and error.context_mark) or error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        words = "a bracket or quote that is opened here is not closed" if unclosed else _plain_words(problem)
        raise InputError.at(_place(file, line), f"not valid YAML: {words}") from None
    except ReaderError as error:
        code = error.character if isinstance(error.character, int) else ord(error.character)
        line = text.count("\n", 0, error.position) + 1
        raise InputError.at(_place(file, line), f"not valid YAML: the control character U+{code:04X}") from None
    except YAMLError as error:
        raise InputError.at(file, f"not valid YAML: {' '.join(str(error).split())}") from None
    return node


def _parser() -> YAML:
    parser = YAML(typ="safe", pure=True)
    parser.max_depth = MOST_DEPTH
    parser.Composer = _LimitedComposer
    parser.Scanner = _LimitedScanner
    return parser


class _LimitedScanner(Scanner):
    """Makes tokens, up to a depth of brackets: it looks far ahead of what is composed, in steps that grow with them."""

    def fetch_flow_collection_start(self, token: Any, to_push: str) -> None:
        """Take an opening bracket."""
        if len(self.flow_context) > MOST_DEPTH:
            raise MarkedYAMLError(problem=_TOO_DEEP, problem_mark=self.reader.get_mark())
        super().fetch_flow_collection_start(token, to_push)


class _LimitedComposer(Composer):
    """Makes nodes, up to a number of keys in one mapping."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader=loader)
        self.warn_double_anchors = False  # YAML allows it, and the later one counts

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node; without an index it is a key of its parent, or the top."""
        if index is None and isinstance(parent, MappingNode) and len(parent.value) >= MOST_KEYS:
            mark = self.parser.peek_event().start_mark
            raise MarkedYAMLError(problem=f"a mapping can have up to {MOST_KEYS:,} keys", problem_mark=mark)
        return super().compose_node(parent, index)


def _check_size(text: str, file: str) -> None:
    """Check, before the text is parsed, that it does not have too many entries: each ends a line or is in a list."""
    entries = sum(map(text.count, "\n\r\x85\u2028\u2029,[{"))
    if entries > MOST_YAML_ENTRIES:
        raise InputError.at(
            file,
            f"too long: {entries:,} lines, commas and brackets, up to {MOST_YAML_ENTRIES:,} are read; put long lists "
            "of requests or of lengths into a file of their own (a trace, a table)",
        )
    words = len(text.split())
    if words > MOST_YAML_WORDS:
        raise InputError.at(file, f"too long: {words:,} words, up to {MOST_YAML_WORDS:,} are read")


def _plain_words(problem: str) -> str:
    """Return the most frequent messages of the parser in words that say what to do."""
    if "maximum depth" in problem:
        return _TOO_DEEP
    if "'\\t'" in problem:
        return "a tab in the indentation; indent with spaces"
    if "mapping values are not allowed" in problem:
        return "a ':' where there cannot be a key; check the indentation, or quote the text before it"
    if "found another document" in problem:
        return "a second document ('---'); a file can have only one"
    return shortened(problem, 200)


def _place(file: str, line: int) -> str:
    """Return ``file:line``, or only the flag for a value from the command line."""
    return file if file.startswith("--") else f"{file}:{line}"


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


class _Reader:
    """Converts nodes to plain values and records their positions in the document."""

    def __init__(self, document: Document, outer: _Reader | None = None) -> None:
        self._document = document
        self._scalars: Any = outer._scalars if outer else YAML(typ="safe", pure=True).constructor
        self._open: list[Node] = outer._open if outer else []
        self._count: int = outer._count if outer else 0

    def value(self, node: Node, path: KeyPath) -> Any:
        """Return the plain value of any node."""
        mark = node.start_mark
        self._document.values[path] = Position(int(mark.line) + 1, int(mark.column) + 1)
        if any(node is outer for outer in self._open):
            raise self._error(node, "an alias (*) contains itself")
        self._count_value(node)
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

    def _count_value(self, node: Node) -> None:
        """Count a value, also each time that an alias stands for it."""
        self._count += 1
        if self._count > MOST_YAML_VALUES:
            raise self._error(node, f"more than {MOST_YAML_VALUES:,} values, with the aliases (*) written out")
        if len(self._open) > MOST_DEPTH:
            raise self._error(node, _TOO_DEEP)

    def mapping(self, node: Node, path: KeyPath) -> dict[str, Any]:
        """Return the entries of a mapping, with those of its merge keys (``<<``) as defaults."""
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
                raise self._error(
                    key_node, f"the key '{shortened(key)}' occurs twice (first in line {first}); keep one of them"
                )
            own[key] = self.value(value_node, (*path, key))
            self._document.keys[*path, key] = position
        return {**merged, **own}

    def _merge(self, node: Node, path: KeyPath) -> dict[str, Any]:
        parts = node.value if isinstance(node, SequenceNode) else [node]
        result: dict[str, Any] = {}
        for part in parts:
            if not isinstance(part, MappingNode):
                raise self._error(part, "'<<' needs a mapping, or a list of mappings")
            aside = _Reader(Document(self._document.file, {}), self)
            for key, value in aside.value(part, path).items():
                result.setdefault(key, value)
            self._count = aside._count + len(aside._document.values)  # they are copied
            for known, found in (
                (self._document.keys, aside._document.keys),
                (self._document.values, aside._document.values),
            ):
                for where, position in found.items():
                    known.setdefault(where, position)
        return result

    def _key(self, node: Node) -> str:
        if not isinstance(node, ScalarNode):
            raise self._error(node, "a key must be a scalar")
        self._check_tag(node, *_SCALARS)
        return self._text(node)

    def _scalar(self, node: ScalarNode) -> Any:
        self._check_tag(node, *_SCALARS)
        if node.tag in _TEXTS:
            return self._text(node)
        try:
            return self._scalars.construct_object(node)
        except (ValueError, YAMLError):
            kind = str(node.tag).removeprefix(_PLAIN)
            raise self._error(node, f"'{shortened(str(node.value))}' cannot be read as {kind}") from None

    def _text(self, node: ScalarNode) -> str:
        text = str(node.value)
        if not is_text(text):
            raise self._error(node, f"'{shortened(text)}' is no text: half of a surrogate pair")
        return text

    def _check_tag(self, node: Node, *allowed: str) -> None:
        if node.tag not in allowed:
            tag = str(node.tag).replace(_PLAIN, "!!")
            raise self._error(node, f"the tag '{shortened(tag)}' is not allowed; only plain values are")

    def _error(self, node: Node, problem: str) -> InputError:
        return InputError.at(_place(self._document.file, _line(node)), problem)
