"""The ids of a trace's requests: those of the file, or row numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simqueue.workload.traces.base import TraceRows


def row_ids(rows: TraceRows, kept: NDArray[np.intp], *, rename: bool, notes: list[str]) -> Sequence[str]:
    """Return the id of each kept row: the file's own, or its number, counted from 0 in the order of the file.

    Parameters
    ----------
    rows : TraceRows
    kept : array of int
    rename : bool
        Whether the later rows of an id that comes twice get a number behind it (``a~2``); else that is an error.
    notes : list of str
        Is told how many were renamed.

    Raises
    ------
    InputError
        If an id comes twice and `rename` is false; names both lines.
    """
    given = rows.more.get("request_id")
    if given is None:
        return list(map(str, kept.tolist()))
    first: dict[str, int] = {}
    ids: list[str] = []
    renamed = 0
    taken = {given[row] for row in kept.tolist()}
    for row in kept.tolist():
        name = given[row]
        if name in first:
            if not rename:
                raise rows.wrong(
                    row,
                    f"request_id '{name}' is used already in line {rows.lines[first[name]]} "
                    "(duplicate_ids: rename gives later rows new ids)",
                )
            name = _free_name(name, taken)
            taken.add(name)
            renamed += 1
        first.setdefault(name, row)
        ids.append(name)
    if renamed:
        notes.append(f"{rows.label}: {renamed} of {len(kept)} requests have an id used before and were renamed")
    return ids


def _free_name(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}~{number}" in taken:
        number += 1
    return f"{name}~{number}"
