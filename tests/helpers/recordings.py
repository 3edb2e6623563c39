"""Recordings of two runs compared in every bit."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from simqueue.simulation import Recording

TABLES = ("requests", "steps", "gaps")


def differences(one: Recording, other: Recording) -> list[str]:
    """Return the names of all columns and values that differ in any bit."""
    found = []
    for table in TABLES:
        columns, twins = getattr(one, table), getattr(other, table)
        assert list(columns) == list(twins)
        found += [f"{table}.{name}" for name in columns if not _same(columns[name], twins[name])]
    rest = [entry.name for entry in fields(Recording) if entry.name not in TABLES]
    return found + [name for name in rest if not _same(getattr(one, name), getattr(other, name))]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        if one.dtype == object:
            return bool(one.tolist() == other.tolist())
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return bool(one == other)
