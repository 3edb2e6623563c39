"""The scenario file that the tests of this folder change in one place."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from ..helpers.toy_file import WriteToy, write_toy


@pytest.fixture
def toy(tmp_path: Path) -> WriteToy:
    """Return a function that writes the scenario with (old, new) texts replaced."""
    return functools.partial(write_toy, tmp_path)
