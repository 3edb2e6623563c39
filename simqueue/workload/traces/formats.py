"""The trace formats: which keys go with each, and what its files look like, so that errors can name the right one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

TimeUnit = Literal["s", "ms", "us", "ns"]

UNITS_PER_S: dict[TimeUnit, int] = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}

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
"""Every column of the plain formats; all but ``csv`` also have ``prompt``."""


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """The keys that go with a format.

    Attributes
    ----------
    renames : tuple of str
        Columns that the user can rename with ``columns``; empty if the format fixes them.
    unit : str or None
        Unit of the times unless ``time_unit`` says another one; None: the format leaves no choice.
    hashed : bool
        Whether rows have hash ids, of ``block_tokens`` tokens each.
    block_tokens : int or None
        Tokens of a hash id, if the user does not say; None: the user has to.
    starts_at_zero : bool
        Whether the file's times can be used as seconds from the start of a run (``origin: file``).
    """

    renames: tuple[str, ...] = ()
    unit: TimeUnit | None = None
    hashed: bool = False
    block_tokens: int | None = None
    starts_at_zero: bool = True


FORMATS: dict[str, TraceFormat] = {
    "azure": TraceFormat(starts_at_zero=False),
    "burstgpt": TraceFormat(),
    "mooncake": TraceFormat(unit="ms", hashed=True),
    "bailian": TraceFormat(unit="s", hashed=True, block_tokens=16),
    "csv": TraceFormat(renames=PLAIN_COLUMNS, unit="s"),
    "jsonl": TraceFormat(renames=(*PLAIN_COLUMNS, "prompt"), unit="s"),
    "parquet": TraceFormat(renames=(*PLAIN_COLUMNS, "prompt"), unit="s"),
    "huggingface": TraceFormat(renames=(*PLAIN_COLUMNS, "prompt"), unit="s"),
    "vllm-bench": TraceFormat(starts_at_zero=False),
    "otlp": TraceFormat(starts_at_zero=False),
    "langsmith": TraceFormat(starts_at_zero=False),
}
"""Every format that can be read; `readers` has a reader for each."""


WITH_COLUMNS, WITH_UNIT, WITH_HASHES = (
    ", ".join(name for name, found in FORMATS.items() if getattr(found, rule)) for rule in ("renames", "unit", "hashed")
)
"""Names of the formats whose columns can be renamed, whose unit can be chosen, that have hash ids."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a reader has to know about a file.

    Attributes
    ----------
    columns : mapping of str to str
        The file's own names of columns, by the name of the format.
    unit : str
        Unit of the times.
    unit_given : bool
        Whether the user named the unit.
    block_tokens : int or None
        Number of tokens that one hash id stands for.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    unit: TimeUnit = "s"
    unit_given: bool = False
    block_tokens: int | None = None


SIGNATURES: dict[str, tuple[str, ...]] = {
    "azure": ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "csv": ("arrival_s", "prompt_tokens", "output_tokens"),
    "burstgpt": ("Timestamp", "Model", "Request tokens", "Response tokens", "Total tokens", "Log Type"),
}
"""Columns that a CSV file of each format has at least."""

JSON_SIGNATURES: dict[str, tuple[str, ...]] = {
    "vllm-bench": ("input_lens", "output_lens"),
    "bailian": ("chat_id", "timestamp", "input_length", "output_length"),
    "mooncake": ("timestamp", "input_length", "output_length"),
    "jsonl": ("arrival_s", "prompt_tokens", "output_tokens"),
    "otlp": ("resourceSpans",),
    "langsmith": ("run_type", "start_time"),
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
