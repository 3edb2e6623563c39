"""Strict YAML: plain values, their lines, and errors that say what to do."""

import math
from pathlib import Path

import pytest

from simqueue.datafiles.yamlfile import parse, parse_value, read
from simqueue.errors import InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("5.0e-5", 5.0e-5),
        ("1E3", 1000.0),
        ("+1.5e+2", 150.0),
        (".5", 0.5),
        (".inf", math.inf),
        ("-.inf", -math.inf),
    ],
)
def test_floats_of_yaml_1_2(text: str, value: float) -> None:
    """Every notation of a float in YAML 1.2 is read as a float."""
    found = parse_value(text, "--set x")
    assert isinstance(found, float)
    assert found == value


def test_nan() -> None:
    """.nan is read as NaN."""
    assert math.isnan(parse_value(".nan", "--set x"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("no", "no"),
        ("true", True),
        ("null", None),
        ("~", None),
        ("16", 16),
        ("010", 10),
        ('"10"', "10"),
        ("2023-11-16", "2023-11-16"),
        ("1:30", "1:30"),
        ("<<", "<<"),
        ("{a: [1, x]}", {"a": [1, "x"]}),
    ],
)
def test_plain_values(text: str, value: object) -> None:
    """Words such as on, no, dates and times are text; only true and false are booleans."""
    found = parse_value(text, "--set x")
    assert found == value
    assert type(found) is type(value)


def test_positions_count_from_one() -> None:
    """Each key and value has a line and column; a missing key has those of the mapping around it."""
    document = parse("a: 1\nb:\n  - x\n  - {c: 2,\n     d: 3}\n", "f.yaml")
    assert document.data == {"a": 1, "b": ["x", {"c": 2, "d": 3}]}
    assert (document.keys[("b", 1, "d")].line, document.keys[("b", 1, "d")].column) == (5, 6)
    assert (document.values[("a",)].line, document.values[("a",)].column) == (1, 4)
    assert document.position(("b", 0)).line == 3
    assert document.position(("b", 1, "nothing", "here")).line == 4
    assert document.position(("nothing",)).line == 1


def test_aliases_and_merge_keys_are_copies() -> None:
    """Aliases repeat a value, merge keys give defaults for a mapping; the copies are independent."""
    document = parse("a: &x {p: 1, q: [2]}\nb: *x\nc: {<<: *x, p: 3}\n", "f.yaml")
    assert document.data["b"] == {"p": 1, "q": [2]}
    assert document.data["c"] == {"p": 3, "q": [2]}
    document.data["a"]["q"].append(9)
    assert document.data["b"]["q"] == [2]
    assert document.position(("c", "q")).line == 1


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' occurs twice (first in line 1)"),
        ("a:\n  b: 1\n  c: 2\n  b: 3\n", 4, "the key 'b' occurs twice (first in line 2)"),
        ("a:\n\tb: 1\n", 2, "a tab in the indentation"),
        ("a: b: c\n", 1, "a ':' where there cannot be a key"),
        ("x: 1\na: [1, 2\n", 2, "is not closed"),
        ("- 1\n", 1, "the file is a list"),
        ("word\n", 1, "the file is a single value"),
        ("", 1, "the file is empty"),
        ("# only a comment\n", 1, "the file is empty"),
        ("a: 1\n---\nb: 2\n", 2, "a second document"),
        ("a: !!python/object/apply:os.system [ls]\n", 1, "the tag '!!python/object/apply:os.system' is not allowed"),
        ("a: !mine 1\n", 1, "the tag '!mine' is not allowed"),
        ("a: &x [*x]\n", 1, "contains itself"),
        ("a: *nothing\n", 1, "undefined alias"),
        ("? [a, b]\n: 1\n", 1, "a key must be a scalar"),
        ("a:\n  <<: 3\n", 2, "'<<' needs a mapping"),
    ],
)
def test_errors_are_one_line_with_the_place(text: str, line: int, words: str) -> None:
    """Anything but plain YAML is an error in one line that starts with file and line."""
    with pytest.raises(InputError) as caught:
        parse(text, "f.yaml")
    message = str(caught.value)
    assert message.startswith(f"f.yaml:{line}: ")
    assert words in message
    assert "\n" not in message


def test_missing_file(tmp_path: Path) -> None:
    """A missing file is named."""
    with pytest.raises(InputError, match=r"nothing\.yaml: there is no such file"):
        read(tmp_path / "nothing.yaml")


def test_folder_and_bytes(tmp_path: Path) -> None:
    """A folder and a binary file are errors."""
    with pytest.raises(InputError, match="a folder, not a file"):
        read(tmp_path)
    (tmp_path / "bytes.yaml").write_bytes(b"a: \xff\xfe\n")
    with pytest.raises(InputError, match=r"not a text file in UTF-8 \(byte 3"):
        read(tmp_path / "bytes.yaml")


def test_byte_order_mark_and_crlf(tmp_path: Path) -> None:
    """Files of Windows editors are read like any other."""
    (tmp_path / "f.yaml").write_bytes(b"\xef\xbb\xbfa: 1\r\nb: x\r\n")
    assert read(tmp_path / "f.yaml").data == {"a": 1, "b": "x"}


def test_flags_have_no_line() -> None:
    """An error in a value from the command line names the flag and no line."""
    with pytest.raises(InputError, match=r"^--set a=\[1: not valid YAML"):
        parse_value("[1", "--set a=[1")
