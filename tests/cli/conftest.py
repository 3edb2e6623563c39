"""A small valid scenario that tests change in one place."""

from collections.abc import Callable
from pathlib import Path

import pytest

TOY = Path(__file__).parent.parent / "scenario" / "toy.yaml"
WriteToy = Callable[..., Path]


@pytest.fixture
def toy(tmp_path: Path) -> WriteToy:
    """Write the scenario, the first occurrence of each old text replaced by the new one, and return the file."""

    def write(*changes: tuple[str, str]) -> Path:
        text = TOY.read_text(encoding="utf-8")
        for old, new in changes:
            if old not in text:
                raise ValueError(f"{old!r} is not in the scenario")
            text = text.replace(old, new, 1)
        file = tmp_path / "toy.yaml"
        file.write_text(text, encoding="utf-8")
        return file

    return write
