"""Packaged scenarios, and arguments that name them."""

from pathlib import Path

import pytest

from simqueue.errors import InputError
from simqueue.scenario import load
from simqueue.scenario.library import find, headline, packaged_scenarios


@pytest.mark.parametrize("name", sorted(packaged_scenarios()))
def test_packaged_scenarios_are_valid_and_say_what_they_show(name: str) -> None:
    """Every packaged scenario is found by its name, loads, and starts with a comment."""
    file = find(name)
    assert load(file).policies
    assert headline(file)


def test_some_scenarios_are_packaged() -> None:
    """The scenario of the course module is packaged."""
    assert "module08" in packaged_scenarios()


def test_a_file_comes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An existing file is used even if a packaged scenario has the same name."""
    monkeypatch.chdir(tmp_path)
    Path("module08").touch()
    assert find("module08") == Path("module08")


def test_a_folder_does_not_hide_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of results with the name of a packaged scenario is not taken for it; any other folder is an error."""
    monkeypatch.chdir(tmp_path)
    for name in ("module08", "mine"):
        Path(name).mkdir()
    assert find("module08") == packaged_scenarios()["module08"]
    with pytest.raises(InputError, match=r"^mine: this is a folder, not a file$"):
        find("mine")


def test_neither_file_nor_name() -> None:
    """Any other argument is an error with the nearest name."""
    with pytest.raises(
        InputError,
        match=r"^unknown scenario 'modul08'; did you mean 'module08'\? known: .*module08.*, or the path of a file$",
    ):
        find("modul08")


def test_packaged_scenarios_in_folders_have_names_with_the_folder() -> None:
    """A scenario about fleets is found by the name of its folder and its own."""
    assert find("fleet/waves") == packaged_scenarios()["fleet/waves"]
    assert find("fleet/waves").parent.name == "fleet"
