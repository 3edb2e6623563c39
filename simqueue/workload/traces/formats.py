"""The trace formats: what may be asked of each, and what its files look like, so that a wrong one can be named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PLAIN_COLUMNS = (
    "arrival_s",
    "prompt_tokens",
    "output_tokens",
    "request_id",
    "class",
    "client",
    "session",
    "priority",
    "output_stream",
    "attempt",
    "deadline_s",
    "wanted_s",
    "gives_up_s",
)
"""Every column of the plain formats; ``jsonl`` has ``prompt`` besides."""


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """What may be asked for with files of a format.

    Attributes
    ----------
    renames : tuple of str
        Columns that the user may rename by ``columns``; empty where the format fixes them.
    starts_at_zero : bool
        Whether the file's times can be taken as seconds from the start of a run (``origin: file``).
    """

    renames: tuple[str, ...] = ()
    starts_at_zero: bool = True


FORMATS: dict[str, TraceFormat] = {
    "azure": TraceFormat(starts_at_zero=False),
    "burstgpt": TraceFormat(),
    "mooncake": TraceFormat(),
    "csv": TraceFormat(renames=PLAIN_COLUMNS),
    "jsonl": TraceFormat(renames=(*PLAIN_COLUMNS, "prompt")),
    "vllm-bench": TraceFormat(starts_at_zero=False),
}
"""Every format that can be read; `readers` has a reader for each."""

SIGNATURES: dict[str, tuple[str, ...]] = {
    "azure": ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "csv": ("arrival_s", "prompt_tokens", "output_tokens"),
    "burstgpt": ("Timestamp", "Model", "Request tokens", "Response tokens", "Total tokens", "Log Type"),
}
"""Columns that a CSV file of each format has at least."""

JSON_SIGNATURES: dict[str, tuple[str, ...]] = {
    "vllm-bench": ("input_lens", "output_lens"),
    "mooncake": ("timestamp", "input_length", "output_length"),
    "jsonl": ("arrival_s", "prompt_tokens", "output_tokens"),
}
"""Keys of the first JSON object of a file of each format."""


def guess_format(header: Sequence[str], asked: str | None = None) -> str | None:
    """Return the known format, other than `asked`, that a first line looks like; None if it looks like none.

    Parameters
    ----------
    header : sequence of str
        The first line, split at commas and stripped.
    asked : str or None
        The format as which the file was to be read.
    """
    if header and header[0].startswith(("{", "[")):
        quoted = [cell.lstrip("{[ ").partition(":")[0].strip(' "') for cell in header]
        return guess_json(quoted, asked) or "JSON"
    return _first(SIGNATURES, header, asked)


def guess_json(keys: Sequence[str], asked: str | None = None) -> str | None:
    """Return the known format, other than `asked`, that the keys of an object look like; None if like none."""
    return _first(JSON_SIGNATURES, keys, asked)


def _first(signatures: Mapping[str, tuple[str, ...]], found: Sequence[str], asked: str | None) -> str | None:
    for name, columns in signatures.items():
        if name != asked and all(column in found for column in columns):
            return name
    return None
