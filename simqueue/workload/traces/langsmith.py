"""LangSmith: exported runs, of which those of type ``llm`` are calls of a model.

Source: docs.langchain.com/langsmith/run-data-format. Token counts are keys of the run, or in the usage that its outputs
or its metadata report. Runs of other types repeat the tokens of the runs inside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from simqueue.datafiles.jsontext import cell_text, json_documents
from simqueue.errors import InputError
from simqueue.workload.traces.base import TraceRows
from simqueue.workload.traces.calls import Call, ExportForm, call_rows
from simqueue.workload.traces.formats import ReadOptions, guess_format, guess_json

_FORM: Final = ExportForm(
    "run",
    ("start_time", "prompt_tokens", "completion_tokens"),
    "ms",
    "their run_type is not llm, or they have no token counts",
)
_USAGES: Final = (
    ("outputs", "usage_metadata"),
    ("extra", "metadata", "usage_metadata"),
    ("outputs", "llm_output", "token_usage"),
)
_PROMPT: Final = ("prompt_tokens", "input_tokens")
_OUTPUT: Final = ("completion_tokens", "output_tokens")
_THREAD: Final = ("thread_id", "session_id", "conversation_id")
_EXPECTED: Final = "runs with run_type and start_time are"


class LangSmithReader:
    """Reader of runs as JSON lines, as one list, or as a list under ``runs`` (see `TraceReader`)."""

    def chunks(self, path: Path, label: str, _options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the runs of type ``llm`` with token counts."""
        return call_rows(map(_call, _runs(path, label)), label, _FORM, at_once)


def _runs(path: Path, label: str) -> Iterator[Mapping[str, Any]]:
    for place, document in json_documents(path, label, _EXPECTED, partial(guess_format, expected="langsmith")):
        listed = document.get("runs", document) if isinstance(document, dict) else document
        for run in listed if isinstance(listed, list) else [listed]:
            if not isinstance(run, dict) or "run_type" not in run:
                guess = guess_json(list(run), "langsmith") if isinstance(run, dict) else None
                hint = f"; this looks like {guess}" if guess else ""
                raise InputError(f"{place}: {_EXPECTED} expected{hint}")
            yield run


def _call(run: Mapping[str, Any]) -> Call | None:
    usages = [run, *(_inside(run, path) for path in _USAGES)]
    prompt = _first(usages, _PROMPT)
    if run["run_type"] != "llm" or not prompt:
        return None
    return Call(
        cell_text(run.get("start_time")),
        prompt,
        _first(usages, _OUTPUT),
        cell_text(run.get("id")),
        cell_text(run.get("parent_run_id")),
        _first([_inside(run, ("extra", "metadata"))], _THREAD),
    )


def _inside(run: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the object at a path of keys; an empty one if there is none."""
    found: Any = run
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _first(holders: list[Mapping[str, Any]], names: tuple[str, ...]) -> str:
    """Return the first of these values that is there, as text."""
    return next((text for holder in holders for name in names if (text := cell_text(holder.get(name)))), "")
