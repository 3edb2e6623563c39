"""The one CSV reader: columns and rows with types, and errors of one line with file and line number."""

from pathlib import Path

import pytest

from simqueue.datafiles.csvtable import Table, read_table, read_tables
from simqueue.errors import FileError, InputError


def table(folder: Path, text: str, *, pad: bool = False) -> Table:
    """Read a table with this text."""
    file = folder / "t.csv"
    file.write_bytes(text.encode())
    return read_table(file, "t.csv", pad=pad)


def test_columns_have_types(tmp_path: Path) -> None:
    """Cells are stripped; blank lines, CRLF, a byte order mark and a missing last newline are allowed."""
    read = table(tmp_path, "\ufeffa, b ,c\r\n\r\n1, 2.5 ,x\r\n 3,,y")
    assert list(read.names) == ["a", "b", "c"]
    assert list(read.lines) == [3, 4]
    assert read.integers("a", most=3) == [1, 3]
    assert read.floats("b", least=0, empty=0.5) == [2.5, 0.5]
    assert read.text("c") == ("x", "y")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("x", "t.csv:3: a 'x' is not an integer"),
        ("", "t.csv:3: a '' is not an integer"),
        ("1_0", "t.csv:3: a '1_0' is not an integer"),
        ("1.5", "t.csv:3: a '1.5' is not an integer"),
        ("11", "t.csv:3: a '11' is not between 0 and 10"),
        ("-1", "t.csv:3: a '-1' is not between 0 and 10"),
    ],
)
def test_integers_are_checked(tmp_path: Path, cell: str, said: str) -> None:
    """An error names file, line, column, value and what is allowed."""
    with pytest.raises(InputError) as error:
        table(tmp_path, f"a,b\n1,1\n{cell},1\n").integers("a", most=10)
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("x", "t.csv:3: a 'x' is not a number"),
        ("", "t.csv:3: a '' is not a number"),
        ("1_0", "t.csv:3: a '1_0' is not a number"),
        ("nan", "t.csv:3: a 'nan' is not a finite number of at least 0"),
        ("inf", "t.csv:3: a 'inf' is not a finite number of at least 0"),
        ("-1", "t.csv:3: a '-1' is not a finite number of at least 0"),
    ],
)
def test_numbers_are_checked_by_column_and_by_row(tmp_path: Path, cell: str, said: str) -> None:
    """A column and a row give the same error for the same cell."""
    read = table(tmp_path, f"a,b\n1,1\n{cell},1\n")
    with pytest.raises(InputError) as error:
        read.floats("a", least=0)
    assert str(error.value) == said
    with pytest.raises(InputError) as error:
        [row.number("a", least=0) for row in read.rows()]
    assert str(error.value) == said


def test_rows_have_a_place_and_typed_cells(tmp_path: Path) -> None:
    """A row knows its file and line; a missing column or an empty cell takes the value given for it."""
    first, second = table(tmp_path, "a,b\n1.5,8.0\n\n,2.5\n").rows()
    assert (first.where, second.where) == ("t.csv:2", "t.csv:4")
    assert (first["a"], first.number("a"), first.integer("b")) == ("1.5", 1.5, 8)
    assert (second.number("a", empty=7), second.number("none", empty=7), second.integer("none", empty=3)) == (7, 7, 3)
    with pytest.raises(InputError, match=r"^t.csv:4: b '2.5' is not an integer of at least 0$"):
        second.integer("b")
    with pytest.raises(InputError, match=r"^t.csv:2: b '8.0' is not a finite number above 8$"):
        first.number("b", above=8)
    with pytest.raises(InputError, match=r"^t.csv:2: too hot$"):
        raise first.error("too hot")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t.csv: the file is empty; a header line and rows are expected"),
        ("a,b\n", "t.csv: the file has a header and no rows"),
        ("a,b\n1,2,3\n", "t.csv:2: 3 cells, the header has 2"),
        ("a,b\n\n1\n", "t.csv:3: 1 cell, the header has 2"),
        ("a,a\n1,2\n", "t.csv:1: column 'a' appears twice in the header"),
        ('{"a": 1}\n', "t.csv:1: this looks like JSON, not like CSV with a header line"),
    ],
)
def test_files_that_are_no_table(tmp_path: Path, text: str, said: str) -> None:
    """What is wrong with a file as a whole is said in one line."""
    with pytest.raises(InputError) as error:
        table(tmp_path, text)
    assert str(error.value) == said


def test_short_rows_can_be_padded(tmp_path: Path) -> None:
    """With `pad` a row shorter than the header ends in empty cells; a longer one is an error all the same."""
    assert table(tmp_path, "a,b\n1\n", pad=True).text("b") == ("",)
    with pytest.raises(InputError, match="3 cells, the header has 2"):
        table(tmp_path, "a,b\n1,2,3\n", pad=True)


def test_columns_are_checked(tmp_path: Path) -> None:
    """Unknown columns are named with the nearest known one, missing ones with the columns found."""
    read = table(tmp_path, "a,colour\n1,2\n")
    read.check_columns(["a"])
    with pytest.raises(InputError, match=r"^t.csv: unknown column 'colour'; did you mean 'color'\? known: a, color$"):
        read.check_columns([], ["a", "color"])
    with pytest.raises(InputError, match=r"^t.csv: column 'b' is missing, columns found: 'a', 'colour'$"):
        read.check_columns(["b"])


def test_a_foreign_header_is_guessed(tmp_path: Path) -> None:
    """The caller's guess of what a file looks like is part of the errors about its header."""
    file = tmp_path / "t.csv"
    file.write_text("a\n1\n")
    with pytest.raises(InputError, match="this looks like a's own format"):
        read_table(file, "t.csv", lambda found: f"{found[0]}'s own format").text("b")


def test_tables_come_in_pieces(tmp_path: Path) -> None:
    """`at_once` limits the rows per table; line numbers go on."""
    file = tmp_path / "t.csv"
    file.write_text("a\n1\n2\n3\n")
    pieces = list(read_tables(file, "t.csv", at_once=2))
    assert [(list(piece.text("a")), list(piece.lines)) for piece in pieces] == [(["1", "2"], [2, 3]), (["3"], [4])]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A file that is missing, a folder, or not text is an error about the file."""
    with pytest.raises(FileError, match=r"^none.csv: no such file \(looked for /.*none.csv\)$"):
        read_table(Path("none.csv"), "none.csv")
    with pytest.raises(FileError, match=r"^/.*none.csv: no such file$"):
        read_table(tmp_path / "none.csv", str(tmp_path / "none.csv"))
    with pytest.raises(FileError, match=r"^folder: this is a folder, not a file$"):
        read_table(tmp_path, "folder")
    (tmp_path / "binary.csv").write_bytes(b"a\n1\n\xff\xfe\n")
    with pytest.raises(FileError, match=r"^binary.csv: not a UTF-8 text file"):
        read_table(tmp_path / "binary.csv", "binary.csv")
