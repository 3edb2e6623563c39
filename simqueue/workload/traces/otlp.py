"""OpenTelemetry: spans in OTLP's JSON form, with the attributes for calls of generative models.

Sources: opentelemetry.io, "OTLP Specification" (JSON Protobuf encoding: nanoseconds and integers are text) and
"Semantic conventions for generative AI systems"; older conventions of these attributes, and those of OpenLLMetry and
OpenInference, have other names for the same counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from simqueue.datafiles.jsontext import cell_text, json_documents
from simqueue.errors import InputError
from simqueue.workload.traces.base import TraceRows
from simqueue.workload.traces.calls import Call, ExportForm, call_rows
from simqueue.workload.traces.formats import ReadOptions, guess_format, guess_json

_PROMPT: Final = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.usage.prompt_tokens",
    "llm.token_count.prompt",
)
_OUTPUT: Final = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.usage.completion_tokens",
    "llm.token_count.completion",
)
_SESSION: Final = ("gen_ai.conversation.id", "session.id")
_AROUND_CALLS: Final = {
    "gen_ai.operation.name": ("invoke_agent", "create_agent", "invoke_workflow", "execute_tool"),
    "openinference.span.kind": ("CHAIN", "AGENT", "TOOL", "RETRIEVER", "GUARDRAIL", "EVALUATOR"),
    "traceloop.span.kind": ("workflow", "task", "agent", "tool"),
}
"""Attributes that say that a span is not a call itself; its token counts, if it has any, are sums over its calls."""

_FORM: Final = ExportForm(
    "span",
    ("startTimeUnixNano", _PROMPT[0], _OUTPUT[0]),
    "ns",
    "they have no token counts, or are of agents and tools, whose tokens are those of the calls inside",
)
_EXPECTED: Final = "an OTLP export with resourceSpans is"


class OtlpReader:
    """Reader of one JSON text, or of JSON lines as the file exporter of the collector writes (see `TraceReader`)."""

    def chunks(self, path: Path, label: str, _options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the spans with token counts; times are exact to the nanosecond."""
        return call_rows(map(_call, _spans(path, label)), label, _FORM, at_once)


def _spans(path: Path, label: str) -> Iterator[Mapping[str, Any]]:
    for place, document in json_documents(path, label, _EXPECTED, partial(guess_format, expected="otlp")):
        exports = document if isinstance(document, list) else [document]
        for export in exports:
            if not isinstance(export, dict) or "resourceSpans" not in export:
                guess = guess_json(list(export), "otlp") if isinstance(export, dict) else None
                hint = f"; this looks like {guess}" if guess else ""
                raise InputError(f"{place}: {_EXPECTED} expected{hint}")
            for resource in _objects(export, "resourceSpans", place):
                for scope in _objects(resource, "scopeSpans", place):
                    yield from _objects(scope, "spans", place)


def _objects(holder: Mapping[str, Any], key: str, place: str) -> Sequence[Mapping[str, Any]]:
    """Return a list of objects; one that is missing is empty."""
    found = holder.get(key) or []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InputError(f"{place}: {key} must be a list of objects")
    return found


def _call(span: Mapping[str, Any]) -> Call | None:
    attributes = span.get("attributes")
    values = {str(one.get("key")): _value(one) for one in attributes or () if isinstance(one, dict)}
    prompt = _first(values, _PROMPT)
    if not prompt or any(values.get(key) in kinds for key, kinds in _AROUND_CALLS.items()):
        return None
    return Call(
        cell_text(span.get("startTimeUnixNano")),
        prompt,
        _first(values, _OUTPUT),
        cell_text(span.get("spanId")),
        cell_text(span.get("parentSpanId")),
        _first(values, _SESSION),
    )


def _value(attribute: Mapping[str, Any]) -> str:
    """Return a value such as ``{"intValue": "512"}`` as text."""
    value = attribute.get("value")
    return cell_text(next(iter(value.values()), None)) if isinstance(value, dict) else cell_text(value)


def _first(values: Mapping[str, str], names: Sequence[str]) -> str:
    return next((values[name] for name in names if values.get(name)), "")
