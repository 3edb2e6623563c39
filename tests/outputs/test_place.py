"""Reserved files and folders: what can be written, what stays behind, and who may write."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simqueue.errors import InputError, RunError
from simqueue.outputs import Outputs, Place, reserved_file, reserved_folder
from simqueue.outputs.earlier import write_marker
from simqueue.outputs.place import PARTIAL

MARKER = "simqueue-test.json"
ROOT = Path(__file__).parents[2]


def names(folder: Path) -> list[str]:
    """List everything below a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def fill(place: Place, text: str) -> None:
    """Write a folder of one file, with its marker."""
    with place.writing() as new:
        new.mkdir()
        (new / "table").write_text(text)
        write_marker(new, MARKER, "1", ["table"])


def saved(folder: Path, text: str) -> None:
    """Reserve a folder and write it."""
    with reserved_folder(folder, MARKER) as place:
        fill(place, text)


def give_up(folder: Path) -> None:
    """Reserve a folder, write a part of it, and fail."""
    with reserved_folder(folder, MARKER) as place:
        place.new.mkdir()
        (place.new / "half").write_text("x")
        raise ZeroDivisionError


def save_while_the_user_adds_a_file(folder: Path) -> None:
    """Write a folder that gets a file of the user's in the meantime."""
    with reserved_folder(folder, MARKER) as place:
        (folder / "notes").write_text("mine")
        fill(place, "later")


def written_or_refused(path: Path) -> bool:
    """Write a file; return whether that was possible."""
    try:
        with reserved_file(path) as place:
            place.write_text("x")
    except InputError:
        return False
    return True


@contextmanager
def a_full_disk(size: int = 4096) -> Iterator[None]:
    """Let every write beyond this size of a file fail, as the kernel does it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_missing_parents_are_made_and_nothing_else_stays(tmp_path: Path) -> None:
    """A file and a folder below missing folders are written, and no partial folder is left."""
    with reserved_file(tmp_path / "a" / "b" / "page.html") as place:
        place.write_text("x")
    saved(tmp_path / "c" / "d", "x")
    assert names(tmp_path) == ["a", "a/b", "a/b/page.html", "c", "c/d", f"c/d/{MARKER}", "c/d/table"]


def test_what_is_not_written_leaves_nothing(tmp_path: Path) -> None:
    """A reserved place that is given up removes its partial folder and the parents that were made for it."""
    with reserved_file(tmp_path / "a" / "b" / "page.html") as place:
        assert place.partial.is_dir()
    with pytest.raises(ZeroDivisionError):
        give_up(tmp_path / "c" / "d")
    assert names(tmp_path) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(min_size=1, max_size=300).filter(lambda name: "/" not in name))
def test_every_name_is_written_or_bad_input(name: str, tmp_path: Path) -> None:
    """Whatever the letters and the length of a name: it can be read back, or is bad input. Nothing else is left."""
    if written_or_refused(tmp_path / name):
        assert (tmp_path / name).read_text() == "x"
        (tmp_path / name).unlink()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("file/page", "file is a file, not a folder"),
        ("file/deep/page", "file is a file, not a folder"),
        ("/proc/page", "cannot be written: "),
        ("x" * 300, "cannot be written: File name too long"),
        ("x/" * 3000 + "page", "cannot be written: File name too long"),
        ("loop/page", "cannot be written: "),
        ("nul\0/page", "cannot be written: "),
    ],
)
@pytest.mark.parametrize("is_folder", [False, True])
def test_what_cannot_be_written_is_bad_input(path: str, words: str, tmp_path: Path, *, is_folder: bool) -> None:
    """It is known when the place is reserved, in one line, and nothing is left."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=words) as caught, Outputs() as outputs:
        (outputs.folder(tmp_path / path, MARKER) if is_folder else outputs.file(tmp_path / path)).write_text("x")
    assert len(str(caught.value).splitlines()) == 1
    assert names(tmp_path) == ["file", "loop"]


def test_a_folder_is_no_file_and_a_file_no_folder(tmp_path: Path) -> None:
    """What is there already must be of the same kind."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a folder; must be a file"), reserved_file(tmp_path):
        pass
    with pytest.raises(InputError, match="is a file; must be"), reserved_folder(tmp_path / "file", MARKER):
        pass


def test_folders_that_cannot_be_renamed_are_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root of a file system, and the current folder and those above it, cannot be replaced."""
    monkeypatch.chdir(tmp_path)
    for path, words in (("/", "root of a file system"), (".", "current folder"), ("..", "current folder")):
        with pytest.raises(InputError, match=words), reserved_folder(Path(path), MARKER):
            pass


def test_a_second_writer_is_refused_while_the_first_one_works(tmp_path: Path) -> None:
    """The message names the process that writes. When the first one has ended, the place is free."""
    for reserve in (reserved_file, lambda path: reserved_folder(path, MARKER)):
        with (
            reserve(tmp_path / "out"),
            pytest.raises(InputError, match=rf"another run is writing to it \(process {os.getpid()}\)"),
            reserve(tmp_path / "out"),
        ):
            pass
        with reserve(tmp_path / "out"):
            pass
    assert names(tmp_path) == []


def test_what_a_killed_writer_left_is_taken_over(tmp_path: Path) -> None:
    """After kill -9 in the middle, the earlier folder is whole, and the next writer can replace it."""
    saved(tmp_path / "out", "earlier")
    program = (
        "import os, signal, sys; from pathlib import Path; from simqueue.outputs import Outputs\n"
        f"place = Outputs().folder(Path(sys.argv[1]), {MARKER!r})\n"
        "place.new.mkdir(); (place.new / 'half').write_text('x'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path / "out")], check=False, cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "out" / "table").read_text() == "earlier"
    assert json.loads((tmp_path / ".out.partial" / PARTIAL).read_text())["target"] == "out"
    saved(tmp_path / "out", "later")
    assert (tmp_path / "out" / "table").read_text() == "later"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_writer_killed_between_the_two_renames_has_lost_nothing(tmp_path: Path) -> None:
    """The folder that it had moved away gets its name back from the next writer, even if that one fails."""
    saved(tmp_path / "out", "earlier")
    partial = tmp_path / ".out.partial"
    partial.mkdir()
    (partial / PARTIAL).write_text("{}")
    (tmp_path / "out").rename(partial / "old")
    with reserved_folder(tmp_path / "out", MARKER):
        assert (tmp_path / "out" / "table").read_text() == "earlier"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_foreign_partial_folder_is_left_alone(tmp_path: Path) -> None:
    """A folder of the user's that has the name of the partial folder, or files of the user in it, are not removed."""
    partial = tmp_path / ".out.partial"
    partial.mkdir()
    (partial / "thesis").write_text("x")
    for _ in range(2):
        with pytest.raises(InputError, match=r"\.out\.partial is in the way: it contains thesis"):
            saved(tmp_path / "out", "x")
        (partial / PARTIAL).write_text("{}")
    assert (partial / "thesis").read_text() == "x"


def test_a_full_disk_leaves_the_earlier_output(tmp_path: Path) -> None:
    """When writing fails, the error is of one line, exit code 1, and what was there is there."""
    with reserved_file(tmp_path / "page") as place:
        place.write_text("earlier")
    saved(tmp_path / "out", "earlier")
    with (
        a_full_disk(),
        pytest.raises(RunError, match=r"page: cannot be written: File too large$"),
        reserved_file(tmp_path / "page") as place,
    ):
        place.write_text("x" * 10_000)
    with a_full_disk(), pytest.raises(RunError, match=r"out: cannot be written: File too large$"):
        saved(tmp_path / "out", "x" * 10_000)
    assert (tmp_path / "page").read_text() == (tmp_path / "out" / "table").read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "page"]


def test_a_file_of_ones_own_that_came_during_the_work_is_kept_and_so_is_the_work(tmp_path: Path) -> None:
    """The folder cannot be replaced any more: the new one gets a free name, which the error tells."""
    saved(tmp_path / "out", "earlier")
    with pytest.raises(RunError, match=r"out: notes is not part of .* what was to be written there is in .*out-1$"):
        save_while_the_user_adds_a_file(tmp_path / "out")
    assert (tmp_path / "out" / "notes").read_text() == "mine"
    assert (tmp_path / "out-1" / "table").read_text() == "later"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out-1"]


def test_links_are_followed_and_rights_are_kept(tmp_path: Path) -> None:
    """The target of a link is replaced, not the link, and a replaced file has the rights that it had."""
    (tmp_path / "real").write_text("x")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    with reserved_file(tmp_path / "link") as place:
        place.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640


def test_pipes_and_devices_are_written_and_never_replaced(tmp_path: Path) -> None:
    """A named pipe and /dev/null are still what they were."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    for path in (tmp_path / "pipe", Path(os.devnull)):
        with reserved_file(path) as place:
            place.write_text("told")
        assert not path.is_file()
    assert os.read(reader, 100) == b"told"
    os.close(reader)


def test_outputs_of_one_command_must_be_apart(tmp_path: Path) -> None:
    """Two outputs at one path, or one inside the other, are bad input in either order."""
    for first, second in (("out", "out"), ("out", "out/trace"), ("out/trace", "out")):
        with Outputs() as outputs:
            outputs.folder(tmp_path / first, MARKER)
            with pytest.raises(InputError, match="another output of this command"):
                outputs.folder(tmp_path / second, MARKER)
    assert names(tmp_path) == []
