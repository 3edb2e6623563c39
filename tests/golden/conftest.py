"""Recorded schedules: where they are, and one to alter."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "data" / "golden"


@pytest.fixture
def recorded() -> Callable[[str], dict[str, Any]]:
    """Return a reader of recordings by their names, as in ``vllm-0.33.0/fuzz_00``."""

    def read(name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        return content

    return read
