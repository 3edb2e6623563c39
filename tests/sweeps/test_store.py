"""The store of a sweep: whole cells, folders that are no sweep, files that are damaged, disks that are full."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from simqueue.errors import InputError, RunError
from simqueue.sweeps.store import STORE, Store


def test_the_first_outcome_stays(tmp_path: Path) -> None:
    """Two sweeps can store the same cell; it is there once, and both see what the other has stored."""
    with Store(tmp_path / "new") as one, Store(tmp_path / "new") as other:
        one.add("k", "first")
        assert other.has("k")
        other.add("k", "second")
        other.add("l", "third")
        assert dict(one.outcomes(["k", "l", "m"])) == {"k": "first", "l": "third"}
        assert one.count(["k", "m", "k"]) == 1


def add_many(store: Store, cells: int) -> None:
    """Store cells of a kilobyte each."""
    for number in range(cells):
        store.add(str(number), "x" * 1000)


def test_many_keys_are_read_in_parts() -> None:
    """More keys than one query takes are all read."""
    with Store(None) as store:
        for number in range(1203):
            store.add(str(number), f"outcome {number}")
        found = dict(store.outcomes([str(number) for number in range(1300)]))
    assert found == {str(number): f"outcome {number}" for number in range(1203)}


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """A file, and a folder with other files and no store, are errors; beside a store other files may be."""
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"contains files and no sweep, such as notes.txt"):
        Store(tmp_path)
    with pytest.raises(InputError, match="is a file"):
        Store(tmp_path / "notes.txt")
    with pytest.raises(InputError, match=r"cannot be written: Not a directory"):
        Store(tmp_path / "notes.txt" / "inside")
    Store(tmp_path / "sweep").close()
    (tmp_path / "sweep" / "notes.txt").write_text("mine")
    Store(tmp_path / "sweep").close()


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one line; with the file of a store that SQLite cannot open, too."""

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as changed:
        changed.setattr(Path, "mkdir", refused)
        with pytest.raises(InputError, match="new: cannot be written: Permission denied"):
            Store(tmp_path / "new")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / STORE).symlink_to("/nowhere/at/all")
    with pytest.raises(InputError, match=r"such as cells.sqlite|cannot be used: unable to open database file"):
        Store(tmp_path / "odd")


@pytest.mark.parametrize("damage", ["no database", "other pages", "cut"])
def test_a_damaged_store_is_one_line(tmp_path: Path, damage: str) -> None:
    """A file that is no database, or one with pages that are overwritten or missing, is found when it is opened."""
    with Store(tmp_path) as store:
        for number in range(300):
            store.add(f"{number:064}", "x" * 200)
    file = tmp_path / STORE
    content = file.read_bytes()
    if damage == "no database":
        content = b"not a database" * 1000
    elif damage == "other pages":
        content = content[:4096] + b"\xff" * 40_000 + content[44_096:]
    else:
        content = content[:20_000]
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"cells.sqlite: is damaged \(.*\); move it away"):
        Store(tmp_path)
    assert file.read_bytes() == content


def test_a_database_of_something_else(tmp_path: Path) -> None:
    """Another database of the same name is not touched."""
    with sqlite3.connect(tmp_path / STORE) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(InputError, match="is a database of something else"):
        Store(tmp_path)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """When the file can grow no more, the cell is an error, and those before it are there."""
    with Store(tmp_path) as store:
        store._open.execute("PRAGMA max_page_count = 8")
        says = r"disk is full; the cells until then are stored, and after space has been freed, the same command"
        with pytest.raises(RunError, match=says):
            add_many(store, 1000)
        number = store.rows()
    assert number > 3
    with Store(tmp_path) as again:
        assert again.count(map(str, range(number))) == again.rows() == number
        again.add(str(number), "x" * 1000)
        assert again.has(str(number))
