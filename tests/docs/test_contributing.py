"""CONTRIBUTING.md: the files, commands and names that it mentions exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CODE = sorted(set(re.findall(r"`([^`\n]+)`", TEXT)))
SOURCES = [ROOT / "hatch_build.py", *ROOT.glob("simqueue/**/*.py"), *ROOT.glob("studies/**/*.py")]


@pytest.mark.parametrize("path", [code for code in CODE if re.fullmatch(r"\w+/[\w./-]*", code) and "NAME" not in code])
def test_files_exist(path: str) -> None:
    """Every file and folder that the page names exists."""
    assert (ROOT / path).exists()


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)", TEXT))
def test_links_lead_somewhere(target: str) -> None:
    """All files that the page links to exist."""
    assert (ROOT / target).exists()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:`|\$ )make ([a-z0-9]+)", TEXT))))
def test_targets_of_make_exist(target: str) -> None:
    """Every `make` command of the page is a target of the Makefile."""
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("name", [code for code in CODE if re.fullmatch(r"_?[A-Z]{3}[A-Z_]+", code)])
def test_tables_to_extend_exist(name: str) -> None:
    """Every table that a new part has to be added to is a constant of the sources."""
    assert any(re.search(rf"^{name}\b", file.read_text(encoding="utf-8"), flags=re.MULTILINE) for file in SOURCES)
