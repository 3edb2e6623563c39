"""The reference of tables against the tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simqueue.results import fleettables
from simqueue.results.summary import SUMMARY_TYPES
from simqueue.results.tables import REQUEST_TYPES, STEP_TYPES

_OPTIONAL = ("front_end_ms", "first_token_delay_ms", "client_wait_ms", "attempt", "session", "client")
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


def documented(table: str) -> list[str]:
    """Return the columns that the section of a table explains, in order."""
    section = REFERENCE.read_text(encoding="utf-8").split(f"\n## `{table}`\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in rows for name in re.findall(r"`(\w+)`", cell)]


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("requests", [*REQUEST_TYPES, "request_class", *_OPTIONAL, *fleettables.REQUEST_TYPES]),
        ("steps", [*STEP_TYPES, *fleettables.STEP_TYPES]),
        ("summary", list(SUMMARY_TYPES)),
        ("replicas", list(fleettables.REPLICA_TYPES)),
    ],
)
def test_every_column_is_explained_in_order(table: str, columns: list[str]) -> None:
    """The reference explains each column of each table, in the table's order, and no other."""
    assert documented(table) == columns
