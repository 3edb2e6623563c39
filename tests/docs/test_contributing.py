"""CONTRIBUTING.md: the files, commands and names that it mentions exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
IN_FILES = re.findall(r"`(_?[A-Z]{3}[A-Z_]+)`\s+in\s+`([\w/.]+)`", TEXT)
CODE = sorted(set(re.findall(r"`([^`\n]+)`", TEXT)))


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


@pytest.mark.parametrize(("name", "file"), [*IN_FILES, ("SUMMARY_TYPES", "simqueue/results/summary.py")])
def test_tables_to_extend_exist(name: str, file: str) -> None:
    """Every table that a new part has to be added to is a constant of the file that the page names."""
    assert re.search(rf"^{name}\b", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
