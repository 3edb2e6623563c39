"""Results of ``vllm bench serve --save-result --save-detailed``: the requests it sent, as a trace.

Source of the format: github.com/vllm-project/vllm, vllm/benchmarks/serve.py. One JSON object with one list per
quantity: ``input_lens``, ``output_lens`` (0 for failed requests) and, in versions that write it, ``start_times``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simqueue.datafiles.csvtable import Table
from simqueue.datafiles.jsontext import cell_text, exact_json
from simqueue.datafiles.limits import MOST_BENCH_BYTES
from simqueue.datafiles.text import read_text
from simqueue.errors import InputError
from simqueue.workload.traces.base import TraceRows, token_counts
from simqueue.workload.traces.formats import ReadOptions, guess_format, guess_json
from simqueue.workload.traces.timecells import read_times

_LISTS = ("start_times", "input_lens", "output_lens")


class VllmBenchReader:
    """Reader of one saved result (see `TraceReader`); requests are counted from 1, like lines in other formats."""

    def chunks(self, path: Path, label: str, _options: ReadOptions, _at_once: int | None) -> Iterator[TraceRows]:
        """Yield all rows together: the file is one object."""
        found = _object(read_text(path, label, MOST_BENCH_BYTES), label)
        lists = {name: _list(found, name, label) for name in _LISTS}
        lengths = {name: len(values) for name, values in lists.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} has {number}" for name, number in lengths.items())
            raise InputError(f"{label}: the lists must have equal lengths: {shown}")
        if not lists["start_times"]:
            raise InputError(f"{label}: the result has no requests")
        cells = {name: tuple(map(cell_text, values)) for name, values in lists.items()}
        table = Table(label, cells, range(1, len(cells["start_times"]) + 1), counted="request")
        time, _ = read_times(table, "start_times", "s")
        yield TraceRows(
            label,
            table.lines,
            time,
            token_counts(table, "input_lens"),
            token_counts(table, "output_lens"),
            counted=table.counted,
        )


def _object(text: str, label: str) -> dict[str, Any]:
    if not text.strip():
        raise InputError(f"{label}: the file is empty; a saved result of vllm bench serve is expected")
    first = text.lstrip().partition("\n")[0]
    try:
        found = exact_json(text)
    except ValueError as error:
        guess = guess_format([cell.strip() for cell in first.split(",")], "vllm-bench")
        hint = f": this looks like {guess}" if guess else f" ({error})"
        raise InputError(f"{label}: not one JSON object{hint}") from None
    if not isinstance(found, dict):
        raise InputError(f"{label}: one JSON object is expected")
    return found


def _list(found: dict[str, Any], name: str, label: str) -> list[Any]:
    values = found.get(name)
    if isinstance(values, list):
        return values
    guess = guess_json(list(found), "vllm-bench")
    if guess:
        raise InputError(f"{label}: the list {name} is missing; this looks like {guess}")
    why = "arrival times are unknown without it (older versions of vLLM do not save it)"
    rest = why if name == "start_times" else "save the result with --save-detailed"
    raise InputError(f"{label}: the list {name} is missing: {rest}")
