"""The requests of a run as a trace that reproduces the run (``trace: {format: jsonl, origin: file}``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from simqueue.request import Status

if TYPE_CHECKING:
    from simqueue.outputs import Place
    from simqueue.simulation.recording import Recording


def export_trace(recording: Recording, place: Place) -> int:
    """Write the requests of a run to a file, one JSON object per line, in order of arrival, and return their number.

    Every attempt is a separate request with the arrival time it had in the run, so the trace needs no clients. Requests
    that had not been sent when the run ended at its horizon are left out.

    Raises
    ------
    RunError
        If writing fails; an earlier file is then unchanged.
    """
    number = 0
    with place.writing() as path, path.open("w", encoding="utf-8", newline="\n") as file:
        for row in _rows(recording):
            file.write(json.dumps(row, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n")
            number += 1
    return number


def _rows(recording: Recording) -> Iterator[dict[str, Any]]:
    requests = recording.requests
    names = ("request_id", "arrival_s", "prompt_tokens", "output_tokens", "request_class", "wanted_s", "attempt")
    columns = [requests[name].tolist() for name in (*names, "session", "client", "status", "replica")]
    for name, arrival_s, prompt, output, label, wanted_s, attempt, session, client, status, replica in zip(
        *columns, strict=True
    ):
        if status == Status.UNFINISHED.value and replica < 0:
            continue
        row = {"request_id": name, "arrival_s": arrival_s, "prompt_tokens": prompt, "output_tokens": output}
        given = {
            "class": label,
            "wanted_s": None if wanted_s == arrival_s else wanted_s,
            "attempt": attempt or None,
            "session": session,
            "client": client,
            **_special(recording, name),
        }
        yield row | {key: value for key, value in given.items() if value is not None}


def _special(recording: Recording, name: str) -> dict[str, Any]:
    request = recording.special.get(name)
    if request is None:
        return {}
    return {
        "priority": request.priority or None,
        "deadline_s": request.deadline_s,
        "gives_up_s": request.gives_up_s,
        "prompt": request.prompt,
        "output_stream": request.output_stream,
    }
