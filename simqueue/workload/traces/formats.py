"""What the headers of known trace formats look like, so that a file in the wrong one can be named."""

from __future__ import annotations

from collections.abc import Sequence

SIGNATURES: dict[str, tuple[str, ...]] = {
    "azure": ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "csv": ("arrival_s", "prompt_tokens", "output_tokens"),
    "burstgpt": ("Timestamp", "Model", "Request tokens", "Response tokens", "Total tokens", "Log Type"),
}
"""Columns that a file of each format has at least."""


def guess_format(header: Sequence[str], asked: str | None = None) -> str | None:
    """Return the known format, other than `asked`, that a first line looks like; None if it looks like none.

    Parameters
    ----------
    header : sequence of str
        The first line, split at commas and stripped.
    asked : str or None
        The format as which the file was to be read.
    """
    if header and header[0].startswith("{"):
        mooncake = any("hash_ids" in cell or "input_length" in cell for cell in header)
        return "mooncake" if mooncake else "JSON lines"
    for name, columns in SIGNATURES.items():
        if name != asked and all(column in header for column in columns):
            return name
    return None
