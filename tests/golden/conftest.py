"""Recorded schedules, read from their files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "data" / "golden"


@pytest.fixture
def recorded() -> Callable[[str], dict[str, Any]]:
    """Return a function that reads a recording by its name, such as ``vllm-0.33.0/fuzz_00``."""

    def read(name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        return content

    return read
