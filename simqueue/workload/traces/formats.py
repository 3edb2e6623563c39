"""The trace formats: which keys go with each, and what its files look like, so that errors can name the right one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

TimeUnit = Literal["s", "ms", "us", "ns"]

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
"""Every column of the plain formats; ``jsonl`` also has ``prompt``."""


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """The keys that go with a format.

    Attributes
    ----------
    renames : tuple of str
        Columns that the user can rename with ``columns``; empty if the format fixes them.
    starts_at_zero : bool
        Whether the file's times can be used as seconds from the start of a run (``origin: file``).
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


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a reader has to know about a file.

    Attributes
    ----------
    columns : mapping of str to str
        The file's own names of columns, by the name of the format.
    time_unit : str
        Unit of the times, if the format leaves it open.
    block_tokens : int or None
        Number of tokens that one hash id stands for.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    time_unit: TimeUnit = "s"
    block_tokens: int | None = None


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
"""Keys that the first JSON object of a file of each format has at least."""


def guess_format(header: Sequence[str], expected: str | None = None) -> str | None:
    """Return the known format, other than the expected one, that a first line looks like; None if there is none.

    Parameters
    ----------
    header : sequence of str
        The first line, split at commas and stripped.
    expected : str or None
        The format in which the file was to be read.
    """
    if header and header[0].startswith(("{", "[")):
        quoted = [cell.lstrip("{[ ").partition(":")[0].strip(' "') for cell in header]
        return guess_json(quoted, expected) or "JSON"
    return _first(SIGNATURES, header, expected)


def guess_json(keys: Sequence[str], expected: str | None = None) -> str | None:
    """Return the known format, other than the expected one, that the keys of an object look like, or None."""
    return _first(JSON_SIGNATURES, keys, expected)


def _first(signatures: Mapping[str, tuple[str, ...]], found: Sequence[str], expected: str | None) -> str | None:
    for name, columns in signatures.items():
        if name != expected and all(column in found for column in columns):
            return name
    return None
