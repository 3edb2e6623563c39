"""A small valid scenario file that tests change in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

TOY = Path(__file__).parents[1] / "scenario" / "toy.yaml"
WriteToy = Callable[..., Path]


def write_toy(folder: Path, *changes: tuple[str, str]) -> Path:
    """Write the scenario, the first occurrence of each old text replaced by the new one, and return the file."""
    text = TOY.read_text(encoding="utf-8")
    for old, new in changes:
        if old not in text:
            raise ValueError(f"{old!r} is not in the scenario")
        text = text.replace(old, new, 1)
    file = folder / "toy.yaml"
    file.write_text(text, encoding="utf-8")
    return file
