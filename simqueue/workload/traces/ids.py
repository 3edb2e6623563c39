"""The ids of the requests of a trace: those of the file, or row numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simqueue.workload.traces.base import TraceRows


def row_ids(rows: TraceRows, kept: NDArray[np.intp], *, rename: bool, notes: list[str]) -> Sequence[str]:
    """Return the id of each kept row: that of the file, or the number of the row, counted from 0 in file order.

    Parameters
    ----------
    rows : TraceRows
    kept : array of int
    rename : bool
        Whether later rows with an id that is used already get a suffix (``a~2``). If false, that is an error.
    notes : list of str
        Gets a note on how many rows were renamed.

    Raises
    ------
    InputError
        If an id is used twice and `rename` is false; gives both lines.
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
                    f"request_id '{name}' is already used in {rows.name_of(first[name])} "
                    "(duplicate_ids: rename gives later rows new ids)",
                )
            name = _free_name(name, taken)
            taken.add(name)
            renamed += 1
        first.setdefault(name, row)
        ids.append(name)
    if renamed:
        notes.append(
            f"{rows.label}: {renamed} of {len(kept)} requests have an id that is already used and were renamed"
        )
    return ids


def _free_name(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}~{number}" in taken:
        number += 1
    return f"{name}~{number}"
