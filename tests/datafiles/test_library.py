"""Libraries of YAML data files with sources, and the readers of YAML and JSON under them."""

from pathlib import Path

import pytest

from simqueue.datafiles.library import Library
from simqueue.datafiles.text import read_json
from simqueue.datafiles.yamlfile import read_yaml
from simqueue.errors import InputError


def test_facts_have_sources(tmp_path: Path) -> None:
    """A file of the library gives its facts and the source of each."""
    (tmp_path / "one.yaml").write_text("description: first\nfacts:\n  - {source: a book, m: 1, n: 2}\n")
    (tmp_path / "notes.txt").write_text("not part of the library")
    library = Library(tmp_path, "thing")
    assert library.names() == ["one"]
    facts = library.facts("one")
    assert (facts.description, dict(facts.values)) == ("first", {"m": 1, "n": 2})
    assert dict(facts.sources) == {"m": "a book", "n": "a book"}


def test_a_fact_without_source_is_rejected(tmp_path: Path) -> None:
    """A data file with a value that has no source, or the same value twice, or no description is not accepted."""
    (tmp_path / "bare.yaml").write_text("description: x\nfacts:\n  - memory_mib: 1\n")
    (tmp_path / "twice.yaml").write_text("description: x\nfacts:\n  - {source: a, m: 1}\n  - {source: b, m: 2}\n")
    (tmp_path / "mute.yaml").write_text("facts: []\n")
    library = Library(tmp_path, "gpu")
    for name, said in (("bare", "'memory_mib' must"), ("twice", "'m' must"), ("mute", "needs a description")):
        with pytest.raises(InputError, match=f"^gpu '{name}': .*{said}"):
            library.facts(name)
    with pytest.raises(InputError, match=r"^unknown gpu 'twins'; did you mean 'twice'\? known: bare, mute"):
        library.facts("twins")


@pytest.mark.parametrize(
    ("text", "said"),
    [("a: 1\na: 2\n", "the key 'a' occurs twice"), ("- 1\n", "the file is a list; it must be a mapping")],
)
def test_yaml_is_strict(tmp_path: Path, text: str, said: str) -> None:
    """A key twice, or a top level that is not a mapping, is an error of one line that names the file."""
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=said) as error:
        read_yaml(file)
    assert str(error.value).startswith(f"{file}:")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [('{\n"a": }\n', "x.json:2: not valid JSON"), ("[1]", "x.json: must be a JSON object, not a list")],
)
def test_json_is_an_object(tmp_path: Path, text: str, said: str) -> None:
    """A JSON file that is not one object is an error of one line that names the file, and the line if known."""
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        read_json(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_json(tmp_path / "none.json")
